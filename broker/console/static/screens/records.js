// Records: find one, see what state it is in.

import { Action } from "../parts/action.js";
import { save } from "../parts/export.js";
import { Screen } from "../parts/screen.js";
import { Empty, Problem } from "../parts/states.js";
import { apiPath, ask } from "../shell/api.js";
import { say } from "../shell/announce.js";
import { barnabas, kcat } from "../shell/commands.js";
import { bytes, count, counted, duration } from "../shell/format.js";
import { html, useEffect, useState } from "../shell/html.js";
import { path, query, setQuery } from "../shell/location.js";
import { isPaused } from "../shell/preferences.js";
import { RecordTable } from "../parts/record-table.js";

const FORMATS = ["auto", "text", "json", "hex", "base64", "integer", "uuid"];
const KEPT = ["partition", "from", "until_ms", "filter", "view", "order", "key_format", "value_format"];
const FOLLOW_MS = 1000;
const MOST_KEPT = 1000;

/** @typedef {{ items: any[], last: any, error: Error | null, isAsking: boolean }} Found  `last`: the last answer. */

/** @param {{ parts: string[] }} given */
export function Records({ parts }) {
  const topic = parts[1];
  const place = query.value;
  const asked = Object.fromEntries(KEPT.filter((name) => place[name]).map((name) => [name, place[name]]));
  const isFollowing = place.follow === "1";
  const { found, goOn } = useRecords(topic, asked, isFollowing && !isPaused.value);
  const partition = place.partition && !place.partition.includes(",") ? place.partition : null;
  const commands = [
    barnabas("consume", topic, ...(partition ? ["--partition", partition] : []), "--from", "beginning", "--max", "10"),
    kcat("-C", "-e", "-t", topic, ...(partition ? ["-p", partition] : []), "-o", "beginning", "-c", "10"),
  ];
  return html`<${Screen} title=${`Records of ${topic}`} above=${{ href: path(["topics", topic]), words: topic }} commands=${commands}
    actions=${html`<${Action} name="records.produce" on=${{ topic }} values=${partition ? { partition } : {}} />`}>
    <${Choices} key=${topic} />
    ${found.error && html`<${Problem} error=${found.error} />`}
    ${found.last && html`<${Looked} found=${found} />`}
    ${found.last && !found.items.length
      ? html`<${Empty} command=${place.filter ? undefined : `barnabas produce ${topic}`}>${place.filter ? "Nothing of what was looked at is like that." : "There is nothing here that can be read."}<//>`
      : html`<${RecordTable} topic=${topic} items=${found.items} formats=${{ key_format: place.key_format, value_format: place.value_format }} />`}
    ${found.last?.next
      ? html`<p><button type="button" disabled=${found.isAsking} onClick=${goOn}>Go on</button> <span class="faint">${stopped(found.last.scanned)}</span></p>`
      : null}
    ${found.items.length ? html`<${Save} topic=${topic} items=${found.items} />` : null}
  <//>`;
}

/** @param {any} scanned */
function stopped(scanned) {
  return { records: "There is more.", bytes: "So much was read that it stopped here.", time: "It took so long that it stopped here.", end: "" }[/** @type {string} */ (scanned.stopped_by)] ?? "";
}

/**
 * The records of the address, and those behind them.
 * @param {string} topic
 * @param {Record<string, string>} asked
 * @param {boolean} isFollowing
 */
function useRecords(topic, asked, isFollowing) {
  const [found, setFound] = useState(/** @type {Found} */ ({ items: [], last: null, error: null, isAsking: true }));
  const [after, setAfter] = useState("");
  const key = apiPath(["topics", topic, "records"], asked);
  useEffect(() => setAfter(""), [key]);
  useEffect(() => {
    const asking = new AbortController();
    let timer = 0;
    async function look() {
      setFound((before) => ({ ...before, isAsking: true }));
      try {
        const page = await ask(apiPath(["topics", topic, "records"], { ...asked, after }), { signal: asking.signal });
        setFound((before) => ({
          items: after ? [...before.items, ...page.items].slice(-MOST_KEPT) : page.items,
          last: page,
          error: null,
          isAsking: false,
        }));
        if (page.items.length) say(`${counted(page.items.length, "record")} found.`);
      } catch (error) {
        if (asking.signal.aborted) return;
        setFound((before) => ({ ...before, error: /** @type {Error} */ (error), isAsking: false }));
      }
      if (isFollowing && !after && !asking.signal.aborted) timer = setTimeout(look, FOLLOW_MS);
    }
    look();
    return () => {
      asking.abort();
      clearTimeout(timer);
    };
  }, [key, after, isFollowing]);
  return { found, goOn: () => setAfter(found.last.next) };
}

/** @param {{ found: Found }} given */
function Looked({ found }) {
  const { scanned } = found.last;
  const unread = scanned.unread.map((/** @type {any} */ each) => `partition ${each.partition}, ${each.from_offset} to ${each.until_offset}: ${each.reason}`);
  return html`
    <p class="faint" role="status">${counted(found.items.length, "record")} shown; ${counted(scanned.records, "record")} (${bytes(scanned.bytes)}) looked at in ${scanned.took_ms < 1000 ? `${scanned.took_ms} ms` : duration(scanned.took_ms)}.
      ${scanned.undecided ? ` ${counted(scanned.undecided, "record")} too large to be searched.` : ""}</p>
    ${unread.length ? html`<p class="problem">Not readable: ${unread.join("; ")}</p>` : null}
    <details><summary>How far in each partition</summary>
      <ul>${scanned.partitions.map((/** @type {any} */ each) => html`<li key=${each.partition}>partition ${each.partition}: offsets ${count(each.from_offset)} to ${count(each.until_offset)} of ${count(each.start_offset)} to ${count(each.end_offset)}, readable as committed up to ${count(each.stable_offset)}</li>`)}</ul>
    </details>`;
}

/** The choices, all of them kept in the address. */
function Choices() {
  const place = query.value;
  const [typed, setTyped] = useState(place.filter ?? "");
  useEffect(() => setTyped(place.filter ?? ""), [place.filter]);
  /** @param {any} event */
  const sent = (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const from = String(given.get("from") ?? "").trim();
    setQuery({ filter: typed || null, partition: String(given.get("partition") ?? "").trim() || null, from: from === "beginning" ? null : from || null });
  };
  const choose = (/** @type {string} */ name, /** @type {string} */ otherwise) => (/** @type {any} */ event) => {
    const value = event.currentTarget.value;
    setQuery({ [name]: value === otherwise ? null : value });
  };
  return html`<form class="choices" onSubmit=${sent}>
    <label class="filter">Find <input type="search" data-filter value=${typed} spellcheck=${false} autocomplete="off"
      onInput=${(/** @type {any} */ event) => setTyped(event.currentTarget.value)} /></label>
    <label>Partitions <input name="partition" size="6" defaultValue=${place.partition ?? ""} placeholder="all" /></label>
    <label>From <input name="from" size="16" defaultValue=${place.from ?? ""} placeholder="beginning" list="places" /></label>
    <datalist id="places"><option value="beginning" /><option value="last:100" /><option value="offset:0" /></datalist>
    <button type="submit">Look</button>
    <label>Show <select value=${place.view ?? "committed"} onChange=${choose("view", "committed")}>
      <option value="committed">what read_committed gets</option><option value="all">all, with states</option></select></label>
    <label>First <select value=${place.order ?? "newest"} onChange=${choose("order", "newest")}>
      <option value="newest">the newest</option><option value="oldest">the oldest</option></select></label>
    ${["key_format", "value_format"].map((name) => html`<label key=${name}>${name === "key_format" ? "Keys" : "Values"} as
      <select value=${place[name] ?? "auto"} onChange=${choose(name, "auto")}>${FORMATS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>`)}
    <label><input type="checkbox" checked=${place.follow === "1"} onChange=${(/** @type {any} */ event) => setQuery({ follow: event.currentTarget.checked ? "1" : null })} /> Look again every second</label>
    <details><summary>What can be searched for</summary>
      <p>Words that all have to be there, in key, value or a header: <code>paid</code>. In one place: <code>key:alice</code>, <code>header.trace:42</code>,
        <code>partition:3</code>, <code>value.order.id = 5</code>. A regular expression: <code>/err(or)?/</code>. From: <code>beginning</code>,
        <code>offset:1042</code>, <code>last:100</code>, <code>time:1767225600000</code>.</p>
    </details>
  </form>`;
}

/** @param {{ topic: string, items: any[] }} given */
function Save({ topic, items }) {
  const [words, setWords] = useState("");
  async function clicked() {
    try {
      await save(topic, items, (done) => setWords(`${count(done)} of ${count(items.length)}`));
      setWords("Saved.");
    } catch (error) {
      setWords(/** @type {Error} */ (error).message);
    }
  }
  return html`<p><button type="button" onClick=${clicked}>Save as JSON lines</button> <span class="faint" role="status">${words}</span></p>`;
}
