// Clients: who is connected, doing what?

import { Action } from "../parts/action.js";
import { PartitionLink, short } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { bytesRate, count, duration } from "../shell/format.js";
import { html } from "../shell/html.js";

/** What the API calls what a connection waits for. @type {Record<string, string>} */
const STATES = {
  request: "busy",
  reader: "slow reader",
  disk: "waits for disk",
  answers: "responses pending",
  quota: "throttled",
  closing: "closing",
};

/** @param {readonly string[]} waits */
export function stateOf(waits) {
  return waits.map((each) => STATES[each] ?? each).join(", ") || "idle";
}

/** @type {import("../parts/list.js").Column[]} */
const CONNECTIONS = [
  { title: "Client", sort: "client", cell: (row) => short(row.client || "(without a name)") },
  { title: "Software", cell: (row) => (row.software ? html`<span class="software">${row.software} ${row.software_version}</span>` : "–") },
  { title: "Address", cell: (row) => row.address },
  { title: "User", cell: (row) => row.user },
  { title: "Connected for", isNumber: true, cell: (row) => html`<${Age} since=${row.since_ms} />` },
  { title: "In", isNumber: true, cell: (row) => bytesRate(row.received_bytes_per_s) },
  { title: "Out", isNumber: true, cell: (row) => bytesRate(row.sent_bytes_per_s) },
  { title: "Requests", isNumber: true, cell: (row) => count(row.requests) },
  { title: "Refused", isNumber: true, cell: (row) => count(row.refused) },
  { title: "Last request", cell: (row) => (row.last_api === null ? "–" : html`<span class="one-line">${row.last_api}, ${duration(row.idle_ms)} ago</span>`) },
  { title: "State", cell: (row) => stateOf(row.waits_for), help: "busy: a request is in progress, for example a Fetch that waits for records" },
  { title: "Reads", cell: (row) => row.isolation_seen ?? "–" },
  { title: "", cell: (row) => html`<${Action} name="connection.close" words="Close" look="small" on=${{ address: row.address }} />` },
];

/** @type {import("../parts/list.js").Column[]} */
const READERS = [
  { title: "Partition", sort: "topic", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} offset=${row.position} opens />` },
  { title: "Client", cell: (row) => row.client === null ? "–" : short(row.client || "(without a name)") },
  { title: "Address", cell: (row) => row.address ?? "–" },
  { title: "In a group", cell: (row) => (row.in_group ? "yes" : "no") },
  { title: "Reads", cell: (row) => row.isolation_seen },
  { title: "Position", isNumber: true, cell: (row) => count(row.position) },
  { title: "Can be read now", isNumber: true, cell: (row) => count(row.lag) },
  { title: "Blocked", isNumber: true, cell: (row) => count(row.lag_blocked) },
];

export function Clients() {
  return html`<${Screen} title="Clients" question="Connected clients and their requests" commands=${[curl(apiPath(["clients"])), curl(apiPath(["readers"]))]}>
    <h2>Connections</h2>
    <${List} label="Connections" parts=${["clients"]} columns=${CONNECTIONS} sort="client" rowKey=${(/** @type {any} */ row) => String(row.connection)}
      empty=${html`<${Empty} command="barnabas topics list">No client is connected. Connect one:<//>`} />
    <h2>Readers</h2>
    <p class="faint">Positions of the last fetches, also of consumers without a group, such as Spark's.</p>
    <${List} label="Readers" parts=${["readers"]} columns=${READERS} prefix="readers_" sort="topic"
      rowKey=${(/** @type {any} */ row) => `${row.connection} ${row.topic} ${row.partition}`} empty=${html`<${Empty}>No client fetches records now.<//>`} />
  <//>`;
}
