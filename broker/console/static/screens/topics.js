// Topics: which, how big, who uses them?

import { barnabas, kafka, kcat } from "../shell/commands.js";
import { bytes, count, difference, rate } from "../shell/format.js";
import { html, useRef } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";
import { Action } from "../parts/action.js";
import { TopicLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Topic", sort: "topic", cell: (row) => html`<${TopicLink} name=${row.topic} opens />${row.internal ? html` <span class="tag">internal</span>` : null}` },
  { title: "Partitions", sort: "partitions", isNumber: true, cell: (row) => count(row.partitions) },
  { title: "Records", sort: "records_max", isNumber: true, cell: (row) => count(row.records_max), help: "At most: offsets of markers and of compacted records are counted" },
  { title: "Records in", isNumber: true, cell: (row) => html`<${Written} row=${row} />`, help: "Offsets per second, measured while this page is open" },
  { title: "Groups", isNumber: true, cell: (row) => count(row.groups), help: "Consumer groups with committed offsets of the topic" },
  { title: "Size", sort: "size_bytes", isNumber: true, cell: (row) => bytes(row.size_bytes) },
  { title: "Blocked", sort: "blocked_offsets", isNumber: true, cell: (row) => count(row.blocked_offsets), help: "Records after the last stable offset, not yet visible to read_committed consumers" },
  { title: "Cleanup", cell: (row) => row.cleanup_policy },
];

/**
 * How fast a topic grows, by two looks at it: the broker keeps no history of single topics.
 * @param {{ row: import("../api.d.ts").TopicRow }} given
 */
function Written({ row }) {
  const before = useRef({ row, at: Date.now(), rate: /** @type {number | null} */ (null) });
  if (before.current.row !== row) {
    const at = Date.now();
    const { row: last, at: then } = before.current;
    before.current = { row, at, rate: rateOf(last, row, at - then) };
  }
  return rate(before.current.rate);
}

/**
 * Offsets per second between two looks; null of a topic that was made again under its name.
 * @param {{ topic_id: string, written: number | string }} before
 * @param {{ topic_id: string, written: number | string }} row
 * @param {number} passedMs
 */
export function rateOf(before, row, passedMs) {
  const more = Number(difference(row.written, before.written));
  return before.topic_id !== row.topic_id || more < 0 || passedMs <= 0 ? null : (1000 * more) / passedMs;
}

export function Topics() {
  const isInternal = query.value.internal === "true";
  const options = html`<label><input type="checkbox" checked=${isInternal}
    onChange=${(/** @type {any} */ event) => setQuery({ internal: event.currentTarget.checked ? "true" : null })} /> Internal topics</label>`;
  const empty = html`<${Empty} command="barnabas topics create orders">No topics yet. Create one:<//>`;
  return html`<${Screen} title="Topics" actions=${html`<${Action} name="topic.create" words="Create a topic" />`} commands=${[barnabas("topics", "list"), kcat("-L"), kafka("kafka-topics", "--list")]}>
    <${List} label="Topics" parts=${["topics"]} columns=${COLUMNS} rowKey=${(/** @type {any} */ row) => row.topic}
      sort="topic" asked=${{ internal: isInternal }} empty=${empty} options=${options} />
  <//>`;
}
