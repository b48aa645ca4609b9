// Settings: what is set, by whom?

import { Action } from "../parts/action.js";
import { List } from "../parts/list.js";
import { Screen } from "../parts/screen.js";
import { Empty } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { html } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";

/** @type {import("../parts/list.js").Column[]} */
const COLUMNS = [
  { title: "Key", sort: "key", cell: (row) => html`<code>${row.key}</code>` },
  { title: "Value", cell: (row) => html`<code>${row.value === null ? "(hidden or none)" : row.value === "" ? "(empty)" : row.value}</code>` },
  { title: "Set by", cell: (row) => row.source },
  { title: "Type", cell: (row) => row.type },
  { title: "Otherwise", cell: (row) => row.synonyms.slice(1).map((/** @type {any} */ each) => `${each.key} = ${each.value ?? "(hidden)"} (${each.source})`).join("; ") },
];

export function Settings() {
  const isChanged = query.value.changed !== "false";
  const options = html`<label><input type="checkbox" checked=${isChanged}
    onChange=${(/** @type {any} */ event) => setQuery({ changed: event.currentTarget.checked ? null : "false" })} /> Only what is not at its default</label>`;
  return html`<${Screen} title="Settings" question="What is set, by whom?" actions=${html`<${Action} name="broker.configure" />`}
    commands=${[curl(apiPath(["settings"], { changed: true }))]}>
    <${List} label="Settings" parts=${["settings"]} columns=${COLUMNS} sort="key" asked=${{ changed: isChanged }} options=${options}
      rowKey=${(/** @type {any} */ row) => row.key} empty=${html`<${Empty}>Everything is at its default.<//>`} />
  <//>`;
}
