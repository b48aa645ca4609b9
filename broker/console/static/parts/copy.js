// "Copy as": what is shown, as a command line of three tools.

import { html, useEffect, useRef } from "../shell/html.js";
import { copyWith } from "../shell/keyboard.js";
import { say } from "../shell/announce.js";

/** @typedef {{ tool: string, line: string }} Command */

/**
 * Copy a text; a page that did not come over TLS or loopback has no clipboard but the old one.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say("Copied.");
}

/**
 * The commands of a view; `c` copies the first, unless they are those of a dialog.
 * @param {{ commands: Command[], isDialog?: boolean }} given
 */
export function CopyAs({ commands, isDialog = false }) {
  const latest = useRef(commands);
  latest.current = commands;
  useEffect(() => {
    if (isDialog) return undefined;
    copyWith(() => copyText(latest.current[0].line));
    return () => copyWith(null);
  }, []);
  return html`<details class="copies">
    <summary>Copy as</summary>
    <ul>
      ${commands.map(({ tool, line }) => html`<li key=${tool + line}>
        <button type="button" class="small" onClick=${() => copyText(line)}>Copy ${tool}</button>${" "}
        <code data-command=${tool}>${line}</code>
      </li>`)}
    </ul>
  </details>`;
}
