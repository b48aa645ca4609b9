// What every screen has: a title, a way back, its commands.

import { html, useEffect } from "../shell/html.js";
import { CopyAs } from "./copy.js";

/**
 * @param {{
 *   title: string, question?: string, above?: { href: string, words: string } | null,
 *   commands?: import("./copy.js").Command[], actions?: any, children?: any,
 * }} given  `actions`: buttons.
 */
export function Screen({ title, question = "", above = null, commands = [], actions = null, children }) {
  useEffect(() => {
    document.title = `${title} – Barnabas`;
  }, [title]);
  return html`<div class="screen">
    <div class="head">
      ${above && html`<p class="above"><a href=${above.href}>${above.words}</a> ›</p>`}
      <h1 tabindex="-1">${title}</h1>
      ${question && html`<p class="faint">${question}</p>`}
      ${actions && html`<div class="actions">${actions}</div>`}
      ${commands.length ? html`<${CopyAs} commands=${commands} />` : null}
    </div>
    ${children}
  </div>`;
}

/**
 * Figures with their names, in a line.
 * @param {{ figures: [string, any][] }} given
 */
export function Facts({ figures }) {
  return html`<dl class="facts">
    ${figures.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
