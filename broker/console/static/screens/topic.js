// A topic: what is in it, who holds its readers back?

import { Action } from "../parts/action.js";
import { PartitionLink } from "../parts/links.js";
import { List, Table } from "../parts/list.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Shown } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { barnabas, kafka, kcat } from "../shell/commands.js";
import { bytes, count, counted } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";
import { path } from "../shell/location.js";

/** @param {string} topic @returns {import("../parts/list.js").Column[]} */
const partitionsOf = (topic) => [
  { title: "Partition", sort: "partition", cell: (row) => html`<${PartitionLink} topic=${topic} partition=${row.partition} opens />` },
  { title: "Start", isNumber: true, cell: (row) => count(row.start_offset) },
  { title: "Last stable", isNumber: true, cell: (row) => count(row.stable_offset), help: "Where readers of committed records stop" },
  { title: "End", sort: "end_offset", isNumber: true, cell: (row) => count(row.end_offset) },
  { title: "Held back", sort: "held_back", isNumber: true, cell: (row) => count(row.held_back) },
  { title: "Size", sort: "size_bytes", isNumber: true, cell: (row) => bytes(row.size_bytes) },
  { title: "Segments", isNumber: true, cell: (row) => count(row.segments) },
  { title: "Leader epoch", isNumber: true, cell: (row) => count(row.leader_epoch) },
];

/** @type {import("../parts/list.js").Column[]} */
const CONFIGS = [
  { title: "Key", cell: (row) => html`<code>${row.key}</code>` },
  { title: "Value", cell: (row) => html`<code>${row.value ?? "(hidden)"}</code>` },
  { title: "Set by", cell: (row) => row.source },
];

/** @type {import("../parts/list.js").Column[]} */
const READERS = [
  { title: "Client", cell: (row) => row.client || "(without a name)" },
  { title: "Address", cell: (row) => row.address },
  { title: "Partition", isNumber: true, cell: (row) => count(row.partition) },
  { title: "Position", isNumber: true, cell: (row) => count(row.position) },
  { title: "Can be read now", isNumber: true, cell: (row) => count(row.lag) },
  { title: "Held back", isNumber: true, cell: (row) => count(row.lag_held_back) },
  { title: "Reads", cell: (row) => row.isolation_seen },
  { title: "In a group", cell: (row) => (row.in_group ? "yes" : "no") },
];

/** @param {{ parts: string[] }} given */
export function Topic({ parts }) {
  const name = parts[1];
  const { seen, refresh } = useFetched(apiPath(["topics", name]));
  const readers = useFetched(apiPath(["readers"], { topic: name, limit: 200 })).seen.value;
  const on = { topic: name };
  const actions = html`
    <a class="button" href=${path(["topics", name, "records"])}>Records</a>
    <${Action} name="records.produce" on=${on} onDone=${refresh} commands=${[barnabas("produce", name), kcat("-P", "-t", name)]} />
    <${Action} name="topic.configure" on=${on} onDone=${refresh} />
    <${Action} name="topic.add_partitions" on=${on} onDone=${refresh} />
    <${Action} name="topic.delete_records" on=${on} onDone=${refresh} />
    <${Action} name="topic.delete" on=${on} onDone=${refresh} commands=${[barnabas("topics", "delete", name)]} />`;
  return html`<${Screen} title=${name} question="What is in it, and who reads it?" above=${{ href: "/topics", words: "Topics" }} actions=${actions}
    commands=${[barnabas("topics", "describe", name), kcat("-L", "-t", name), kafka("kafka-topics", "--describe", "--topic", name)]}>
    <${Shown} seen=${seen.value}>${(/** @type {any} */ topic) => html`<${Summary} topic=${topic} />`}<//>
    <h2>Partitions</h2>
    <${List} label="Partitions" parts=${["topics", name, "partitions"]} columns=${partitionsOf(name)} sort="partition" hasFilter=${false}
      rowKey=${(/** @type {any} */ row) => String(row.partition)} empty=${html`<${Empty}>It has no partitions.<//>`} />
    <h2>Connections that read it</h2>
    <${Shown} seen=${readers}>${(/** @type {any} */ data) => html`<${Readers} rows=${data.items} />`}<//>
    <h2>Configurations</h2>
    <${Shown} seen=${seen.value}>${(/** @type {any} */ topic) => html`<${Configs} rows=${topic.configs} />`}<//>
  <//>`;
}

/** @param {{ topic: any }} given  A TopicDescription of the API. */
function Summary({ topic }) {
  const held = Number(topic.held_back);
  return html`
    <p>${held
      ? html`<${Mark} kind="warn">${counted(topic.held_back, "record")} ${held === 1 ? "waits" : "wait"} for open transactions.<//>`
      : html`<${Mark} kind="good">Readers of committed records see all of it.<//>`}</p>
    <${Facts} figures=${[
      ["Partitions", count(topic.partitions)],
      ["Records at most", count(topic.records_max)],
      ["Size", bytes(topic.size_bytes)],
      ["Held back", count(topic.held_back)],
      ["Cleanup", topic.cleanup_policy],
      ["Id", html`<code>${topic.topic_id}</code>`],
    ]} />`;
}

/** @param {{ rows: any[] }} given */
function Readers({ rows }) {
  if (!rows.length) return html`<${Empty}>No connection has fetched from it lately.<//>`;
  return html`<${Table} label="Connections that read it" columns=${READERS} rows=${rows} rowKey=${(/** @type {any} */ row) => `${row.connection} ${row.partition}`} />`;
}

/** @param {{ rows: any[] | null }} given */
function Configs({ rows }) {
  if (rows === null) return html`<p class="faint">Configurations are another right: DescribeConfigs on the topic.</p>`;
  const changed = rows.filter((row) => row.source !== "default");
  return html`
    ${changed.length
      ? html`<${Table} label="Configurations that are set" columns=${CONFIGS} rows=${changed} rowKey=${(/** @type {any} */ row) => row.key} />`
      : html`<p class="faint">All are at their defaults.</p>`}
    <details><summary>All ${count(rows.length)}</summary>
      <${Table} label="All configurations" columns=${CONFIGS} rows=${rows} rowKey=${(/** @type {any} */ row) => row.key} />
    </details>`;
}
