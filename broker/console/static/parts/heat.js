// How long something took over time, as a heat map: a column for ten seconds, a row for each bucket.

import { html, useEffect, useRef, useState } from "../shell/html.js";
import { clock, count, exactTime, microseconds } from "../shell/format.js";
import { isUtc, theme } from "../shell/preferences.js";
import { Table } from "./list.js";

const HEIGHT = 180;
/** What of it is above the times. */
const MAP_HEIGHT = 164;
const TIME_WIDTH = 120;
const TABLE_ROWS = 60;

/**
 * @param {{ title: string, bounds: number[], times: number[], counts: number[][] }} given
 *   `bounds`: upper ones of the buckets, in microseconds.
 */
export function Heat({ title, bounds, times, counts }) {
  const [isTable, setTable] = useState(false);
  const used = bounds.map((_, at) => at).filter((at) => counts.some((row) => row[at]));
  const first = used[0] ?? 0;
  const last = used.at(-1) ?? 0;
  const columns = [
    { title: "Until", cell: (/** @type {number} */ at) => exactTime(times[at], isUtc.value) },
    ...used.map((bucket) => ({ title: `< ${microseconds(bounds[bucket])}`, isNumber: true, cell: (/** @type {number} */ at) => count(counts[at][bucket]) })),
  ];
  const newest = times.map((_, at) => at).slice(-TABLE_ROWS).reverse();
  return html`<figure class="heat">
    <figcaption><span class="title">${title}</span>
      <button type="button" class="small" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>Table</button>
      <span class="words">${used.length ? `from ${microseconds(first ? bounds[first - 1] : 0)} to ${microseconds(bounds[last])}; most often below ${microseconds(bounds[mostOften(used, counts)])}` : "nothing yet"}</span>
    </figcaption>
    ${used.length && isTable ? html`<${Table} label=${title} columns=${columns} rows=${newest} rowKey=${(/** @type {number} */ at) => String(times[at])} />` : null}
    ${used.length && !isTable ? html`<${Canvas} bounds=${bounds} times=${times} counts=${counts} first=${first} last=${last} />` : null}
  </figure>`;
}

/**
 * @param {number[]} used
 * @param {number[][]} counts
 */
function mostOften(used, counts) {
  const sums = used.map((bucket) => counts.reduce((sum, row) => sum + row[bucket], 0));
  return used[sums.indexOf(Math.max(...sums))];
}

/** @param {{ bounds: number[], times: number[], counts: number[][], first: number, last: number }} given */
function Canvas({ bounds, times, counts, first, last }) {
  const place = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useEffect(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (place.current);
    const width = canvas.clientWidth || 600;
    canvas.width = width;
    canvas.height = HEIGHT;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const style = getComputedStyle(canvas);
    const heat = style.getPropertyValue("--heat").trim();
    const rows = last - first + 1;
    const most = Math.max(1, ...counts.map((row) => Math.max(...row)));
    const wide = width / Math.max(counts.length, 60);
    const high = MAP_HEIGHT / rows;
    counts.forEach((row, at) => {
      for (let bucket = first; bucket <= last; bucket += 1) {
        if (!row[bucket]) continue;
        context.fillStyle = `rgba(${heat}, ${0.15 + (0.85 * Math.log1p(row[bucket])) / Math.log1p(most)})`;
        context.fillRect(width - (counts.length - at) * wide, MAP_HEIGHT - (bucket - first + 1) * high, Math.max(wide - 0.5, 1), high - 1);
      }
    });
    context.fillStyle = style.getPropertyValue("--ink").trim();
    context.font = "11px system-ui";
    for (let bucket = first; bucket <= last; bucket += Math.max(1, Math.round(rows / 6))) {
      context.fillText(`< ${microseconds(bounds[bucket])}`, 2, MAP_HEIGHT - (bucket - first) * high - 4);
    }
    const left = width - counts.length * wide;
    context.fillStyle = style.getPropertyValue("--faint").trim();
    if (width - left > 2 * TIME_WIDTH) context.fillText(clock(times[0], isUtc.value), left, HEIGHT - 3);
    context.textAlign = "right";
    context.fillText(clock(times.at(-1), isUtc.value), width, HEIGHT - 3);
  }, [counts, theme.value, isUtc.value, first, last]);
  return html`<canvas ref=${place} aria-hidden="true"></canvas>`;
}
