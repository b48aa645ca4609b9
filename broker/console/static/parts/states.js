// What stands where there is nothing to show: empty, loading, refused, away.

import { html } from "../shell/html.js";
import { awaySince } from "../shell/api.js";
import { exactTime } from "../shell/format.js";
import { isUtc } from "../shell/preferences.js";

/**
 * Nothing is there, and what to do.
 * @param {{ children?: any, command?: string }} given
 */
export function Empty({ children, command }) {
  return html`<div class="empty">
    <p>${children}</p>
    ${command && html`<p><code>${command}</code></p>`}
  </div>`;
}

/**
 * Why there is nothing, or nothing new.
 * @param {{ error: Error | { error: string, message: string }, since?: number | null }} given
 */
export function Problem({ error, since }) {
  const name = "error" in error ? error.error : "kafkaName" in error ? String(error.kafkaName) : "";
  return html`<p class="problem" role="alert">
    <strong>✗ ${name || "No response"}</strong> ${error.message}
    ${since ? html` <span class="faint">Since ${exactTime(since, isUtc.value)}${isFinal(error) ? "" : "; the page retries"}.</span>` : null}
  </p>`;
}

/**
 * Whether the same request gets the same response: it is the request that is wrong, or what it names does not exist.
 * @param {object} error
 */
function isFinal(error) {
  return "status" in error && Number(error.status) >= 400 && Number(error.status) < 500;
}

/**
 * What a thing that was fetched is like: its problem, or what `children` draws of it.
 * @param {{ seen: import("../shell/fetched.js").Fetched, children: (data: any) => any }} given
 */
export function Shown({ seen, children }) {
  return html`<div class=${seen.isSlow ? "slow" : ""} aria-busy=${seen.isSlow && !seen.data}>
    ${seen.error && html`<${Problem} error=${seen.error} since=${seen.failedSince} />`}
    ${seen.data !== null ? html`<div class=${seen.error ? "old" : ""}>${children(seen.data)}</div>` : null}
    ${seen.data === null && !seen.error ? html`<p class="faint">Loading</p>` : null}
  </div>`;
}

/**
 * A word with a shape before it: never colour alone. While the broker is away nothing is known to be well.
 * @param {{ kind: "good" | "bad" | "warn" | "plain", children?: any }} given
 */
export function Mark({ kind, children }) {
  const shown = kind === "good" && awaySince.value !== null ? "plain" : kind;
  const shape = { good: "✓", bad: "✗", warn: "▲", plain: "●" }[shown];
  return html`<span class="mark ${shown}"><span aria-hidden="true">${shape}</span> ${children}</span>`;
}
