// A transactional id: what happened to it?

import { Action } from "../parts/action.js";
import { PartitionLink, short } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Problem, Shown } from "../parts/states.js";
import { Age, Time } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { barnabas, kafka } from "../shell/commands.js";
import { count, counted, duration } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";
import { useLive } from "../shell/live.js";

/** What events are called, and how they are marked. @type {Record<string, [string, "good" | "bad" | "warn" | "plain"]>} */
const KINDS = {
  initialized: ["producer initialized (InitProducerId)", "plain"],
  begun: ["begun", "plain"],
  partitions_added: ["partitions added", "plain"],
  offsets_added: ["offsets of a group added", "plain"],
  prepared: ["prepared: somebody else decides", "warn"],
  committed: ["committed", "good"],
  aborted: ["aborted", "warn"],
  refused: ["refused: it goes on although it is fenced", "bad"],
  expired: ["forgotten: it was not used for long", "plain"],
};
/** @type {Record<string, string>} */
const REASONS = {
  client: "by its producer",
  timeout: "it took too long",
  fenced: "its producer was replaced",
  operator: "by an operator",
};

/** @param {{ parts: string[] }} given */
export function TransactionalId({ parts }) {
  const id = parts[1];
  const { state, error } = useLive(`transaction:${encodeURIComponent(id)}`).value;
  const story = useFetched(apiPath(["transaction-events"], { transactional_id: id, limit: 200 }), { everyMs: 2000 });
  const isOpen = state?.state === "Ongoing";
  const command = barnabas("transactions", "abort", id);
  const actions = html`<${Action} name="transaction.abort" on=${{ transactional_id: id }} isOffered=${isOpen} onDone=${story.refresh} commands=${[command]} />`;
  return html`<${Screen} title=${id} question="State and history of this transactional ID" above=${{ href: "/transactions", words: "Transactions" }} actions=${actions}
    commands=${[barnabas("transactions", "describe", id), kafka("kafka-transactions", "describe", "--transactional-id", id)]}>
    ${error && html`<${Problem} error=${error} />`}
    ${state && html`<${State} state=${state} />`}
    <h2>History</h2>
    <${Shown} seen=${story.seen.value}>${(/** @type {any} */ data) => html`<${Story} data=${data} />`}<//>
  <//>`;
}

/** @param {{ state: any }} given  A TransactionDescription of the API. */
function State({ state }) {
  const isOpen = state.start_time_ms !== null;
  const left = state.remaining_ms === null ? "no timeout" : duration(state.remaining_ms);
  const partitions = state.partitions;
  return html`
    <p>${isOpen
      ? html`<${Mark} kind="warn">${state.state}: open for <${Age} since=${state.start_time_ms} />, time left: ${left}<//>`
      : html`<${Mark} kind="good">${state.state}: nothing is open<//>`}</p>
    <${Facts} figures=${[
      ["Producer id", state.producer_id],
      ["Epoch", count(state.producer_epoch)],
      ["Timeout", duration(state.timeout_ms)],
      ["Client", state.client === null ? "unknown since the start" : short(state.client)],
      ["Host", state.host ?? "–"],
      ["Coordinator", count(state.coordinator)],
      ["Partitions", count(state.partition_count)],
    ]} />
    ${partitions.length
      ? html`<h2>${isOpen ? "Partitions of the transaction" : "Partitions with a pending marker"}</h2>
        <ul class="names">${partitions.map((/** @type {any} */ each) => html`<li key=${`${each.topic}-${each.partition}`}><${PartitionLink} topic=${each.topic} partition=${each.partition} /></li>`)}</ul>`
      : null}`;
}

/** @param {{ data: any }} given  A TransactionEventPage of the API. */
function Story({ data }) {
  const columns = [
    { title: "When", cell: (/** @type {any} */ row) => html`<${Time} at=${row.time_ms} />` },
    { title: "What", cell: (/** @type {any} */ row) => what(row) },
    { title: "By", cell: (/** @type {any} */ row) => who(row.client, row.host) },
    { title: "Epoch", isNumber: true, cell: (/** @type {any} */ row) => count(row.producer_epoch) },
    { title: "Partitions", cell: (/** @type {any} */ row) => partitionsOf(row) },
    { title: "Fenced", cell: (/** @type {any} */ row) => (row.fenced_client === null ? "" : who(row.fenced_client, row.fenced_host)) },
  ];
  const since = data.is_since_start ? "since the broker started" : "as far as the broker remembers";
  return html`<p class="faint">${counted(data.items.length, "event")}, the newest first; ${since}, <${Time} at=${data.since_ms} />.</p>
    ${data.items.length
      ? html`<${Table} label="History" columns=${columns} rows=${data.items} rowKey=${(/** @type {any} */ row) => String(row.number)} />`
      : html`<${Empty}>No events since the broker started.<//>`}`;
}

/** @param {any} row */
function what(row) {
  const [words, kind] = KINDS[row.kind] ?? [row.kind, "plain"];
  const reason = row.reason === null ? "" : ` ${REASONS[row.reason] ?? row.reason}`;
  return html`<${Mark} kind=${row.reason === "fenced" || row.reason === "timeout" ? "bad" : kind}>${words}${reason}<//>`;
}

/**
 * @param {string | null} client
 * @param {string | null} host
 */
function who(client, host) {
  if (client === null) return html`<span class="faint">the broker</span>`;
  return html`${short(client)}${host ? ` at ${host.replace(/^\//, "")}` : ""}`;
}

/** @param {any} row */
function partitionsOf(row) {
  if (!row.partition_count) return "";
  if (!row.partitions.length) return count(row.partition_count);
  const more = row.partition_count - row.partitions.length;
  return html`${row.partitions.map((/** @type {any} */ each) => html`<${PartitionLink} key=${`${each.topic}-${each.partition}`} topic=${each.topic} partition=${each.partition} /> `)}${more > 0 ? `and ${more} more` : ""}`;
}
