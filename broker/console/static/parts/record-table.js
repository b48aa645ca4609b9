// Records in a table, and one of them whole.

import { Action } from "./action.js";
import { copyText } from "./copy.js";
import { short, TransactionLink } from "./links.js";
import { Table } from "./list.js";
import { Facts } from "./screen.js";
import { Mark, Shown } from "./states.js";
import { Time } from "./times.js";
import { apiPath } from "../shell/api.js";
import { bytes, count } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";
import { path, query, setQuery } from "../shell/location.js";

/** @type {Record<string, ["good" | "bad" | "warn" | "plain", string]>} */
const STATES = {
  plain: ["plain", "plain"],
  committed: ["good", "committed"],
  waiting: ["warn", "committed, not visible yet"],
  aborted: ["bad", "aborted"],
  open: ["warn", "open"],
  marker: ["plain", "marker"],
};

/**
 * @param {{ topic: string, items: any[], formats: Record<string, string | undefined> }} given
 */
export function RecordTable({ topic, items, formats }) {
  const chosen = query.value.record;
  const columns = [
    { title: "Offset", isNumber: true, cell: (/** @type {any} */ row) => html`<button type="button" class="small" data-open aria-expanded=${chosen === placeOf(row)}
      onClick=${() => setQuery({ record: chosen === placeOf(row) ? null : placeOf(row) })}>${row.partition}:${count(row.offset)}</button>` },
    { title: "Time", cell: (/** @type {any} */ row) => html`<${Time} at=${row.timestamp_ms} />` },
    { title: "Key", cell: (/** @type {any} */ row) => html`<${Value} shown=${row.key} />` },
    { title: "Value", cell: (/** @type {any} */ row) => html`<${Value} shown=${row.value} />` },
    { title: "State", cell: (/** @type {any} */ row) => html`<${State} row=${row} />` },
    { title: "Size", isNumber: true, cell: (/** @type {any} */ row) => bytes(row.size_bytes) },
  ];
  return html`
    ${chosen ? html`<${One} key=${chosen} topic=${topic} place=${chosen} formats=${formats} />` : null}
    <${Table} label="Records" columns=${columns} rows=${items} rowKey=${placeOf} />`;
}

/** @param {any} row */
function placeOf(row) {
  return `${row.partition}:${row.offset}`;
}

/** @param {{ shown: any, isWhole?: boolean }} given */
function Value({ shown, isWhole = false }) {
  if (shown === null) return html`<span class="faint">null</span>`;
  return html`<span class=${`value ${isWhole ? "whole" : ""}`}><bdi>${shown.text}</bdi></span>
    ${shown.is_cut ? html` <span class="faint">… of ${bytes(shown.size_bytes)}</span>` : null}
    ${shown.problem ? html` <span class="faint">(${shown.format}: ${shown.problem})</span>` : null}`;
}

/** @param {{ row: any }} given */
function State({ row }) {
  const [kind, words] = STATES[row.state] ?? ["plain", row.state];
  const behind = row.behind;
  return html`<${Mark} kind=${kind}>${words}<//>${behind
    ? html`: behind ${behind.transactional_id === null ? `producer ${behind.producer_id}` : html`<${TransactionLink} name=${behind.transactional_id} />`}`
    : null}`;
}

/** @param {{ topic: string, place: string, formats: Record<string, string | undefined> }} given */
function One({ topic, place, formats }) {
  const [partition, offset] = place.split(":");
  const parts = ["topics", topic, "partitions", partition, "records", offset];
  const { seen } = useFetched(apiPath(parts, formats), { everyMs: 0 });
  return html`<section class="record" aria-label=${`Record ${place}`}>
    <p><button type="button" onClick=${() => setQuery({ record: null })}>Close the record</button></p>
    <${Shown} seen=${seen.value}>${(/** @type {any} */ found) => html`<${Whole} topic=${topic} found=${found} parts=${parts} />`}<//>
  </section>`;
}

/** @param {{ topic: string, found: any, parts: string[] }} given  `found`: a RecordDescription of the API. */
function Whole({ topic, found, parts }) {
  const row = found.record;
  const near = (/** @type {any} */ offset) => setQuery({ record: `${row.partition}:${offset}` });
  const again = sameAgain(useFetched(apiPath(parts, { key_format: "base64", value_format: "base64" }), { everyMs: 0 }).seen.value.data?.record, row);
  return html`
    <h2>${short(`${topic}-${row.partition}`)}, offset ${count(row.offset)}</h2>
    <p><${State} row=${row} /></p>
    <${Facts} figures=${[
      ["Time", html`<${Time} at=${row.timestamp_ms} /> (${row.timestamp_type})`],
      ["Size", bytes(row.size_bytes)],
      ["Batch", count(row.batch_base_offset)],
      ["Compression", row.compression],
      ["Leader epoch", count(row.leader_epoch)],
      ["Producer", row.producer_id === null ? "–" : `${row.producer_id}, epoch ${row.producer_epoch}, sequence ${row.sequence}`],
      ["Transactional", row.is_transactional ? "yes" : "no"],
    ]} />
    <h3>Key</h3><${Part} shown=${row.key} href=${apiPath([...parts, "raw"], { part: "key" })} />
    <h3>Value</h3><${Part} shown=${row.value} href=${apiPath([...parts, "raw"], { part: "value" })} />
    ${row.headers.length
      ? html`<h3>Headers</h3><dl class="facts">${row.headers.map((/** @type {any} */ each, /** @type {number} */ at) => html`<div key=${at}><dt>${short(each.name)}</dt><dd><${Value} shown=${each.value} /></dd></div>`)}</dl>`
      : null}
    <p class="actions">
      ${found.previous_offset === null ? null : html`<button type="button" onClick=${() => near(found.previous_offset)}>Before</button>`}
      ${found.next_offset === null ? null : html`<button type="button" onClick=${() => near(found.next_offset)}>Behind</button>`}
      ${row.key === null ? null : html`<a class="button" href=${path(["topics", topic, "records"], { filter: `key:"${row.key.text}"`, partition: row.partition })}>Same key</a>`}
      ${again ? html`<${Action} name="records.produce" words=${row.header_count ? "The same again, without headers" : "The same again"} on=${{ topic }} values=${again} />` : null}
    </p>`;
}

/**
 * What a form begins with that writes the same bytes once more; null where they are too many.
 * @param {any} exact  The record with its bytes in Base64, once it is here.
 * @param {any} row
 */
function sameAgain(exact, row) {
  if (!exact || exact.key?.is_cut || exact.value?.is_cut) return null;
  const [key, keyFormat] = sameBytes(exact.key, row.key);
  const [value, valueFormat] = sameBytes(exact.value, row.value);
  return { key, key_format: keyFormat, value, value_format: valueFormat, partition: row.partition };
}

/**
 * @param {any} exact
 * @param {any} shown
 */
function sameBytes(exact, shown) {
  if (exact === null) return ["", "null"];
  return shown.format === "text" && !shown.is_cut && !shown.text.includes("\r") ? [shown.text, "text"] : [exact.text, "base64"];
}

/** @param {{ shown: any, href: string }} given */
function Part({ shown, href }) {
  if (shown === null) return html`<p class="faint">null</p>`;
  return html`<pre tabindex="0"><${Value} shown=${shown} isWhole /></pre>
    <p class="actions"><button type="button" class="small" onClick=${() => copyText(shown.text)}>Copy</button> <a href=${href} download>Download ${bytes(shown.size_bytes)}</a></p>`;
}
