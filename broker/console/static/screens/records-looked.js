// How far was looked, what a live tail has left out, and keeping what is listed.

import { save } from "../parts/export.js";
import { Mark } from "../parts/states.js";
import { bytes, count, counted, duration } from "../shell/format.js";
import { html, useState } from "../shell/html.js";
import { TAIL_KEPT } from "./records-found.js";

/** @typedef {import("./records-found.js").Found} Found */

const SAID = 8;
/** @type {Record<string, string>} */
const STOPPED = {
  records: "More records match.",
  bytes: "Stopped at the 64 MB read limit.",
  time: "Stopped at the 10 s time limit.",
  end: "",
};

/** @param {{ found: Found, isSearch: boolean, stop: () => void, goOn: () => void }} given */
export function Looked({ found, isSearch, stop, goOn }) {
  const { scanned } = found;
  const words = scanned === null ? "" : `${counted(found.items.length, "record")} shown; ${counted(scanned.records, "record")} (${bytes(scanned.bytes)}) read in ${took(scanned.took_ms)}.`;
  return html`<div class="looked">
    <p>${found.isAsking && isSearch ? html`<${Mark} kind="plain">Searching.<//> ` : null}<span class="faint">${words}
      ${scanned?.undecided ? ` ${counted(scanned.undecided, "record")} too large to search.` : ""}
      ${!found.isAsking && scanned ? (found.wasStopped ? " Stopped." : ` ${STOPPED[scanned.stopped_by] ?? ""}`) : ""}</span>
      ${found.isAsking && isSearch ? html` <button type="button" class="small" onClick=${stop}>Stop</button>` : null}
      ${!found.isAsking && found.next !== null ? html` <button type="button" onClick=${goOn}>Continue</button>` : null}</p>
    ${scanned === null ? null : html`<${HowFar} scanned=${scanned} items=${found.items} isOpen=${isSearch} />`}
  </div>`;
}

/** @param {number} milliseconds */
function took(milliseconds) {
  return milliseconds < 1000 ? `${milliseconds} ms` : duration(milliseconds);
}

/**
 * Progress by partition; of a search at once, as far as that is not too much to read.
 * @param {{ scanned: any, items: any[], isOpen: boolean }} given
 */
function HowFar({ scanned, items, isOpen }) {
  const hits = new Map();
  for (const { partition } of items) hits.set(partition, (hits.get(partition) ?? 0) + 1);
  const unread = scanned.unread.map((/** @type {any} */ each) => `partition ${each.partition}, ${each.from_offset} to ${each.until_offset}: ${each.reason}`);
  const lines = scanned.partitions.map((/** @type {any} */ each) => html`<li key=${each.partition}>${said(each, isOpen ? (hits.get(each.partition) ?? 0) : null)}</li>`);
  return html`
    ${unread.length ? html`<p class="problem">Not readable: ${unread.join("; ")}</p>` : null}
    ${isOpen && lines.length <= SAID
      ? html`<ul class="far">${lines}</ul>`
      : html`<details><summary>Progress by partition</summary><ul class="far">${lines}</ul></details>`}`;
}

/**
 * @param {any} far  A PartitionScan of the API.
 * @param {number | null} hits
 */
function said(far, hits) {
  const of = `of ${count(far.start_offset)} to ${count(far.end_offset)}`;
  const looked = far.from_offset === far.until_offset ? `nothing yet ${of}` : `offsets ${count(far.from_offset)} to ${count(far.until_offset)} ${of}`;
  const held = far.stable_offset === far.end_offset ? "" : `, readable as committed up to ${count(far.stable_offset)}`;
  return `partition ${far.partition}: ${looked}${held}${hits === null ? "" : `, ${counted(hits, "hit")}`}`;
}

/** @param {{ found: Found, isPaused: boolean }} given */
export function Followed({ found, isPaused }) {
  const { skipped, unseen, items } = found;
  return html`<p>
    ${isPaused ? html`<${Mark} kind="warn">Paused: new records are not shown.<//>` : html`<${Mark} kind="good">Following new records.<//>`}
    <span class="faint"> ${items.length ? `${counted(items.length, "record")} here${items.length >= TAIL_KEPT ? ", the maximum" : ""}.` : "No record has arrived yet."}
      ${skipped === "0" ? "" : ` ${count(skipped)} skipped: too many to show.`}
      ${unseen === "0" ? "" : ` ${counted(unseen, "offset")} skipped without reading: too many.`}</span></p>`;
}

/** @param {{ topic: string, asked: Record<string, string | number>, items: any[], isNewestFirst: boolean }} given */
export function Save({ topic, asked, items, isNewestFirst }) {
  const [words, setWords] = useState("");
  async function clicked() {
    const rows = items.filter((row) => row.state !== "marker");
    const { key_format: _key, value_format: _value, limit: _limit, ...selection } = asked;
    try {
      await save(topic, selection, isNewestFirst ? rows.reverse() : rows, (done) => setWords(`${count(done)} of ${count(rows.length)}`));
      setWords(`${counted(rows.length, "record")} saved.`);
    } catch (error) {
      setWords(/** @type {Error} */ (error).message);
    }
  }
  return html`<p><button type="button" onClick=${clicked}>Save as JSON lines</button> <span class="faint" role="status">${words}</span></p>`;
}
