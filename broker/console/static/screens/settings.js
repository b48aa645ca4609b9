// Settings: what is set, by whom?

import { Action } from "../parts/action.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { html } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";

/** @typedef {import("../api.d.ts").Setting} Setting */

/**
 * A key that is broken behind its dots only.
 * @param {string} key
 */
function atDots(key) {
  const parts = key.split(".");
  return parts.map((each, at) => html`${each}${at < parts.length - 1 ? html`.<wbr />` : null}`);
}

/**
 * @param {() => void} refresh
 * @returns {import("../parts/list.js").Column[]}
 */
const columns = (refresh) => [
  { title: "Key", sort: "key", cell: (row) => html`<code class="key" title=${row.doc}>${atDots(row.key)}</code>` },
  { title: "Value", cell: (row) => html`<code>${row.value === null ? "(hidden or none)" : row.value === "" ? "(empty)" : row.value}</code>` },
  { title: "Set by", cell: (row) => html`<span class="one-line">${row.source}</span>` },
  { title: "Type", cell: (row) => html`<span class="one-line">${row.type.toLowerCase()}</span>` },
  { title: "Change", cell: (row) => html`<${Change} row=${row} refresh=${refresh} />` },
  { title: "Overridden values", cell: (row) => row.synonyms.slice(1).map((/** @type {any} */ each) => `${each.key} = ${each.value ?? "(hidden)"} (${each.source})`).join("; ") },
];

/**
 * What changes a key, or why it cannot be changed.
 * @param {{ row: Setting, refresh: () => void }} given
 */
function Change({ row, refresh }) {
  if (!row.is_dynamic) return html`<span class="faint reason">${row.fixed}</span>`;
  const value = row.type === "PASSWORD" ? "" : (row.value ?? "");
  return html`<${Action} name="broker.configure" words="Change" about=${row.key} values=${{ configs: { [row.key]: value } }} onDone=${refresh} />`;
}

export function Settings() {
  const isChanged = query.value.changed !== "false";
  const options = html`<label><input type="checkbox" checked=${isChanged}
    onChange=${(/** @type {any} */ event) => setQuery({ changed: event.currentTarget.checked ? null : "false" })} /> Only changed keys</label>`;
  return html`<${Screen} title="Settings" question="Keys, values and their sources" actions=${html`<${Action} name="broker.configure" />`}
    commands=${[curl(apiPath(["settings"], { changed: true }))]}>
    <${List} label="Settings" parts=${["settings"]} columns=${columns} sort="key" asked=${{ changed: isChanged }} options=${options}
      rowKey=${(/** @type {any} */ row) => row.key} empty=${html`<${Empty}>All keys have their defaults.<//>`} />
  <//>`;
}
