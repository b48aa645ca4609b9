// Storage: is the disk the limit?

import { Heat } from "../parts/heat.js";
import { PartitionLink } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { Plot } from "../parts/plot.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Shown } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { bytes, count, duration, rate } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";

const SERIES = ["flushes", "flushed_batches", "journal_bytes", "backlog_bytes", "disk_free_bytes"];

/** @type {import("../parts/list.js").Column[]} */
const LARGEST = [
  { title: "Partition", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} opens />` },
  { title: "Size", isNumber: true, cell: (row) => bytes(row.size_bytes) },
];

export function Storage() {
  const storage = useFetched(apiPath(["storage"])).seen.value;
  const history = useFetched(apiPath(["history"], { series: [...SERIES, "flush", "produce"].join(), step_s: 10 }), { everyMs: 10_000 }).seen.value;
  return html`<${Screen} title="Storage" question="Is the disk the limit?" commands=${[curl(apiPath(["storage"]))]}>
    <${Shown} seen=${storage}>${(/** @type {any} */ found) => html`<${Summary} storage=${found} history=${history.data} />`}<//>
    <${Shown} seen=${history}>${(/** @type {any} */ found) => html`<${Past} history=${found} />`}<//>
    <h2>Largest logs</h2>
    <${Shown} seen=${storage}>${(/** @type {any} */ found) =>
      found.largest.length
        ? html`<${Table} label="Largest logs" columns=${LARGEST} rows=${found.largest} rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} />`
        : html`<${Empty} command="barnabas topics create orders">There are no logs yet.<//>`}<//>
  <//>`;
}

/** @param {{ storage: any, history: any }} given */
function Summary({ storage, history }) {
  const left = timeUntilFull(history);
  return html`
    <p>${storage.is_full
      ? html`<${Mark} kind="bad">The disk is full: appends are refused, readers are served.<//>`
      : html`<${Mark} kind="good">There is room${left === null ? "" : ` for about ${duration(left)} at the rate of the last hours`}.<//>`}
      ${storage.damage ? html` <${Mark} kind="bad">${storage.damage}<//>` : null}</p>
    <${Facts} figures=${[
      ["Directory", html`<code>${storage.directory}</code>`],
      ["Free", bytes(storage.free_bytes)],
      ["Of", bytes(storage.total_bytes)],
      ["Logs", count(storage.logs)],
      ["Size of logs", bytes(storage.size_bytes)],
      ["Journal", bytes(storage.journal_bytes)],
      ["Journal written since the start", bytes(storage.journal_written_bytes)],
      ["Not in the segments yet", bytes(storage.backlog_bytes)],
    ]} />`;
}

/** @param {any} history  A HistoryOfBroker of the API, or null. */
function timeUntilFull(history) {
  const values = history?.series.find((/** @type {any} */ each) => each.name === "disk_free_bytes")?.values ?? [];
  const known = values.map((/** @type {number | null} */ value, /** @type {number} */ at) => [at, value]).filter((/** @type {any[]} */ each) => each[1] !== null);
  if (known.length < 30) return null;
  const [[firstAt, first], [lastAt, last]] = [known[0], known.at(-1)];
  const perStep = (first - last) / (lastAt - firstAt);
  return perStep <= 0 ? null : (last / perStep) * history.step_s * 1000;
}

/** @param {{ history: any }} given */
function Past({ history }) {
  const times = history.times_ms.map(Number);
  const series = new Map(history.series.map((/** @type {any} */ each) => [each.name, each.values]));
  const flushes = series.get("flushes") ?? [];
  const batches = (series.get("flushed_batches") ?? []).map((/** @type {number | null} */ value, /** @type {number} */ at) => (value === null || !flushes[at] ? null : value / flushes[at]));
  const heats = new Map(history.heat.map((/** @type {any} */ each) => [each.name, each]));
  return html`<section class="plots" aria-label="The last six hours">
    ${[["flush", "How long journal syncs took"], ["produce", "How long Produce requests took"]].map(([name, title]) => {
      const heat = heats.get(name);
      return heat ? html`<${Heat} key=${name} title=${title} bounds=${heat.bounds_us.map(Number)} times=${heat.times_ms.map(Number)} counts=${heat.counts} />` : null;
    })}
    <${Plot} title="Journal syncs" format=${rate} times=${times} span="six hours" lines=${[{ label: "syncs", values: flushes }]} />
    <${Plot} title="Batches per sync" format=${count1} times=${times} span="six hours" lines=${[{ label: "batches", values: batches }]} />
    <${Plot} title="Journal" format=${bytes} times=${times} span="six hours" lines=${[{ label: "journal", values: series.get("journal_bytes") ?? [] }, { label: "backlog", values: series.get("backlog_bytes") ?? [] }]} />
    <${Plot} title="Room on the disk" format=${bytes} times=${times} span="six hours" lines=${[{ label: "free", values: series.get("disk_free_bytes") ?? [] }]} />
  </section>`;
}

/** @param {number | null} value */
function count1(value) {
  return value === null ? "–" : String(Math.round(value * 10) / 10);
}
