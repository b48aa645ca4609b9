// Now: what is my broker doing, and is anything wrong?

import { Heat } from "../parts/heat.js";
import { Blocker, GroupLink, PartitionLink } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { NoHistory, quotient, timeUntilFull, useHistory } from "../parts/past.js";
import { Plot } from "../parts/plot.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Problem } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { troublesOf } from "../parts/trouble.js";
import { announce } from "../shell/announce.js";
import { apiPath, awaySince } from "../shell/api.js";
import { barnabas, curl } from "../shell/commands.js";
import { bytes, bytesRate, count, counted, decimal, milliseconds, percent, rate } from "../shell/format.js";
import { html, useEffect, useState } from "../shell/html.js";
import { useLive } from "../shell/live.js";
import { path, query, setQuery } from "../shell/location.js";

/** @typedef {import("../api.d.ts").Overview} Overview */

/** What is made of two series. */
const BATCHES_PER_SYNC = "batches_per_sync";

/** @type {{ title: string, names: [string, string][], format: (value: any) => string }[]} */
const PLOTS = [
  { title: "Records in", names: [["records_in", "in"]], format: rate },
  { title: "Bytes", names: [["bytes_in", "in"], ["sent_bytes", "out"]], format: bytesRate },
  { title: "Produce latency", names: [["produce_p50_ms", "p50"], ["produce_p99_ms", "p99"]], format: milliseconds },
  { title: "Fetch latency", names: [["fetch_p50_ms", "p50"], ["fetch_p99_ms", "p99"]], format: milliseconds },
  { title: "Journal sync", names: [["flush_p50_ms", "p50"], ["flush_p99_ms", "p99"]], format: milliseconds },
  { title: "Batches per sync", names: [[BATCHES_PER_SYNC, "batches"]], format: decimal },
  { title: "Event loop busy", names: [["loop_busy", "busy"]], format: percent },
  { title: "Event loop lag", names: [["loop_lag_p50_ms", "p50"], ["loop_lag_p99_ms", "p99"]], format: milliseconds },
  { title: "Open transactions", names: [["transactions_open", "open"]], format: count },
  { title: "Duplicate batches rejected", names: [["duplicates", "batches"]], format: rate },
];
const SHOWN = PLOTS.flatMap(({ names }) => names.map(([name]) => name)).filter((name) => name !== BATCHES_PER_SYNC);
const HISTORY = [...SHOWN, "flushes", "flushed_batches", "flush"];
const SPANS = { "10min": { step: 1, lengthMs: 600_000, words: "ten minutes" }, "6h": { step: 10, lengthMs: 21_600_000, words: "six hours" } };
/** How long what came in is kept, until the history has it. */
const KEPT_MS = 60_000;
/** A disk that is full in less time than this is worth a word on the first screen. */
const SOON_MS = 86_400_000;
const HALF_SECOND_MS = 500;

export function Now() {
  const live = useLive("overview").value;
  const span = query.value.range === "6h" ? SPANS["6h"] : SPANS["10min"];
  const past = usePast(span, live.state);
  const state = live.state;
  useEffect(() => {
    if (state) announce(summary(state));
  }, [state]);
  return html`<${Screen} title="Now" question="State of the broker, and problems" commands=${[curl(apiPath(["overview"])), barnabas("transactions", "list")]}>
    ${live.error && html`<${Problem} error=${live.error} />`}
    ${state === null ? html`<p class="faint">Loading</p>` : html`<${Health} state=${state} />`}
    ${state && html`<div class="pair"><${Waiting} worst=${state.worst} /><${Behind} worst=${state.worst} /></div>`}
    ${state && !isRecorded(state) ? html`<${NoHistory} />` : html`<${Plots} span=${span} past=${past} />`}
  <//>`;
}

/** @param {{ span: { words: string }, past: import("../parts/past.js").Past }} given */
function Plots({ span, past }) {
  const batches = quotient(past.values.get("flushed_batches"), past.values.get("flushes"));
  const heat = past.heat.get("flush");
  return html`
    <label class="choice">Range
      <select value=${query.value.range ?? "10min"} onChange=${(/** @type {any} */ event) => setQuery({ range: event.currentTarget.value === "6h" ? "6h" : null })}>
        <option value="10min">Ten minutes</option><option value="6h">Six hours</option>
      </select>
    </label>
    <section class="plots" aria-label="Rates and latencies">
      ${PLOTS.map(({ title, names, format }) => html`<${Plot} key=${title} title=${title} format=${format} span=${span.words} times=${past.times}
        lines=${names.map(([name, label]) => ({ label, values: name === BATCHES_PER_SYNC ? batches : (past.values.get(name) ?? []) }))} />`)}
      ${heat && html`<${Heat} title="Journal sync times" ...${heat} />`}
    </section>`;
}

/**
 * Whether there is a past: without one there are no rates either.
 * @param {Overview} state
 */
function isRecorded(state) {
  return Object.keys(state.rates).length > 0;
}

/** @param {Overview} state */
function summary(state) {
  const moving = isRecorded(state) ? `${rate(state.rates.records_in ?? null)} records in, ` : "";
  const wrong = troublesOf(state.worst).map(({ words }) => `${words}, `);
  return `${wrong.join("")}${moving}${counted(state.transactions_open, "open transaction")}`;
}

/** @param {{ state: Overview }} given */
function Status({ state }) {
  // What was well is not known any more: the shell says since when.
  if (awaySince.value !== null) return null;
  const wrong = Object.entries(state.checks).filter(([, found]) => found !== "ok");
  const warnings = Object.entries(state.warnings);
  const troubles = troublesOf(state.worst);
  if (!wrong.length && !warnings.length && !troubles.length) return html`<p><${Mark} kind="good">The broker serves clients.<//></p>`;
  return html`<ul class="checks" aria-label="Problems">
    ${wrong.map(([name, found]) => html`<li key=${name}><${Mark} kind="bad">${name}: ${found}<//></li>`)}
    ${warnings.map(([name, found]) => html`<li key=${`${name}!`}><${Mark} kind="warn">${name}: ${found}<//></li>`)}
    ${troubles.map(({ kind, words, href }) => html`<li key=${href}><${Mark} kind=${kind}><a href=${href}>${words}</a><//></li>`)}
  </ul>`;
}

/** @param {{ state: Overview }} given */
function Health({ state }) {
  const untilFull = timeUntilFull(state.full_in_ms);
  const isSoon = state.full_in_ms !== null && Number(state.full_in_ms) < SOON_MS;
  return html`
    <${Status} state=${state} />
    <${Facts} figures=${[
      ["Topics", html`<a href="/topics">${count(state.topics)}</a>`],
      ["Partitions", count(state.partitions)],
      ["Groups", html`<a href="/groups">${count(state.worst?.groups ?? null)}</a>`],
      ["Transactional ids", html`<a href="/transactions">${count(state.transactional_ids)}</a>`],
      ["Open transactions", html`<a href=${path(["transactions"])}>${count(state.transactions_open)}</a>`],
      ["Longest open", html`<${Age} since=${state.oldest_start_time_ms} />`],
      ["Connections", html`<a href="/clients">${count(state.connections)}</a>`],
      ["Journal", html`<a href="/storage">${bytes(state.journal_bytes)}</a>`],
      ["Free disk space", html`<a href="/storage">${bytes(state.disk_free_bytes)}</a>${isSoon && html` <span title="At the rate of the last hour, by all writers of the device">${untilFull}</span>`}`],
      ["Duplicates rejected", html`<span title="Batches since the start that were rejected as duplicates">${count(state.duplicates)}</span>`],
      ["Node", String(state.node_id)],
      ["Cluster", html`<code>${state.cluster_id}</code>`],
      ["Version", state.version],
    ]} />`;
}

/** @param {{ worst: import("../api.d.ts").Worst | null }} given */
function Waiting({ worst }) {
  const columns = [
    { title: "Partition", cell: (/** @type {any} */ row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} offset=${row.stable_offset} opens />` },
    { title: "Blocked", isNumber: true, cell: (/** @type {any} */ row) => count(row.blocked_offsets) },
    { title: "By", cell: (/** @type {any} */ row) => html`<${Blocker} transaction=${row.transactions[0] ?? null} />` },
    { title: "Client", cell: (/** @type {any} */ row) => row.transactions[0]?.transaction?.client ?? "–" },
    { title: "Open for", isNumber: true, cell: (/** @type {any} */ row) => html`<${Age} since=${row.transactions[0]?.transaction?.start_time_ms ?? null} />` },
  ];
  return html`<section><h2>Partitions blocked by a transaction</h2>
    ${worst === null && html`<p class="faint">Looking</p>`}
    ${worst && !worst.blocked_partitions.length ? html`<p><${Mark} kind="good">No open transaction blocks a read_committed consumer.<//></p>` : null}
    ${worst?.blocked_partitions.length
      ? html`<${Table} label="Blocked partitions" columns=${columns} rows=${worst.blocked_partitions} rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} />`
      : null}
  </section>`;
}

/** @param {{ worst: import("../api.d.ts").Worst | null }} given */
function Behind({ worst }) {
  const columns = [
    { title: "Group", cell: (/** @type {any} */ row) => html`<${GroupLink} name=${row.group} opens />` },
    { title: "Can be read now", isNumber: true, cell: (/** @type {any} */ row) => count(row.lag_readable) },
    { title: "Blocked", isNumber: true, cell: (/** @type {any} */ row) => count(row.lag_blocked) },
    { title: "State", cell: (/** @type {any} */ row) => row.state },
  ];
  return html`<section><h2>Groups with lag</h2>
    ${worst === null && html`<p class="faint">Looking</p>`}
    ${worst && !worst.lagging.length ? html`<${Empty}>No group has lag.<//>` : null}
    ${worst?.lagging.length
      ? html`<${Table} label="Groups with lag" columns=${columns} rows=${worst.lagging} rowKey=${(/** @type {any} */ row) => row.group} />`
      : null}
  </section>`;
}

/**
 * The past of all plots: what the broker has recorded, and, of ten minutes, behind it what comes in every second.
 * @param {{ step: number, lengthMs: number }} span
 * @param {Overview | null} state
 * @returns {import("../parts/past.js").Past}
 */
function usePast(span, state) {
  const recorded = useHistory(HISTORY, span, state && isRecorded(state) ? Number(state.as_of) : null);
  const [since, setSince] = useState(/** @type {{ at: number, rates: Record<string, number | null> }[]} */ ([]));
  useEffect(() => setSince([]), [span]);
  useEffect(() => {
    if (state === null || span.step > 1) return;
    const at = Number(state.as_of);
    setSince((before) => [...before.filter((each) => each.at > at - KEPT_MS && each.at < at), { at, rates: state.rates }]);
  }, [state]);
  const begin = (recorded.times.at(-1) ?? Infinity) + HALF_SECOND_MS;
  const more = since.filter((each) => each.at > begin);
  return {
    ...recorded,
    times: [...recorded.times, ...more.map((each) => each.at)],
    values: new Map([...recorded.values].map(([name, values]) => [name, [...values, ...more.map((each) => each.rates[name] ?? null)]])),
  };
}
