// Where the lag of a group goes.

import { html } from "../shell/html.js";
import { Mark } from "./states.js";

/** @type {Record<string, [string, "good" | "warn" | "plain"]>} */
const TRENDS = {
  falling_behind: ["falling behind", "warn"],
  catching_up: ["catching up", "good"],
  steady: ["steady", "plain"],
};

/** @param {{ trend: string | null }} given  As the API says it. */
export function Trend({ trend }) {
  if (trend === null) return html`<span class="faint">not known yet</span>`;
  const [words, kind] = TRENDS[trend] ?? [trend, "plain"];
  return html`<${Mark} kind=${kind}>${words}<//>`;
}
