// Transactions: what is open, and who holds readers back?

import { Gantt, Legend } from "../parts/gantt.js";
import { Blocker, PartitionLink, short, TransactionLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Plot } from "../parts/plot.js";
import { Screen } from "../parts/screen.js";
import { Empty, Problem } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { barnabas, kafka } from "../shell/commands.js";
import { count, duration, rate } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";
import { useLive } from "../shell/live.js";
import { query, setQuery } from "../shell/location.js";
import { now } from "../shell/preferences.js";

const BARS_SHOWN = 40;
const OPEN_KINDS = /** @type {[string, string][]} */ ([["open", "open"], ["late", "open for more than half of its time"]]);
const ENDED_KINDS = /** @type {[string, string][]} */ ([
  ["committed", "committed"], ["aborted", "aborted by its producer"], ["timeout", "took too long"],
  ["fenced", "its producer was replaced"], ["operator", "ended by an operator"],
]);
const WORDS = new Map(ENDED_KINDS);
/** @type {[string, string][]} */
const ENDS = [
  ["transactions_committed", "committed"], ["aborted_by_client", "aborted"],
  ["aborted_by_timeout", "timeout"], ["aborted_by_fencing", "fenced"],
];

/** @type {import("../parts/list.js").Column[]} */
const BLOCKED = [
  { title: "Partition", sort: "topic", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} offset=${row.stable_offset} opens />` },
  { title: "Blocked", sort: "blocked_offsets", isNumber: true, cell: (row) => count(row.blocked_offsets) },
  { title: "Open transactions", isNumber: true, cell: (row) => count(row.open_count) },
  { title: "Blocked by", cell: (row) => html`<${Blocker} transaction=${row.transactions[0] ?? null} />` },
  { title: "Client", cell: (row) => named(row.transactions[0]?.transaction?.client) },
  { title: "Open for", isNumber: true, cell: (row) => html`<${Age} since=${row.transactions[0]?.transaction?.start_time_ms ?? null} />` },
];

/** @type {import("../parts/list.js").Column[]} */
const IDS = [
  { title: "Transactional id", sort: "transactional_id", cell: (row) => html`<${TransactionLink} name=${row.transactional_id} opens />` },
  { title: "State", cell: (row) => row.state },
  { title: "Begun", sort: "start_time_ms", isNumber: true, cell: (row) => html`<${Age} since=${row.start_time_ms} />` },
  { title: "Time left", isNumber: true, cell: (row) => (row.start_time_ms === null ? "–" : row.remaining_ms === null ? "no timeout" : duration(row.remaining_ms)) },
  { title: "Partitions", sort: "partition_count", isNumber: true, cell: (row) => count(row.partition_count) },
  { title: "Client", cell: (row) => named(row.client) },
  { title: "Host", cell: (row) => row.host ?? "–" },
];

/** @param {string | null | undefined} client */
function named(client) {
  return client === null || client === undefined ? "–" : short(client);
}

export function Transactions() {
  const { state, error } = useLive("transactions").value;
  const ended = useFetched(apiPath(["ended-transactions"], { limit: BARS_SHOWN })).seen.value;
  const onlyOpen = query.value.open === "true";
  const options = html`<label><input type="checkbox" checked=${onlyOpen}
    onChange=${(/** @type {any} */ event) => setQuery({ open: event.currentTarget.checked ? "true" : null })} /> Only open</label>`;
  const none = html`<${Empty}>No producer has used a transactional id yet.<//>`;
  return html`<${Screen} title="Transactions" question="Open transactions, and partitions that they block"
    commands=${[barnabas("transactions", "list"), kafka("kafka-transactions", "list")]}>
    ${error && html`<${Problem} error=${error} />`}
    <${Gantt} title="Open now" opens now=${now.value} empty=${state === null ? "Loading" : html`<${Empty}>No transaction is open.<//>`}
      bars=${(state?.items ?? []).slice(0, BARS_SHOWN).map((/** @type {any} */ row) => openBar(row, now.value))} />
    <${Legend} kinds=${OPEN_KINDS} />
    <${Gantt} title="Recently ended" now=${now.value} empty=${html`<${Empty}>No transaction has ended since the broker started.<//>`}
      bars=${(ended.data?.items ?? []).map(endedBar)} />
    ${ended.error && html`<${Problem} error=${ended.error} since=${ended.failedSince} />`}
    <${Legend} kinds=${ENDED_KINDS} />
    <${Ends} />
    <h2>Blocked partitions</h2>
    <${List} label="Blocked partitions" parts=${["blocked-partitions"]} columns=${BLOCKED} prefix="blocked_" sort="-blocked_offsets"
      rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} empty=${html`<${Empty}>No open transaction blocks a read_committed consumer.<//>`} />
    <h2>Transactional ids</h2>
    <${List} label="Transactional ids" parts=${["transactions"]} columns=${IDS} sort="-start_time_ms" asked=${{ open: onlyOpen }} options=${options}
      rowKey=${(/** @type {any} */ row) => row.transactional_id} empty=${none} />
  <//>`;
}

/**
 * @param {any} row  A TransactionRow of the API.
 * @param {number} at
 * @returns {import("../parts/gantt.js").Bar}
 */
function openBar(row, at) {
  const begin = Number(row.start_time_ms ?? at);
  const hasEnd = row.remaining_ms !== null;
  const isLate = hasEnd && at - begin > row.timeout_ms / 2;
  return {
    id: row.transactional_id,
    begin,
    end: null,
    deadline: hasEnd ? begin + row.timeout_ms : null,
    kind: isLate ? "late" : "open",
    words: hasEnd ? row.state : `${row.state}, without a timeout`,
  };
}

/**
 * @param {any} row  An EndedTransaction of the API.
 * @returns {import("../parts/gantt.js").Bar}
 */
function endedBar(row) {
  return {
    id: row.transactional_id,
    begin: Number(row.start_time_ms),
    end: Number(row.end_time_ms),
    deadline: null,
    kind: row.outcome,
    words: WORDS.get(row.outcome) ?? row.outcome,
  };
}

function Ends() {
  const asked = { series: ENDS.map(([name]) => name).join() };
  const { data } = useFetched(apiPath(["history"], asked)).seen.value;
  if (data === null) return null;
  const series = new Map(data.series.map((/** @type {any} */ each) => [each.name, each.values]));
  return html`<div class="plots"><${Plot} title="Ended" format=${rate} span="ten minutes" times=${data.times_ms.map(Number)}
    lines=${ENDS.map(([name, label]) => ({ label, values: series.get(name) ?? [] }))} /></div>`;
}
