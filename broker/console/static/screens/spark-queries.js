// Spark's exactly-once queries: how far is each, and what has it left open?

import { PartitionLink, short, TopicLink, TransactionLink } from "../parts/links.js";
import { List } from "../parts/list.js";
import { Empty, Mark } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { count, counted, milliseconds, NOTHING } from "../shell/format.js";
import { html } from "../shell/html.js";
import { path } from "../shell/location.js";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Sink id", sort: "sink", cell: (row) => html`<a href=${path(["transactions", row.transactional_id])} data-open>${short(row.sink)}</a>`, help: "Link to the transactional ID of the driver" },
  { title: "Query", cell: (row) => short(row.query), help: "One for each checkpoint" },
  { title: "Last decided batch", isNumber: true, cell: (row) => batch(row) },
  { title: "Records", isNumber: true, cell: (row) => count(row.records) },
  { title: "Decide", isNumber: true, cell: (row) => took(row, row.decide_ms), help: "From the end of a batch's tasks until its decision, of the last measured batch" },
  { title: "Commit", isNumber: true, cell: (row) => took(row, row.commit_ms), help: "From that decision until all transactions of the batch are committed" },
  { title: "Written", sort: "written_ms", isNumber: true, cell: (row) => html`<${Age} since=${row.written_ms} />` },
  { title: "Left open", cell: (row) => leftOpen(row) },
  { title: "Reads", cell: (row) => inputs(row.inputs), help: "With the lag of each topic" },
  { title: "Writes", cell: (row) => (row.outputs.length ? row.outputs.map((/** @type {string} */ name) => html`<${TopicLink} key=${name} name=${name} /> `) : "–") },
  { title: "In the ledger", cell: (row) => html`<${PartitionLink} topic=${row.ledger_topic} partition=${row.ledger_partition} offset=${row.ledger_offset} />, offset ${count(row.ledger_offset)}` },
];

/** @param {any} row */
function batch(row) {
  if (row.problem !== null) return html`<${Mark} kind="bad">${row.problem}<//>`;
  const begun = row.begun_batch === null ? "" : html` <span class="faint">(${count(row.begun_batch)} is begun)</span>`;
  return html`${row.batch === null ? "none yet" : count(row.batch)}${begun}`;
}

/** @param {any} row @param {number | null} found */
function took(row, found) {
  if (found === null) return NOTHING;
  return html`<span title=${`batch ${count(row.measured_batch)}`}>${milliseconds(found)}</span>`;
}

/** @param {any} row */
function leftOpen(row) {
  if (!row.open_transactions) return "none";
  const more = row.open_transactions - row.open_transactional_ids.length;
  return html`<${Mark} kind="warn">${counted(row.open_transactions, "transaction")}<//> for <${Age} since=${row.open_since_ms} />:
    ${row.open_transactional_ids.map((/** @type {string} */ id) => html` <${TransactionLink} key=${id} name=${id} />`)}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

/** @param {any[]} found */
function inputs(found) {
  if (!found.length) return "–";
  return found.map((each) => html`<div key=${each.topic}><${TopicLink} name=${each.topic} />: ${each.lag === null ? "lag not known here" : lag(each)}</div>`);
}

/** @param {any} each  An InputLag of the API. */
function lag(each) {
  const held = Number(each.lag_blocked) ? html`, <${Mark} kind="warn">${count(each.lag_blocked)} blocked<//>` : "";
  return html`${count(each.lag_readable)} can be read now${held}`;
}

/** @param {any} data  A SparkQueryPage of the API without rows. */
function empty(data) {
  return data.hidden_because
    ? html`<${Empty}>The decisions of Spark's sinks are hidden: ${data.hidden_because}.<//>`
    : html`<${Empty} command="python -m barnabas.spark run PIPELINE.py">No Spark sink has decided a batch yet. Run a pipeline:<//>`;
}

/** @param {any} data  A SparkQueryPage of the API. */
function note(data) {
  return data.is_complete ? null : html`<p><${Mark} kind="warn">The broker is still reading the ledger: the list is incomplete.<//></p>`;
}

export function SparkQueries() {
  return html`<h2>Spark's queries</h2>
    <p class="faint">From the ledger of the exactly-once sinks, <code>__spark_sink_ledger</code>.</p>
    <${List} label="Spark's queries" parts=${["spark-queries"]} columns=${COLUMNS} prefix="spark_" sort="sink" filterWords="Filter Spark's queries"
      rowKey=${(/** @type {any} */ row) => `${row.sink} ${row.query}`} empty=${empty} note=${note} />`;
}
