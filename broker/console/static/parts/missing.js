// The screen of a topic, a group or a transactional id that does not exist.

import { html } from "../shell/html.js";
import { Screen } from "./screen.js";
import { Empty } from "./states.js";

const MISSING = new Set(["UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "TRANSACTIONAL_ID_NOT_FOUND"]);

/**
 * Whether an error says that what a screen is about does not exist.
 * @param {{ error: string } | { kafkaName: string } | object | null | undefined} error
 */
export function isMissing(error) {
  if (!error) return false;
  return MISSING.has("error" in error ? String(error.error) : "kafkaName" in error ? String(error.kafkaName) : "");
}

/**
 * One sentence and the way back, in place of lists that are refused one by one and actions that cannot be done.
 * @param {{ title: string, kind: string, above: { href: string, words: string }, command: string }} given
 */
export function Missing({ title, kind, above, command }) {
  return html`<${Screen} title=${title} above=${above}>
    <p class="problem" role="alert"><strong>✗</strong> The ${kind} <bdi>${title}</bdi> does not exist. It was deleted, or its name is misspelt.</p>
    <${Empty} command=${command}>Existing ones are at <a href=${above.href}>${above.words}</a>, or:<//><//>`;
}
