// One record, whole: what is in it, where it is from, and the records around it.

import { apiPath } from "../shell/api.js";
import { bytes, count } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html, useState } from "../shell/html.js";
import { path, query, setQuery } from "../shell/location.js";
import { Action } from "./action.js";
import { copyText } from "./copy.js";
import { short, TransactionLink } from "./links.js";
import { Facts } from "./screen.js";
import { Mark, Shown } from "./states.js";
import { Time } from "./times.js";

/** So much text is laid out at once: more keeps the page. */
const SHOWN_CHARACTERS = 32_768;
const FILTER_MOST = 1024;

/** @type {Record<string, ["good" | "bad" | "warn" | "plain", string]>} */
const STATES = {
  plain: ["plain", "plain"],
  committed: ["good", "committed"],
  waiting: ["warn", "committed, not visible yet"],
  aborted: ["bad", "aborted"],
  open: ["warn", "open"],
  marker: ["plain", "marker"],
};

/** States of records that a replay takes. */
const REPLAYED = new Set(["plain", "committed"]);

/** @param {{ shown: any, most?: number }} given */
export function Value({ shown, most }) {
  if (shown === null) return html`<span class="faint">null</span>`;
  const text = most === undefined ? shown.text : shown.text.slice(0, most);
  return html`<span class=${`value ${most === undefined ? "" : "whole"}`}><bdi>${text}</bdi></span>
    ${shown.is_cut ? html` <span class="faint">… of ${bytes(shown.size_bytes)}</span>` : null}
    ${shown.problem ? html` <span class="faint">(${shown.format}: ${shown.problem})</span>` : null}`;
}

/** @param {{ row: any }} given */
export function State({ row }) {
  const [kind, words] = STATES[row.state] ?? ["plain", row.state];
  const blocker = row.blocking_transaction;
  return html`<${Mark} kind=${kind}>${words}${blocker ? ":" : ""}<//>${blocker
    ? html` blocked by ${blocker.transactional_id === null ? `producer ${blocker.producer_id}` : html`<${TransactionLink} name=${blocker.transactional_id} />`}`
    : null}`;
}

/** @param {{ topic: string, place: string, formats: Record<string, string | undefined> }} given */
export function OneRecord({ topic, place, formats }) {
  const [partition, offset] = place.split(":");
  const parts = ["topics", topic, "partitions", partition, "records", offset];
  const { seen } = useFetched(apiPath(parts, formats), { everyMs: 0 });
  return html`<section class="record" aria-label=${`Record ${place}`}>
    <p class="actions"><button type="button" onClick=${() => setQuery({ record: null })}>Close record</button>
      <span class="faint"><kbd>j</kbd>, <kbd>k</kbd>: next, previous record</span></p>
    <${Shown} seen=${seen.value}>${(/** @type {any} */ found) => html`<${Whole} topic=${topic} found=${found} parts=${parts} />`}<//>
  </section>`;
}

/** @param {{ topic: string, found: any, parts: string[] }} given  `found`: a RecordDescription of the API. */
function Whole({ topic, found, parts }) {
  const row = found.record;
  const near = (/** @type {any} */ offset) => setQuery({ record: `${row.partition}:${offset}` });
  const exact = useFetched(apiPath(parts, { key_format: "base64", value_format: "base64" }), { everyMs: 0 }).seen.value.data?.record;
  const again = sameAgain(exact, row);
  const sameKey = filterOf(exact?.key);
  return html`
    <h2>${short(`${topic}-${row.partition}`)}, offset ${String(row.offset)}</h2>
    <p><${State} row=${row} /></p>
    <h3>Key</h3><${Part} shown=${row.key} href=${apiPath([...parts, "raw"], { part: "key" })} name="key" />
    <h3>Value</h3><${Part} shown=${row.value} href=${apiPath([...parts, "raw"], { part: "value" })} name="value" />
    <${Headers} rows=${row.headers} total=${row.header_count} parts=${parts} />
    <${Facts} figures=${[
      ["Time", html`<${Time} at=${row.timestamp_ms} />, ${row.timestamp_type === "append" ? "time of the append" : "time set by the producer"}`],
      ["Size", bytes(row.size_bytes)],
      ["Batch begins at", count(row.batch_base_offset)],
      ["Compression", row.compression],
      ["Leader epoch", count(row.leader_epoch)],
      ["Producer", html`<${Producer} topic=${topic} row=${row} />`],
    ]} />
    <p class="actions">
      ${found.previous_offset === null ? null : html`<button type="button" onClick=${() => near(found.previous_offset)}>Previous</button>`}
      ${found.next_offset === null ? null : html`<button type="button" onClick=${() => near(found.next_offset)}>Next</button>`}
      ${sameKey === null ? null : html`<a class="button" href=${path(["topics", topic, "records"], { ...kept(), filter: sameKey, partition: row.partition })}>Same key</a>`}
      ${again ? html`<${Action} name="records.produce" words=${again.headers === undefined && row.header_count ? "Produce again, without headers" : "Produce again"} on=${{ topic }} values=${again} />` : null}
      ${REPLAYED.has(row.state) ? html`<${Action} name="records.replay" words="Replay" on=${{ topic }} values=${{ topic, offsets: `${row.partition}:${row.offset}` }} />` : null}
    </p>`;
}

/** What of the address a search for the same key keeps. */
function kept() {
  const { key_format, value_format, view } = query.peek();
  return { key_format, value_format, view };
}

/** @param {{ topic: string, row: any }} given */
function Producer({ topic, row }) {
  const asked = { producer_id: row.producer_id, limit: 1 };
  const { data } = useFetched(row.is_transactional ? apiPath(["topics", topic, "producers"], asked) : null, { everyMs: 0, keep: row.producer_id ?? "" }).seen.value;
  if (row.producer_id === null) return html`without an id`;
  const name = data?.items[0]?.transactional_id;
  return html`<a href=${path(["topics", topic], { producer: row.producer_id })}>${row.producer_id}</a>, epoch ${row.producer_epoch}${row.sequence === null ? "" : `, sequence ${row.sequence}`}
    ${name ? html`: <${TransactionLink} name=${name} />` : row.is_transactional ? ", in a transaction" : ""}`;
}

/** @param {{ rows: any[], total: number, parts: string[] }} given */
function Headers({ rows, total, parts }) {
  if (!total) return null;
  return html`<h3>Headers</h3>
    <dl class="facts">${rows.map((each, at) => html`<div key=${at}><dt>${short(each.name)}</dt>
      <dd><${Value} shown=${each.value} />${each.value === null ? null : html` <a href=${apiPath([...parts, "raw"], { part: `header:${at}` })} download>Download ${bytes(each.value.size_bytes)}</a>`}</dd></div>`)}</dl>
    ${rows.length < total ? html`<p class="faint">These are the first of ${count(total)}.</p>` : null}`;
}

/** @param {{ shown: any, href: string, name: string }} given */
function Part({ shown, href, name }) {
  const [isAll, setAll] = useState(false);
  if (shown === null) return html`<p class="faint">null</p>`;
  const isLong = shown.text.length > SHOWN_CHARACTERS;
  return html`<pre tabindex="0" role="region" aria-label=${`The ${name}`}><${Value} shown=${shown} most=${isAll ? shown.text.length : SHOWN_CHARACTERS} /></pre>
    ${isLong && !isAll ? html`<p class="faint">This is the beginning of ${count(shown.text.length)} characters. <button type="button" class="small" onClick=${() => setAll(true)}>Show them all</button></p>` : null}
    <p class="actions"><span class="faint">${shown.format}</span> <button type="button" class="small" onClick=${() => copyText(shown.text)}>Copy the ${name}</button> <a href=${href} download>Download ${bytes(shown.size_bytes)}</a></p>`;
}

/**
 * What a form begins with that writes the same bytes once more; null where they are too many.
 * @param {any} exact  The record with its bytes in Base64, once it is here.
 * @param {any} row
 */
function sameAgain(exact, row) {
  if (!exact || exact.state === "marker" || exact.key?.is_cut || exact.value?.is_cut) return null;
  const [key, keyFormat] = sameBytes(exact.key, row.key);
  const [value, valueFormat] = sameBytes(exact.value, row.value);
  return { key, key_format: keyFormat, value, value_format: valueFormat, partition: row.partition, headers: sameHeaders(row) };
}

/**
 * Headers as the API takes them; undefined where not all of them are here.
 * @param {any} row
 */
function sameHeaders(row) {
  if (row.headers.length < row.header_count || row.headers.some((/** @type {any} */ each) => each.value?.is_cut)) return undefined;
  return row.headers.map((/** @type {any} */ { name, value }) => ({ key: name, value: value === null ? null : headerValue(value) }));
}

/** @param {any} shown */
function headerValue(shown) {
  if (shown.format === "text") return shown.text;
  const bytes = shown.text.match(/../g) ?? [];
  return { base64: btoa(bytes.map((/** @type {string} */ each) => String.fromCharCode(Number.parseInt(each, 16))).join("")) };
}

/**
 * @param {any} exact
 * @param {any} shown
 */
function sameBytes(exact, shown) {
  if (exact === null) return ["", "null"];
  return shown.format === "text" && !shown.is_cut && !shown.text.includes("\r") ? [shown.text, "text"] : [exact.text, "base64"];
}

/**
 * A filter for exactly this key; null of one that is no text, or too long for it.
 * @param {any} exact  The key in Base64.
 */
function filterOf(exact) {
  if (!exact || exact.is_cut) return null;
  try {
    const bytes = Uint8Array.from(atob(exact.text), (each) => each.charCodeAt(0));
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const filter = `key:/^${text.replace(/[\\^$.|?*+()[\]{}/]/g, "\\$&")}$/`;
    return filter.length <= FILTER_MOST ? filter : null;
  } catch {
    return null;
  }
}
