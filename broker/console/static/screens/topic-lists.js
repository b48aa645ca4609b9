// The lists of a topic's screen: partitions, writers, readers, blocking transactions, configurations.

import { GroupLink, Blocker, PartitionLink, TransactionLink } from "../parts/links.js";
import { List, Table } from "../parts/list.js";
import { Empty, Mark, Shown } from "../parts/states.js";
import { Age, Time } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { bytes, count } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";
import { path, query, setQuery } from "../shell/location.js";

/** @typedef {import("../parts/list.js").Column} Column */

/** @param {string} topic @returns {Column[]} */
const partitionsOf = (topic) => [
  { title: "Partition", sort: "partition", cell: (row) => html`<${PartitionLink} isOfScreen topic=${topic} partition=${row.partition} opens />` },
  { title: "Start", isNumber: true, cell: (row) => count(row.start_offset) },
  { title: "Last stable", isNumber: true, cell: (row) => count(row.stable_offset), help: "Offset at which read_committed consumers stop" },
  { title: "End", sort: "end_offset", isNumber: true, cell: (row) => count(row.end_offset), help: "High watermark: offset at which all consumers stop" },
  { title: "Blocked", sort: "blocked_offsets", isNumber: true, cell: (row) => (Number(row.blocked_offsets) ? html`<${Mark} kind="warn">${count(row.blocked_offsets)}<//>` : "0") },
  { title: "Size", sort: "size_bytes", isNumber: true, cell: (row) => bytes(row.size_bytes) },
  { title: "Segments", isNumber: true, cell: (row) => count(row.segments) },
  { title: "Leader epoch", isNumber: true, cell: (row) => count(row.leader_epoch) },
];

/** @param {{ topic: string }} given */
export function Partitions({ topic }) {
  return html`<${List} label="Partitions" parts=${["topics", topic, "partitions"]} columns=${partitionsOf(topic)} sort="partition" hasFilter=${false}
    rowKey=${(/** @type {any} */ row) => String(row.partition)} empty=${html`<${Empty}>The topic has no partitions.<//>`} />`;
}

/** @param {string} topic @returns {Column[]} */
const producersOf = (topic) => [
  { title: "Producer", cell: (row) => (row.transactional_id === null ? html`${row.producer_id}` : html`<${TransactionLink} name=${row.transactional_id} opens />`) },
  { title: "Id, epoch", isNumber: true, cell: (row) => `${row.producer_id}, ${row.producer_epoch}` },
  { title: "Partition", sort: "partition", isNumber: true, cell: (row) => html`<${PartitionLink} isOfScreen topic=${topic} partition=${row.partition} />` },
  { title: "Last record", sort: "last_write_ms", cell: (row) => html`<${Time} at=${row.last_write_ms} />` },
  { title: "At offset", isNumber: true, cell: (row) => lastOf(topic, row) },
  { title: "Sequence", isNumber: true, cell: (row) => count(row.last_sequence) },
  { title: "In a transaction", cell: (row) => openOf(topic, row) },
];

/**
 * @param {string} topic
 * @param {import("../api.d.ts").ProducerRow} row
 */
function lastOf(topic, row) {
  if (row.last_offset === null) return "–";
  return html`<a href=${recordAt(topic, row, row.last_offset)}>${count(row.last_offset)}</a>`;
}

/**
 * @param {string} topic
 * @param {import("../api.d.ts").ProducerRow} row
 */
function openOf(topic, row) {
  if (row.transaction_start_offset === null) return "no";
  return html`<${Mark} kind="warn">since offset <a href=${recordAt(topic, row, row.transaction_start_offset)}>${count(row.transaction_start_offset)}</a><//>`;
}

/**
 * The records from an offset on, as they are, with this one open.
 * @param {string} topic
 * @param {{ partition: number }} row
 * @param {number | string} offset
 */
function recordAt(topic, { partition }, offset) {
  return path(["topics", topic, "records"], { partition, from: `offset:${offset}`, order: "oldest", view: "all", record: `${partition}:${offset}` });
}

/** @param {{ topic: string }} given */
export function Producers({ topic }) {
  const { producer, open } = query.value;
  const options = html`
    <label><input type="checkbox" checked=${open === "true"} onChange=${(/** @type {any} */ event) => setQuery({ open: event.currentTarget.checked ? "true" : null })} /> Only in a transaction</label>
    ${producer ? html`<span>Only producer ${producer} <button type="button" class="small" onClick=${() => setQuery({ producer: null })}>Show all</button></span>` : null}`;
  const isChosen = producer || open === "true";
  return html`<${List} label="Producers" parts=${["topics", topic, "producers"]} columns=${producersOf(topic)} prefix="producers_" sort="-last_write_ms" hasFilter=${false} options=${options}
    asked=${{ producer_id: producer ?? null, open: open === "true" ? true : null }} rowKey=${(/** @type {any} */ row) => `${row.partition} ${row.producer_id}`}
    empty=${isChosen ? html`<${Empty}>No producer matches.<//>` : html`<${Empty}>No producers with a producer ID. Producers without one are not listed.<//>`} />`;
}

/** @type {Column[]} */
const GROUPS = [
  { title: "Group", sort: "group", cell: (row) => html`<${GroupLink} name=${row.group} opens />` },
  { title: "Can be read now", sort: "lag_readable", isNumber: true, cell: (row) => count(row.lag_readable) },
  { title: "Blocked", sort: "lag_blocked", isNumber: true, cell: (row) => count(row.lag_blocked) },
  { title: "State", cell: (row) => row.state },
  { title: "Members", isNumber: true, cell: (row) => count(row.members) },
  { title: "Partitions", isNumber: true, cell: (row) => count(row.partitions), help: "Of this topic, with committed offsets" },
];

/** @param {{ topic: string }} given */
export function Groups({ topic }) {
  return html`<${List} label="Groups" parts=${["topics", topic, "groups"]} columns=${GROUPS} prefix="groups_" sort="group"
    rowKey=${(/** @type {any} */ row) => row.group} empty=${html`<${Empty} command=${`barnabas consume ${topic} --group my-group`}>No group has committed offsets of this topic. Consume with a group:<//>`} />`;
}

/** @type {Column[]} */
const READERS = [
  { title: "Client", cell: (row) => html`<bdi>${row.client === null ? "–" : row.client || "(without a name)"}</bdi>` },
  { title: "Address", cell: (row) => row.address ?? "–" },
  { title: "Partition", isNumber: true, cell: (row) => count(row.partition) },
  { title: "Position", isNumber: true, cell: (row) => count(row.position) },
  { title: "Can be read now", isNumber: true, cell: (row) => count(row.lag) },
  { title: "Blocked", isNumber: true, cell: (row) => count(row.lag_blocked) },
  { title: "Reads", cell: (row) => row.isolation_seen },
  { title: "In a group", cell: (row) => (row.in_group ? "yes" : "no") },
];

/** @param {{ topic: string }} given */
export function Readers({ topic }) {
  const readers = useFetched(apiPath(["readers"], { topic, limit: 200 })).seen.value;
  return html`<${Shown} seen=${readers}>${(/** @type {any} */ data) => data.items.length
    ? html`<${Table} label="Consumer connections" columns=${READERS} rows=${data.items} rowKey=${(/** @type {any} */ row) => `${row.connection} ${row.partition}`} />`
    : html`<${Empty}>No connection has fetched from this topic recently.<//>`}<//>`;
}

/** @param {string} topic @returns {Column[]} */
const blockedOf = (topic) => [
  { title: "Partition", cell: (row) => html`<${PartitionLink} isOfScreen topic=${topic} partition=${row.partition} offset=${row.stable_offset} opens />` },
  { title: "Blocked", isNumber: true, cell: (row) => count(row.blocked_offsets) },
  { title: "Blocked by", cell: (row) => html`<${Blocker} transaction=${row.transactions[0] ?? null} />` },
  { title: "Client", cell: (row) => row.transactions[0]?.transaction?.client ?? "–" },
  { title: "Open for", isNumber: true, cell: (row) => html`<${Age} since=${row.transactions[0]?.transaction?.start_time_ms ?? null} />` },
  { title: "Since offset", isNumber: true, cell: (row) => html`<a href=${recordAt(topic, row, row.stable_offset)}>${count(row.stable_offset)}</a>` },
];

/** Transactions that are over sooner come and go between two looks. */
const SHORT_MS = 2000;

/**
 * Whether a partition's readers wait for a transaction that is known, and not over in a moment.
 * @param {{ transactions: readonly import("../api.d.ts").OpenTransaction[] }} row
 * @param {number} now  The broker's time.
 */
export function isBlocked({ transactions: [first] }, now) {
  if (!first) return false;
  return first.hanging || now - Number(first.transaction?.start_time_ms ?? first.last_timestamp_ms) >= SHORT_MS;
}

/** @param {{ topic: string }} given */
export function Held({ topic }) {
  const seen = useFetched(apiPath(["blocked-partitions"], { filter: topic, sort: "-blocked_offsets", limit: 1000 })).seen.value;
  const rows = (seen.data?.items ?? []).filter((/** @type {any} */ row) => row.topic === topic && isBlocked(row, Number(seen.data.as_of)));
  if (!rows.length) return null;
  return html`<h2>Blocking transactions</h2>
    <${Table} label="Blocking transactions" columns=${blockedOf(topic)} rows=${rows} rowKey=${(/** @type {any} */ row) => String(row.partition)} />`;
}

/** @type {Column[]} */
const CONFIGS = [
  { title: "Key", cell: (row) => html`<code>${row.key}</code>` },
  { title: "Value", cell: (row) => html`<code>${row.value ?? "(hidden)"}</code>` },
  { title: "Set by", cell: (row) => row.source },
];

/** @param {{ rows: any[] | null }} given */
export function Configs({ rows }) {
  if (rows === null) return html`<p class="faint">Configurations need the permission DescribeConfigs on the topic.</p>`;
  const changed = rows.filter((row) => row.source !== "default");
  return html`
    ${changed.length
      ? html`<${Table} label="Changed configurations" columns=${CONFIGS} rows=${changed} rowKey=${(/** @type {any} */ row) => row.key} />`
      : html`<p class="faint">All configurations have their defaults.</p>`}
    <details><summary>All ${count(rows.length)}</summary>
      <${Table} label="All configurations" columns=${CONFIGS} rows=${rows} rowKey=${(/** @type {any} */ row) => row.key} />
    </details>`;
}
