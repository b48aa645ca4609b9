// Lines over time: a figure with a sentence that says them, and a button to its table.

import { html, useEffect, useRef, useState } from "../shell/html.js";
import { exactTime, time } from "../shell/format.js";
import { isUtc, theme } from "../shell/preferences.js";
import uPlot from "../vendor/uplot.js";
import { Table } from "./list.js";

const HEIGHT = 120;
const TIMES_HEIGHT = 26;
const TABLE_ROWS = 60;
const LEAST_SECONDS = 60;

/**
 * @typedef {{ label: string, values: (number | null)[], colour?: 1 | 2 | 3 | 4 }} Line
 */

/**
 * A plot of one or more lines of the same unit.
 * @param {{
 *   title: string, times: number[], lines: Line[], format: (value: number | null) => string, span?: string,
 *   marks?: number[],
 * }} given  `times` in milliseconds; `marks`: moments that something happened.
 */
export function Plot({ title, times, lines, format, span = "", marks = [] }) {
  const [isTable, setTable] = useState(false);
  const columns = [
    { title: "Time", cell: (/** @type {number} */ at) => exactTime(times[at], isUtc.value) },
    ...lines.map((line) => ({ title: line.label, isNumber: true, cell: (/** @type {number} */ at) => format(line.values[at]) })),
  ];
  const newest = times.map((_, at) => at).slice(-TABLE_ROWS).reverse();
  return html`<figure class="plot">
    <figcaption>
      <span class="title">${title}</span>
      <span class="words">${words(lines, format, span)}</span>
      <button type="button" class="small" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>Table</button>
    </figcaption>
    ${isTable
      ? html`<${Table} label=${title} columns=${columns} rows=${newest} rowKey=${(/** @type {number} */ at) => String(times[at])} />`
      : html`<${Canvas} times=${times} lines=${lines} format=${format} marks=${marks} />`}
  </figure>`;
}

/**
 * @param {Line[]} lines
 * @param {(value: number | null) => string} format
 * @param {string} span
 */
function words(lines, format, span) {
  const said = lines
    .map(({ label, values }) => {
      const known = /** @type {number[]} */ (values.filter((value) => value !== null && value !== undefined));
      const name = lines.length > 1 ? `${label} ` : "";
      return known.length ? `${name}${format(values.at(-1) ?? null)}, at most ${format(Math.max(...known))}` : "";
    })
    .filter(Boolean);
  return said.length ? `${said.join("; ")}${span ? `, in ${span}` : ""}` : "nothing yet";
}

/** @param {{ times: number[], lines: Line[], format: (value: number | null) => string, marks: number[] }} given */
function Canvas({ times, lines, format, marks }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const drawn = useRef(/** @type {any} */ (null));
  const shownMarks = useRef(marks);
  shownMarks.current = marks;
  /** @type {[number[], ...(number | null)[][]]} */
  const data = [times.map((each) => each / 1000), ...lines.map((line) => line.values)];
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const [systemTheme, setSystemTheme] = useState(isDark.matches);
  useEffect(() => {
    const changed = () => setSystemTheme(isDark.matches);
    isDark.addEventListener("change", changed);
    return () => isDark.removeEventListener("change", changed);
  }, []);
  const key = `${systemTheme} ${lines.map((line) => line.label).join()} ${theme.value} ${isUtc.value}`;
  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    const chart = new uPlot(options(element, lines, format, shownMarks), data, element);
    drawn.current = chart;
    const sizes = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      chart.destroy();
      drawn.current = null;
    };
  }, [key]);
  useEffect(() => drawn.current?.setData(data));
  return html`<div class="canvas" ref=${place} aria-hidden="true"></div>`;
}

/**
 * @param {HTMLDivElement} element
 * @param {Line[]} lines
 * @param {(value: number | null) => string} format
 * @param {{ current: number[] }} marks
 * @returns {import("../vendor/uplot.js").default.Options}
 */
function options(element, lines, format, marks) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width: element.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: wideEnough }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [{ ...axis, size: TIMES_HEIGHT, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((each) => time(each * 1000, isUtc.peek())) }, { ...axis, size: 64, values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map(format) }],
    series: [
      {},
      ...lines.map((line, at) => ({
        label: line.label,
        stroke: colour(`--series-${line.colour ?? at + 1}`),
        width: 1.5,
        dash: at ? [6, 3] : undefined,
        points: { show: false },
        spanGaps: false,
      })),
    ],
    hooks: { draw: [(/** @type {any} */ chart) => drawMarks(chart, marks.current, colour("--warn"))] },
  };
}

/**
 * From when to when, in seconds: of a moment alone the minute before it, which uPlot would make years.
 * @param {any} chart
 * @returns {[number, number]}
 */
function wideEnough(chart) {
  const times = chart.data[0];
  const end = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? end, end - LEAST_SECONDS), end];
}

/**
 * @param {any} chart
 * @param {number[]} marks
 * @param {string} stroke
 */
function drawMarks(chart, marks, stroke) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.setLineDash([]);
  for (const each of marks) {
    const left = chart.valToPos(each / 1000, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
