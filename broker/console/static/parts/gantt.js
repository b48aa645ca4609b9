// Transactions as bars over time: begun, still open, and how far their timeout is; or ended, and how.

import { html, useState } from "../shell/html.js";
import { duration, exactTime, time } from "../shell/format.js";
import { isUtc } from "../shell/preferences.js";
import { path } from "../shell/location.js";
import { Table } from "./list.js";
import { cut, short, TransactionLink } from "./links.js";

const WIDTH = 1000;
const NAMES = 240;
const ROW = 26;
const AXIS = 24;
const TICKS = 5;
/** A bar this wide has its duration inside. */
const INSIDE = 80;

/**
 * @typedef {{
 *   id: string, begin: number, end: number | null, deadline: number | null,
 *   kind: "open" | "late" | "committed" | "aborted" | "timeout" | "fenced" | "operator", words: string,
 * }} Bar  Times in milliseconds; `end` is null while it is open.
 */

/** Shapes beside colours. @type {Record<string, string>} */
const SHAPES = { open: "●", late: "▲", committed: "✓", aborted: "○", timeout: "▼", fenced: "✗", operator: "◆" };

/**
 * @param {{ title: string, bars: Bar[], now: number, empty: any, opens?: boolean }} given  `opens`: whether the keys
 *   for rows go through its rows. Bars of one id are in one row.
 */
export function Gantt({ title, bars, now, empty, opens }) {
  const [isTable, setTable] = useState(false);
  const columns = [
    { title: "Transactional id", cell: (/** @type {Bar} */ bar) => html`<${TransactionLink} name=${bar.id} opens=${opens} />` },
    { title: "State", cell: (/** @type {Bar} */ bar) => bar.words },
    { title: "Begun", cell: (/** @type {Bar} */ bar) => exactTime(bar.begin, isUtc.value) },
    { title: "Took", isNumber: true, cell: (/** @type {Bar} */ bar) => took(bar, now) },
  ];
  return html`<figure class="gantt">
    <figcaption><span class="title">${title}</span>
      ${bars.length ? html`<button type="button" class="small" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>Table</button>` : null}
      <span class="words">${sentence(bars, now)}</span>
    </figcaption>
    ${!bars.length && html`<div>${empty}</div>`}
    ${bars.length && isTable
      ? html`<${Table} label=${title} columns=${columns} rows=${bars} rowKey=${(/** @type {Bar} */ bar) => `${bar.id} ${bar.begin}`} />`
      : null}
    ${bars.length && !isTable ? html`<${Bars} bars=${bars} now=${now} opens=${opens} />` : null}
  </figure>`;
}

/**
 * @param {Bar} bar
 * @param {number} now
 */
function took(bar, now) {
  const milliseconds = Math.max(0, (bar.end ?? now) - bar.begin); // What has just begun may be newer than this second.
  return milliseconds < 1000 ? `${milliseconds} ms` : duration(milliseconds);
}

/**
 * @param {Bar[]} bars
 * @param {number} now
 */
function sentence(bars, now) {
  const open = bars.filter((bar) => bar.end === null);
  if (open.length) {
    const oldest = open.reduce((one, other) => (one.begin <= other.begin ? one : other));
    return `${open.length} open, the oldest for ${took(oldest, now)}`;
  }
  const counts = new Map();
  for (const bar of bars) counts.set(bar.words, (counts.get(bar.words) ?? 0) + 1);
  return [...counts].map(([words, count]) => `${count} ${words}`).join(", ");
}

/** @param {{ bars: Bar[], now: number, opens?: boolean }} given */
function Bars({ bars, now, opens }) {
  const from = Math.min(...bars.map((bar) => bar.begin));
  const until = Math.max(...bars.map((bar) => bar.end ?? now), from + 1000);
  // What is dashed shows the time that is left, without making all the rest small.
  const last = Math.min(Math.max(until, ...bars.map((bar) => bar.deadline ?? 0)), until + (until - from));
  const x = (/** @type {number} */ at) => NAMES + ((Math.min(at, last) - from) / (last - from)) * (WIDTH - NAMES - 4);
  const rows = [...Map.groupBy(bars, (bar) => bar.id)];
  const height = AXIS + rows.length * ROW;
  const ticks = Array.from({ length: TICKS }, (_, at) => from + ((last - from) * at) / (TICKS - 1));
  return html`<svg class="bars" viewBox=${`0 0 ${WIDTH} ${height}`} role="group" aria-label="Bars">
    ${ticks.map((at, index) => html`<g key=${index} aria-hidden="true">
      <line class="grid" x1=${x(at)} x2=${x(at)} y1=${AXIS - 6} y2=${height} />
      <text class="tick" x=${x(at)} y="12" text-anchor=${index === TICKS - 1 ? "end" : "middle"}>${time(at, isUtc.value)}</text>
    </g>`)}
    ${rows.map(([id, each], at) => html`<${Row} key=${id} bars=${each} y=${AXIS + at * ROW} x=${x} now=${now} opens=${opens} />`)}
    <line class="now" x1=${x(now)} x2=${x(now)} y1=${AXIS - 6} y2=${height} aria-hidden="true" />
  </svg>`;
}

/**
 * The transactions of one id: one bar with its words beside it, or several with their number.
 * @param {{ bars: Bar[], y: number, x: (at: number) => number, now: number, opens?: boolean }} given
 */
function Row({ bars, y, x, now, opens }) {
  const [newest] = bars;
  const last = bars.reduce((one, other) => ((one.end ?? now) >= (other.end ?? now) ? one : other));
  const begin = x(last.begin);
  const end = x(last.end ?? now);
  const isDashed = last.end === null && last.deadline !== null && x(last.deadline) > end;
  const isRight = end + 6 <= WIDTH - INSIDE; // Else there is no room for the words behind the bar.
  const left = Math.min(...bars.map((bar) => x(bar.begin)));
  const said = bars.length > 1 ? `${bars.length} times` : took(last, now);
  return html`<a href=${path(["transactions", newest.id])} data-row=${opens} data-open=${opens} aria-label=${`${newest.id}: ${wordsOf(bars, now)}`}>
    <rect class="target" x="0" y=${y} width=${WIDTH} height=${ROW} />
    <text class="name" x=${NAMES - 8} y=${y + 17} text-anchor="end">${SHAPES[newest.kind]} ${cut(newest.id, 30)}</text>
    ${bars.map((bar) => html`<rect key=${bar.begin} class=${`bar ${bar.kind}`} x=${x(bar.begin)} y=${y + 5} width=${Math.max(x(bar.end ?? now) - x(bar.begin), 3)} height=${ROW - 10} rx="2" />`)}
    ${isDashed
      ? html`<line class=${`left ${last.kind}`} x1=${end} x2=${x(last.deadline ?? 0)} y1=${y + ROW / 2} y2=${y + ROW / 2} />`
      : null}
    ${bars.length === 1 && end - begin > INSIDE
      ? html`<text class="inside" x=${begin + 6} y=${y + 17}>${said}</text>`
      : html`<text class="tick" x=${isRight ? end + 6 : left - 6} text-anchor=${isRight ? "start" : "end"} y=${y + (isDashed ? 9 : 17)}>${said}</text>`}
  </a>`;
}

/**
 * @param {Bar[]} bars
 * @param {number} now
 */
function wordsOf(bars, now) {
  return bars.length === 1 ? `${bars[0].words}, ${took(bars[0], now)}` : sentence(bars, now);
}

/** A legend, in words. @param {{ kinds: [string, string][] }} given */
export function Legend({ kinds }) {
  return html`<p class="legend faint">${kinds.map(([kind, words]) => html`<span key=${kind} class=${`key ${kind}`}>${SHAPES[kind]} ${short(words)}</span> `)}</p>`;
}
