// A group: its lag, and the cause.

import { Action } from "../parts/action.js";
import { Blocker, PartitionLink, short, TopicLink, TransactionLink } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { Missing, isMissing } from "../parts/missing.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Problem } from "../parts/states.js";
import { Age } from "../parts/times.js";
import { barnabas, kafka } from "../shell/commands.js";
import { count, counted } from "../shell/format.js";
import { html } from "../shell/html.js";
import { useLive } from "../shell/live.js";
import { History } from "./group-history.js";

/** @type {import("../parts/list.js").Column[]} */
const PARTITIONS = [
  { title: "Partition", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} offset=${row.committed_offset} opens />` },
  { title: "Can be read now", isNumber: true, cell: (row) => count(row.lag_readable) },
  { title: "Blocked", isNumber: true, cell: (row) => count(row.lag_blocked) },
  { title: "By", cell: (row) => html`<${Blocker} transaction=${row.blocked_by} />` },
  { title: "Open for", isNumber: true, cell: (row) => html`<${Age} since=${row.blocked_by?.transaction?.start_time_ms ?? null} />` },
  { title: "Committed", isNumber: true, cell: (row) => count(row.committed_offset) },
  { title: "Last commit", isNumber: true, cell: (row) => html`<${Age} since=${row.commit_ms} />` },
  { title: "Last stable", isNumber: true, cell: (row) => count(row.stable_offset), help: "Offset at which read_committed consumers stop" },
  { title: "End", isNumber: true, cell: (row) => count(row.end_offset) },
  { title: "Member", cell: (row) => (row.member === null ? "–" : short(row.member)) },
];

/** @type {import("../parts/list.js").Column[]} */
const MEMBERS = [
  { title: "Member", cell: (row) => short(row.member) },
  { title: "Client", cell: (row) => short(row.client) },
  { title: "Host", cell: (row) => row.host },
  { title: "Instance", cell: (row) => row.instance ?? "–" },
  { title: "Reads", cell: (row) => isolation(row.isolation_seen), help: "Isolation level of fetches with this client ID from this host" },
  { title: "Partitions", cell: (row) => html`${row.partitions.map((/** @type {any} */ each) => html`<span key=${each.topic}><${TopicLink} name=${each.topic} />: ${each.partitions.join(", ")} </span>`)}` },
];

/** @param {string | null | undefined} seen */
function isolation(seen) {
  if (!seen) return "not seen yet";
  return seen === "both" ? "both (several clients share its id)" : seen.replace("read_", "").replace("uncommitted", "all, uncommitted too").replace(/^committed$/, "committed only");
}

/** @param {{ parts: string[] }} given */
export function Group({ parts }) {
  const name = parts[1];
  const { state, error } = useLive(`group:${encodeURIComponent(name)}`).value;
  if (isMissing(error)) return html`<${Missing} title=${name} kind="group" above=${{ href: "/groups", words: "Groups" }} command="barnabas groups list" />`;
  const commands = [
    barnabas("groups", "describe", name),
    kafka("kafka-consumer-groups", "--describe", "--group", name),
  ];
  const actions = html`
    <${Action} name="group.reset_offsets" on=${{ group: name }} commands=${[barnabas("groups", "reset-offsets", name, "--to", "end", "--dry-run")]} />
    <${Action} name="group.delete_offsets" on=${{ group: name }} />
    <${Action} name="group.delete" on=${{ group: name }} commands=${[barnabas("groups", "delete", name)]} />`;
  return html`<${Screen} title=${name} question="Lag of the group, and its cause" above=${{ href: "/groups", words: "Groups" }} actions=${actions} commands=${commands}>
    ${error && html`<${Problem} error=${error} />`}
    ${!state && !error ? html`<p class="faint">Loading</p>` : null}
    ${state && html`<${State} state=${state}><${History} name=${name} /><//>`}
  <//>`;
}

/** @param {{ state: any, children?: any }} given  A GroupDescription of the API; `children` come above its partitions. */
function State({ state, children }) {
  return html`
    <p><${Why} state=${state} /></p>
    <${Facts} figures=${[
      ["State", state.state],
      ["Kind", state.type],
      ["Members", count(state.member_count)],
      ["Assignor", state.assignor ?? "–"],
      ["Lag", count(state.lag)],
      ["Can be read now", count(state.lag_readable)],
      ["Blocked", count(state.lag_blocked)],
      ["Last commit", html`<${Age} since=${state.last_commit_ms} />`],
    ]} />
    ${children}
    <h2>Partitions</h2>
    ${state.partitions.length
      ? html`<${Table} label="Partitions" columns=${PARTITIONS} rows=${state.partitions} rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} />`
      : html`<${Empty}>The group has no committed offsets and no assigned partitions.<//>`}
    ${state.next ? html`<p class="faint">These are the first ${count(state.partitions.length)}.</p>` : null}
    <h2>Members</h2>
    ${state.members.length
      ? html`<${Table} label="Members" columns=${MEMBERS} rows=${state.members} rowKey=${(/** @type {any} */ row) => row.member} />`
      : html`<${Empty}>The group has no members.<//>`}`;
}

/**
 * The answer in a sentence.
 * @param {{ state: any }} given
 */
function Why({ state }) {
  if (state.lag === null) return html`<${Mark} kind="plain">Lag unknown: the group has no committed offset.<//>`;
  const readable = Number(state.lag_readable);
  const held = Number(state.lag_blocked);
  if (!readable && !held) return html`<${Mark} kind="good">The group has read all records.<//>`;
  const blockers = state.partitions.map((/** @type {any} */ each) => each.blocked_by).filter(Boolean);
  const ids = [...new Set(blockers.map((/** @type {any} */ each) => each.transaction?.transactional_id).filter(Boolean))];
  const hangs = blockers.some((/** @type {any} */ each) => each.hanging);
  return html`
    ${readable
      ? html`<${Mark} kind="warn">${counted(readable, "record")} can be read now${state.member_count ? ": the members are slower than the producers" : ": the group has no members"}.<//> `
      : null}
    ${held
      ? html`<${Mark} kind="bad">${counted(held, "record")} ${held === 1 ? "is" : "are"} blocked for read_committed consumers<//>${ids.length ? html` by ${ids.slice(0, 5).map((id, at) => html`${at ? ", " : ""}<${TransactionLink} key=${id} name=${id} />`)}` : null}${hangs ? " by a hanging transaction" : ""}.`
      : null}`;
}
