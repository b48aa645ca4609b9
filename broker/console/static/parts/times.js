// Times and ages: ages count on in the browser, without a request.

import { html } from "../shell/html.js";
import { duration, exactTime, time } from "../shell/format.js";
import { isUtc, now } from "../shell/preferences.js";

/**
 * A time; all of it to the millisecond when it is pointed at or focused.
 * @param {{ at: import("../shell/format.js").Figure }} given  Milliseconds since 1970.
 */
export function Time({ at }) {
  if (at === null || at === undefined) return html`–`;
  const exact = exactTime(at, isUtc.value);
  const date = new Date(Number(at));
  const machine = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  return html`<time datetime=${machine} title=${exact}>${time(at, isUtc.value)}</time>`;
}

/**
 * How long ago something was.
 * @param {{ since: import("../shell/format.js").Figure, skewMs?: number }} given
 */
export function Age({ since, skewMs = 0 }) {
  if (since === null || since === undefined) return html`–`;
  return html`<span title=${exactTime(since, isUtc.value)}>${duration(now.value + skewMs - Number(since))}</span>`;
}
