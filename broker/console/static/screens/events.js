// Events: what changed, who did it?

import { beginning, short } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";
import { Time } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { html } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "When", sort: "time_ms", isNumber: true, cell: (row) => html`<${Time} at=${row.time_ms} />` },
  { title: "Event", cell: (row) => row.kind.replaceAll("_", " ") },
  { title: "Object", cell: (row) => short(row.resource || "–") },
  { title: "By", cell: (row) => (row.user ? html`${short(row.user)}${row.host ? ` at ${row.host}` : ""}` : html`<span class="faint">the broker</span>`) },
  { title: "Details", cell: (row) => beginning(row.words || "") },
];

/**
 * Which kinds are shown, of those that are there.
 * @param {import("../api.d.ts").BrokerEventPage | null} found
 */
function kindChoice(found) {
  const chosen = query.value.kind ?? "";
  const kinds = [...new Set([...(found?.kinds ?? []), ...(chosen ? [chosen] : [])])];
  return html`<label class="choice">What
    <select value=${chosen} onChange=${(/** @type {any} */ event) => setQuery({ kind: event.currentTarget.value || null })}>
      <option value="">All events</option>
      ${kinds.map((each) => html`<option key=${each} value=${each}>${each.replaceAll("_", " ")}</option>`)}
    </select></label>`;
}

export function Events() {
  const kind = query.value.kind ?? null;
  return html`<${Screen} title="Events" question="Changes and their authors" commands=${[curl(apiPath(["events"]))]}>
    <p class="faint">The last 1,000 events since the broker started. <a href="/transactions">Transactions</a> has the events of transactions.</p>
    <${List} label="Events" parts=${["events"]} columns=${COLUMNS} sort="-time_ms" asked=${{ kind }} options=${kindChoice} filterWords="Find in events"
      rowKey=${(/** @type {any} */ row) => String(row.number)} empty=${html`<${Empty}>${kind ? "No events of this kind." : "No events yet."}<//>`} />
  <//>`;
}
