// Now: what is my broker doing, and is anything wrong?

import { Holder, GroupLink, PartitionLink } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { Plot } from "../parts/plot.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Problem } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { announce } from "../shell/announce.js";
import { ask, apiPath } from "../shell/api.js";
import { barnabas, curl } from "../shell/commands.js";
import { bytes, bytesRate, count, counted, milliseconds, percent, rate } from "../shell/format.js";
import { html, useEffect, useRef, useState } from "../shell/html.js";
import { useLive } from "../shell/live.js";
import { path, query, setQuery } from "../shell/location.js";

/** @type {{ title: string, names: [string, string][], format: (value: any) => string }[]} */
const PLOTS = [
  { title: "Records in", names: [["records_in", "in"]], format: rate },
  { title: "Bytes", names: [["bytes_in", "in"], ["sent_bytes", "out"]], format: bytesRate },
  { title: "Produce latency", names: [["produce_p50_ms", "p50"], ["produce_p99_ms", "p99"]], format: milliseconds },
  { title: "Fetch latency", names: [["fetch_p50_ms", "p50"], ["fetch_p99_ms", "p99"]], format: milliseconds },
  { title: "Journal sync", names: [["flush_p50_ms", "p50"], ["flush_p99_ms", "p99"]], format: milliseconds },
  { title: "Event loop", names: [["loop_busy", "busy"]], format: percent },
  { title: "Open transactions", names: [["transactions_open", "open"]], format: count },
];
const SPANS = { "10min": { step: 1, points: 600, words: "ten minutes" }, "6h": { step: 10, points: 2160, words: "six hours" } };
/** @typedef {{ times: number[], values: Map<string, (number | null)[]> }} Past */

export function Now() {
  const live = useLive("overview").value;
  const span = query.value.range === "6h" ? SPANS["6h"] : SPANS["10min"];
  const past = usePast(span, live.state);
  const state = live.state;
  useEffect(() => {
    if (state) announce(summary(state));
  }, [state]);
  return html`<${Screen} title="Now" question="What is the broker doing, and is anything wrong?" commands=${[curl(apiPath(["overview"])), barnabas("transactions", "list")]}>
    ${live.error && html`<${Problem} error=${live.error} />`}
    ${state === null ? html`<p class="faint">Loading</p>` : html`<${Health} state=${state} />`}
    <label class="choice">Range
      <select value=${query.value.range ?? "10min"} onChange=${(/** @type {any} */ event) => setQuery({ range: event.currentTarget.value === "6h" ? "6h" : null })}>
        <option value="10min">Ten minutes</option><option value="6h">Six hours</option>
      </select>
    </label>
    <section class="plots" aria-label="Rates and latencies">
      ${PLOTS.map(({ title, names, format }) => html`<${Plot} key=${title} title=${title} format=${format} span=${span.words} times=${past.times}
        lines=${names.map(([name, label]) => ({ label, values: past.values.get(name) ?? [] }))} />`)}
    </section>
    ${state && html`<${Waiting} worst=${state.worst} /><${Behind} worst=${state.worst} />`}
  <//>`;
}

/** @param {import("../api.d.ts").Overview} state */
function summary(state) {
  return `${rate(state.rates.records_in ?? null)} records in, ${counted(state.transactions_open, "open transaction")}`;
}

/** @param {{ state: import("../api.d.ts").Overview }} given */
function Health({ state }) {
  const wrong = Object.entries(state.checks).filter(([, found]) => found !== "ok");
  return html`
    ${wrong.length
      ? html`<ul class="checks">${wrong.map(([name, found]) => html`<li key=${name}><${Mark} kind="bad">${name}: ${found}<//></li>`)}</ul>`
      : html`<p><${Mark} kind="good">Clients are served.<//></p>`}
    <${Facts} figures=${[
      ["Topics", html`<a href="/topics">${count(state.topics)}</a>`],
      ["Partitions", count(state.partitions)],
      ["Groups", html`<a href="/groups">${count(state.worst?.groups ?? null)}</a>`],
      ["Transactional ids", html`<a href="/transactions">${count(state.transactional_ids)}</a>`],
      ["Open transactions", html`<a href=${path(["transactions"])}>${count(state.transactions_open)}</a>`],
      ["Oldest open for", html`<${Age} since=${state.oldest_start_time_ms} />`],
      ["Connections", html`<a href="/clients">${count(state.connections)}</a>`],
      ["Journal", html`<a href="/storage">${bytes(state.journal_bytes)}</a>`],
      ["Room on the disk", html`<a href="/storage">${bytes(state.disk_free_bytes)}</a>`],
      ["Node", `${state.node_id} of ${state.cluster_id}, ${state.version}`],
    ]} />`;
}

/** @param {{ worst: import("../api.d.ts").Worst | null }} given */
function Waiting({ worst }) {
  const columns = [
    { title: "Partition", cell: (/** @type {any} */ row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} offset=${row.stable_offset} opens />` },
    { title: "Held back", isNumber: true, cell: (/** @type {any} */ row) => count(row.held_back) },
    { title: "By", cell: (/** @type {any} */ row) => html`<${Holder} holder=${row.transactions[0] ?? null} />` },
    { title: "Client", cell: (/** @type {any} */ row) => row.transactions[0]?.transaction?.client ?? "–" },
    { title: "Open for", isNumber: true, cell: (/** @type {any} */ row) => html`<${Age} since=${row.transactions[0]?.transaction?.start_time_ms ?? null} />` },
  ];
  return html`<section><h2>Readers that wait for a transaction</h2>
    ${worst === null && html`<p class="faint">Looking</p>`}
    ${worst && !worst.held_back.length ? html`<p><${Mark} kind="good">No reader of committed records waits.<//></p>` : null}
    ${worst?.held_back.length
      ? html`<${Table} label="Readers that wait" columns=${columns} rows=${worst.held_back} rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} />`
      : null}
  </section>`;
}

/** @param {{ worst: import("../api.d.ts").Worst | null }} given */
function Behind({ worst }) {
  const columns = [
    { title: "Group", cell: (/** @type {any} */ row) => html`<${GroupLink} name=${row.group} opens />` },
    { title: "State", cell: (/** @type {any} */ row) => row.state },
    { title: "Can be read now", isNumber: true, cell: (/** @type {any} */ row) => count(row.lag_readable) },
    { title: "Held back", isNumber: true, cell: (/** @type {any} */ row) => count(row.lag_held_back) },
  ];
  return html`<section><h2>Groups that are behind</h2>
    ${worst === null && html`<p class="faint">Looking</p>`}
    ${worst && !worst.lagging.length ? html`<${Empty}>No group is behind.<//>` : null}
    ${worst?.lagging.length
      ? html`<${Table} label="Groups that are behind" columns=${columns} rows=${worst.lagging} rowKey=${(/** @type {any} */ row) => row.group} />`
      : null}
  </section>`;
}

/**
 * The past of all plots: what the broker has recorded, and behind it what has come in since.
 * @param {{ step: number, points: number }} span
 * @param {any} state
 * @returns {Past}
 */
function usePast(span, state) {
  const [past, setPast] = useState(/** @type {Past} */ ({ times: [], values: new Map() }));
  const latest = useRef(0);
  const series = PLOTS.flatMap(({ names }) => names.map(([name]) => name));
  useEffect(() => {
    const asking = new AbortController();
    async function look() {
      try {
        const found = await ask(apiPath(["history"], { series: series.join(), step_s: span.step }), { signal: asking.signal });
        latest.current = Number(found.times_ms.at(-1) ?? 0);
        setPast({ times: found.times_ms.map(Number), values: new Map(found.series.map((/** @type {any} */ each) => [each.name, each.values])) });
      } catch {
        // Without a history the plots begin now; why it is refused, the screen says above.
      }
    }
    look();
    const timer = span.step > 1 ? setInterval(look, 10_000) : 0;
    return () => {
      asking.abort();
      clearInterval(timer);
    };
  }, [span]);
  useEffect(() => {
    if (state === null || span.step > 1 || Number(state.as_of) <= latest.current + 500) return;
    latest.current = Number(state.as_of);
    setPast(({ times, values }) => ({
      times: [...times, latest.current].slice(-span.points),
      values: new Map(series.map((name) => [name, [...(values.get(name) ?? times.map(() => null)), state.rates[name] ?? null].slice(-span.points)])),
    }));
  }, [state]);
  return past;
}
