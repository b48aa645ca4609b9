// Lines over time: a figure with a sentence that says them, and a button to its table.

import { html, useEffect, useRef, useState } from "../shell/html.js";
import { clock, count, exactTime } from "../shell/format.js";
import { isUtc, theme } from "../shell/preferences.js";
import uPlot from "../vendor/uplot.js";
import { Table } from "./list.js";

const HEIGHT = 120;
const TIMES_HEIGHT = 26;
const TABLE_ROWS = 60;
const LEAST_SECONDS = 60;
/** Pixels between two times of the axis: more than a time is wide. */
const TIME_SPACE = 72;
/** Steps of the axis of times, in seconds; uPlot's own go from one minute to five. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
/** Steps of the axis of what is counted: half of one would be shown as another whole one. */
const WHOLE_STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();
/** Of the first line, the second and so on: lines are told apart without their colours. */
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

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
      <button type="button" class="small" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>Table</button>
      <span class="words"><${Words} lines=${lines} format=${format} span=${span} /></span>
    </figcaption>
    ${isTable
      ? html`<${Table} label=${title} columns=${columns} rows=${newest} rowKey=${(/** @type {number} */ at) => String(times[at])} />`
      : html`<${Canvas} times=${times} lines=${lines} format=${format} marks=${marks} />`}
  </figure>`;
}

/**
 * What the lines say; where there are several, each with its look: the legend.
 * @param {{ lines: Line[], format: (value: number | null) => string, span: string }} given
 */
function Words({ lines, format, span }) {
  const whole = (/** @type {number | null} */ value) => format(value).replaceAll(" ", "\u00a0"); // With its unit.
  const known = lines.map((line, at) => ({ ...line, at, known: knownOf(line) })).filter((line) => line.known.length);
  if (!known.length) return html`${lines.length > 1 ? lines.map((line, at) => html`<${Sample} key=${at} line=${line} at=${at} />${line.label} `) : null}nothing yet`;
  return html`${known.map((line, index) => html`${lines.length > 1 ? html`<${Sample} line=${line} at=${line.at} />${line.label} ` : null}${
    whole(line.values.at(-1) ?? null)}, at most ${whole(Math.max(...line.known))}${index < known.length - 1 ? "; " : ""}`)}${span ? `, in ${span}` : ""}`;
}

/**
 * @param {Line} line
 * @returns {number[]}
 */
function knownOf({ values }) {
  return /** @type {number[]} */ (values.filter((value) => value !== null && value !== undefined));
}

/** A piece of a line, as it is drawn. @param {{ line: Line, at: number }} given */
function Sample({ line, at }) {
  return html`<svg class=${`sample series-${line.colour ?? at + 1}`} width="24" height="8" aria-hidden="true"><line x1="0" x2="24" y1="4" y2="4"
    stroke-dasharray=${dashOf(at).join(" ") || undefined} /></svg>`;
}

/** @param {number} at */
function dashOf(at) {
  return DASHES[at % DASHES.length];
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
    axes: [
      { ...axis, size: TIMES_HEIGHT, space: TIME_SPACE, incrs: TIME_STEPS, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((each) => clock(each * 1000, isUtc.peek())) },
      { ...axis, size: 64, ...(format === count ? { incrs: WHOLE_STEPS } : {}), values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map(format) },
    ],
    series: [
      {},
      ...lines.map((line, at) => ({
        label: line.label,
        stroke: colour(`--series-${line.colour ?? at + 1}`),
        width: 1.5,
        dash: dashOf(at),
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
