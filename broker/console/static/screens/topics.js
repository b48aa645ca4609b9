// Topics: which, how big, who uses them?

import { barnabas, kafka, kcat } from "../shell/commands.js";
import { bytes, count } from "../shell/format.js";
import { html } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";
import { Action } from "../parts/action.js";
import { TopicLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Topic", sort: "topic", cell: (row) => html`<${TopicLink} name=${row.topic} opens />` },
  { title: "Partitions", sort: "partitions", isNumber: true, cell: (row) => count(row.partitions) },
  { title: "Records", sort: "records_max", isNumber: true, cell: (row) => count(row.records_max), help: "At most: offsets of markers and of compacted records are counted" },
  { title: "Size", sort: "size_bytes", isNumber: true, cell: (row) => bytes(row.size_bytes) },
  { title: "Held back", sort: "held_back", isNumber: true, cell: (row) => count(row.held_back), help: "What readers of committed records may not see yet" },
  { title: "Cleanup", cell: (row) => row.cleanup_policy },
];

export function Topics() {
  const isInternal = query.value.internal === "true";
  const options = html`<label><input type="checkbox" checked=${isInternal}
    onChange=${(/** @type {any} */ event) => setQuery({ internal: event.currentTarget.checked ? "true" : null })} /> Internal topics</label>`;
  const empty = html`<${Empty} command="barnabas topics create orders">No topics yet. Make one, or have a producer make it:<//>`;
  return html`<${Screen} title="Topics" actions=${html`<${Action} name="topic.create" words="Create a topic" />`} commands=${[barnabas("topics", "list"), kcat("-L"), kafka("kafka-topics", "--list")]}>
    <${List} label="Topics" parts=${["topics"]} columns=${COLUMNS} rowKey=${(/** @type {any} */ row) => row.topic}
      sort="topic" asked=${{ internal: isInternal }} empty=${empty} options=${options} />
  <//>`;
}
