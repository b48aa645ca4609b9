// Security: who may log in, who may do what, and how much?

import { Action } from "../parts/action.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { barnabas, curl } from "../shell/commands.js";
import { count } from "../shell/format.js";
import { html } from "../shell/html.js";

/** @typedef {import("../parts/list.js").Column} Column */

/** @type {Column[]} */
const USERS = [
  { title: "User", sort: "name", cell: (row) => html`<bdi>${row.name}</bdi>` },
  { title: "Mechanisms", cell: (row) => row.mechanisms.map((/** @type {string} */ each, /** @type {number} */ at) => `${each}, ${count(row.iterations[at])} iterations`).join("; ") },
  { title: "Change", cell: (row) => html`<div class="actions"><${Action} name="user.set" words="New password" values=${{ user: row.name }} />
    <${Action} name="user.delete" words="Delete" on=${{ user: row.name }} commands=${[barnabas("users", "delete", row.name)]} /></div>` },
];

/** @type {Column[]} */
const ACLS = [
  { title: "Principal", sort: "name", cell: (row) => html`<bdi>${row.principal}</bdi>` },
  { title: "Permission", cell: (row) => (row.permission === "DENY" ? html`<strong>deny</strong>` : "allow") },
  { title: "Operation", cell: (row) => row.operation },
  { title: "Resource", cell: (row) => html`${row.resource_type} <bdi>${row.name}</bdi>${row.pattern === "PREFIXED" ? html` <span class="faint">and names with this prefix</span>` : ""}` },
  { title: "Host", cell: (row) => (row.host === "*" ? "all" : row.host) },
  { title: "Change", cell: (row) => html`<${Action} name="acl.delete" words="Delete ACL" on=${{ principal: row.principal }} values=${row} />` },
];

/** @type {Column[]} */
const QUOTAS = [
  { title: "Entity", sort: "name", cell: (row) => html`<bdi>${whose(row)}</bdi>` },
  { title: "Quota", cell: (row) => row.key },
  { title: "Value", isNumber: true, cell: (row) => count(row.value) },
  { title: "Change", cell: (row) => html`<${Action} name="quota.set" words="Change" values=${{ ...named(row), limits: { [row.key]: String(row.value) } }} />` },
];

/** @param {any} row */
function named({ user, client_id, ip }) {
  return Object.fromEntries(Object.entries({ user, client_id, ip }).filter(([, name]) => name !== null));
}

/** @param {any} row */
function whose(row) {
  return Object.entries(named(row)).map(([kind, name]) => `${kind.replace("_", " ")} ${name}`).join(", ");
}

export function Security() {
  const actions = html`<${Action} name="user.set" /><${Action} name="acl.create" /><${Action} name="quota.set" />`;
  const commands = [barnabas("users", "list"), barnabas("quotas", "list"), curl(apiPath(["acls"]))];
  return html`<${Screen} title="Security" question="Users, ACLs and quotas" actions=${actions} commands=${commands}>
    <h2>Users</h2>
    <p class="faint">SCRAM users; PLAIN users are in the configuration.</p>
    <${List} label="Users" parts=${["users"]} columns=${USERS} rowKey=${(/** @type {any} */ row) => row.name} sort="name" prefix="users_"
      empty=${html`<${Empty} command="barnabas users create alice">No users yet. Create one:<//>`} />
    <h2>ACLs</h2>
    <${List} label="ACLs" parts=${["acls"]} columns=${ACLS} rowKey=${(/** @type {any} */ row) => JSON.stringify(row)} sort="name" prefix="acls_"
      empty=${html`<${Empty} command="barnabas acls add --user alice --operation READ --topic orders">No ACLs yet. Without an authorizer every user has all permissions, with one only super.users have:<//>`} />
    <h2>Quotas</h2>
    <${List} label="Quotas" parts=${["quotas"]} columns=${QUOTAS} rowKey=${(/** @type {any} */ row) => row.name} sort="name" prefix="quotas_"
      empty=${html`<${Empty} command="barnabas quotas set producer_byte_rate=1000000 --user alice">No quotas yet. Set one:<//>`} />
  <//>`;
}
