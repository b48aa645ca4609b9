// Pipelines: is my exactly-once pipeline exactly once, and how far?

import { GroupLink, TopicLink, TransactionLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty, Mark } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { barnabas, curl } from "../shell/commands.js";
import { count, duration, percent, rate } from "../shell/format.js";
import { html } from "../shell/html.js";
import { SparkQueries } from "./spark-queries.js";

/** The topic in which the Spark sink notes its batches. */
const LEDGER = "__spark_sink_ledger";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Group", sort: "group", cell: (row) => html`<${GroupLink} name=${row.group} opens />` },
  { title: "Reads", cell: (row) => topics(row.inputs) },
  { title: "Writes", cell: (row) => topics(row.outputs.filter((/** @type {string} */ name) => name !== LEDGER)), help: "Without the ledger of the Spark sink; the second table has the topics that its queries write" },
  { title: "Transactional IDs", cell: (row) => ids(row) },
  { title: "Can be read now", isNumber: true, cell: (row) => count(row.lag_readable) },
  { title: "Blocked", isNumber: true, cell: (row) => (Number(row.lag_blocked) ? html`<${Mark} kind="warn">${count(row.lag_blocked)}<//>` : "0") },
  { title: "Commits", isNumber: true, cell: (row) => rate(row.commits_per_s) },
  { title: "Aborted", isNumber: true, cell: (row) => share(row) },
  { title: "Last commit", isNumber: true, cell: (row) => html`<${Age} since=${row.last_commit_ms} />` },
  { title: "Took", isNumber: true, cell: (row) => took(row.last_took_ms) },
];

/** @param {string[]} names */
function topics(names) {
  return names.length ? html`${names.map((name) => html`<${TopicLink} key=${name} name=${name} /> `)}` : "–";
}

/** @param {any} row */
function ids(row) {
  if (row.transactional_id === null) return count(row.transactional_ids);
  const more = row.transactional_ids - 1;
  return html`<${TransactionLink} name=${row.transactional_id} />${more > 0 ? ` and ${count(more)} more` : ""}`;
}

/** @param {any} row */
function share(row) {
  const all = Number(row.commits) + Number(row.aborts);
  return all ? percent(Number(row.aborts) / all) : "–";
}

/** @param {any} milliseconds */
function took(milliseconds) {
  if (milliseconds === null) return "–";
  return Number(milliseconds) < 1000 ? `${milliseconds} ms` : duration(milliseconds);
}

export function Pipelines() {
  const empty = html`<${Empty} command="barnabas transactions list">No group has committed its offsets in a transaction since the broker started. A producer does it with send_offsets_to_transaction.<//>`;
  return html`<${Screen} title="Pipelines" question="Exactly-once pipelines and their progress" commands=${[curl(apiPath(["pipelines"])), barnabas("transactions", "list")]}>
    <p class="faint">Groups that committed offsets in transactions since the broker started. Spark's own source has no group: <a href="/clients">Clients</a> shows its readers.</p>
    <${List} label="Pipelines" parts=${["pipelines"]} columns=${COLUMNS} sort="group" rowKey=${(/** @type {any} */ row) => row.group} empty=${empty} />
    <${SparkQueries} />
  <//>`;
}
