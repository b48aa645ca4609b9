// Groups: lag, and groups that do not advance.

import { GroupLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty, Mark } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { Trend } from "../parts/trend.js";
import { barnabas, kafka } from "../shell/commands.js";
import { count } from "../shell/format.js";
import { html } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";

const STATES = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"];

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Group", sort: "group", cell: (row) => html`<${GroupLink} name=${row.group} opens />` },
  { title: "Lag", sort: "lag", isNumber: true, cell: (row) => count(row.lag) },
  { title: "Can be read now", sort: "lag_readable", isNumber: true, cell: (row) => count(row.lag_readable), help: "Records that a read_committed consumer can read now" },
  { title: "Blocked", sort: "lag_blocked", isNumber: true, cell: (row) => blocked(row), help: "Records blocked by open transactions" },
  { title: "Trend", cell: (row) => html`<${Trend} trend=${row.trend} />`, help: "Change of the lag over five minutes, for the first 48 groups of the list" },
  { title: "State", cell: (row) => row.state },
  { title: "Kind", cell: (row) => row.type },
  { title: "Members", sort: "members", isNumber: true, cell: (row) => count(row.members) },
  { title: "Partitions", isNumber: true, cell: (row) => count(row.partitions) },
  { title: "Last commit", sort: "last_commit_ms", isNumber: true, cell: (row) => html`<${Age} since=${row.last_commit_ms} />` },
];

/** @param {any} row */
function blocked(row) {
  const value = count(row.lag_blocked);
  return Number(row.lag_blocked) ? html`<${Mark} kind="warn">${value}<//>` : value;
}

export function Groups() {
  const state = query.value.state ?? null;
  const options = html`<label class="choice">State
    <select value=${state ?? ""} onChange=${(/** @type {any} */ event) => setQuery({ state: event.currentTarget.value || null })}>
      <option value="">Any</option>
      ${STATES.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
    </select></label>`;
  const empty = html`<${Empty} command="barnabas consume orders --group readers">${state ? `No group is ${state}.` : "No groups yet. A consumer with a group.id creates one:"}<//>`;
  return html`<${Screen} title="Groups" question="Lag of each group, and groups that do not advance" commands=${[barnabas("groups", "list"), kafka("kafka-consumer-groups", "--list")]}>
    <${List} label="Groups" parts=${["groups"]} columns=${COLUMNS} rowKey=${(/** @type {any} */ row) => row.group} sort="group"
      asked=${{ state }} options=${options} empty=${empty} />
  <//>`;
}
