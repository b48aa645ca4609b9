// What is asked of the records of a topic, all of it kept in the address.

import { html, useEffect, useState } from "../shell/html.js";
import { query, setQuery } from "../shell/location.js";
import { isUtc } from "../shell/preferences.js";

const FORMATS = ["auto", "text", "json", "hex", "base64", "integer", "uuid", "consumer_offsets", "transaction_state"];
/** @type {[string, string][]} */
const PLACES = [
  ["beginning", "All records"],
  ["last", "Last of each partition"],
  ["offset", "From an offset"],
  ["time", "From a time"],
];
/** @type {Record<string, string>} */
const NUMBERS = { last: "How many", offset: "Offset" };
const MINUTE_MS = 60_000;

/**
 * A moment as a field for date and time takes it; nothing for what is no time.
 * @param {string} text  Milliseconds since 1970.
 * @param {boolean} inUtc
 */
export function asField(text, inUtc) {
  const ms = Number(text);
  const date = new Date(inUtc ? ms : ms - new Date(ms).getTimezoneOffset() * MINUTE_MS);
  return text === "" || Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 23);
}

/**
 * What a field for date and time holds, in milliseconds since 1970.
 * @param {string} text
 * @param {boolean} inUtc
 */
export function asMilliseconds(text, inUtc) {
  const ms = new Date(inUtc ? `${text}Z` : text).getTime();
  return text === "" || Number.isNaN(ms) ? "" : String(ms);
}

/** @param {{ guessed: { key: string, value: string } | null }} given  What keys and values are shown as where that was left open. */
export function Choices({ guessed }) {
  const place = query.value;
  const isFollowing = place.follow === "1";
  const [typed, setTyped] = useState(place.filter ?? "");
  useEffect(() => setTyped(place.filter ?? ""), [place.filter]);
  /** @param {any} event */
  const sent = (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const text = (/** @type {string} */ name) => String(given.get(name) ?? "").trim();
    const changes = { filter: typed || null, partition: text("partition") || null, record: null };
    setQuery(isFollowing ? changes : { ...changes, from: fromOf(text), until_ms: asMilliseconds(text("until"), isUtc.peek()) || null }, { replace: false });
  };
  const choose = (/** @type {string} */ name, /** @type {string} */ otherwise) => (/** @type {any} */ event) => {
    const value = event.currentTarget.value;
    setQuery({ [name]: value === otherwise ? null : value });
  };
  return html`<form class="choices" onSubmit=${sent}>
    <label class="filter">Find <input type="search" data-filter value=${typed} spellcheck=${false} autocomplete="off" maxlength="1024"
      onInput=${(/** @type {any} */ event) => setTyped(event.currentTarget.value)} /></label>
    <label>Partitions <input key=${place.partition} name="partition" size="6" defaultValue=${place.partition ?? ""} placeholder="all" autocomplete="off" /></label>
    ${isFollowing ? null : html`<${Where} key=${`${place.from} ${place.until_ms} ${isUtc.value}`} />`}
    <button type="submit" class="primary">Search</button>
    <label>Show <select value=${place.view ?? "committed"} onChange=${choose("view", "committed")}>
      <option value="committed">As read_committed</option><option value="all">All, with states</option></select></label>
    ${isFollowing ? null : html`<label>Order <select value=${place.order ?? "newest"} onChange=${choose("order", "newest")}>
      <option value="newest">Newest first</option><option value="oldest">Oldest first</option></select></label>`}
    <${Format} name="key_format" words="Keys as" guessed=${guessed?.key} choose=${choose("key_format", "auto")} />
    <${Format} name="value_format" words="Values as" guessed=${guessed?.value} choose=${choose("value_format", "auto")} />
    <label><input type="checkbox" checked=${isFollowing} onChange=${(/** @type {any} */ event) => setQuery({ follow: event.currentTarget.checked ? "1" : null, paused: null, record: null })} /> Follow new records</label>
    <${Help} />
  </form>`;
}

/**
 * Where to begin, as the API says it; null of the beginning, which is what is meant without a word.
 * @param {(name: string) => string} text  What a field holds.
 */
function fromOf(text) {
  const kind = text("from_kind");
  const number = kind === "time" ? asMilliseconds(text("from_time"), isUtc.peek()) : text("from_number");
  return kind === "beginning" || !number ? null : `${kind}:${number}`;
}

/** From where, until when. */
function Where() {
  const place = query.value;
  const [given, number = ""] = (place.from ?? "beginning").split(":");
  const [kind, setKind] = useState(PLACES.some(([name]) => name === given) ? given : "beginning");
  const zone = isUtc.value ? "UTC" : "local time";
  return html`
    <label>Range <select name="from_kind" value=${kind} onChange=${(/** @type {any} */ event) => setKind(event.currentTarget.value)}>
      ${PLACES.map(([name, words]) => html`<option key=${name} value=${name}>${words}</option>`)}</select></label>
    ${kind in NUMBERS ? html`<label>${NUMBERS[kind]} <input name="from_number" size="10" inputmode="numeric" pattern="[0-9]{1,18}" required autocomplete="off"
      defaultValue=${kind === given ? number : kind === "last" ? "100" : ""} /></label>` : null}
    ${kind === "time" ? html`<label>Since (${zone}) <input name="from_time" type="datetime-local" step="0.001" required
      defaultValue=${given === "time" ? asField(number, isUtc.value) : ""} /></label>` : null}
    <label>Before (${zone}) <input name="until" type="datetime-local" step="0.001" defaultValue=${asField(place.until_ms ?? "", isUtc.value)} /></label>`;
}

/** @param {{ name: string, words: string, guessed: string | undefined, choose: (event: any) => void }} given */
function Format({ name, words, guessed, choose }) {
  const chosen = query.value[name] ?? "auto";
  const auto = chosen === "auto" && guessed ? `auto (${guessed.replaceAll("_", " ")})` : "auto";
  return html`<label>${words} <select value=${chosen} onChange=${choose}>
    ${FORMATS.map((each) => html`<option key=${each} value=${each}>${each === "auto" ? auto : each.replaceAll("_", " ")}</option>`)}</select></label>`;
}

/** @type {[string, string][]} */
const EXAMPLES = [
  ["paid alice", "both words, in key, value or a header, in upper or lower case"],
  ["\"not paid\"", "these words together"],
  ["key:alice", "in the key; also value: and header:"],
  ["header.trace:42", "in the header “trace”"],
  ["value.order.id = 5", "a field of a value in JSON; != for another value"],
  ["value.items[0].name = \"tea\"", "the first of a list in it"],
  ["/err(or)?/", "a regular expression (RE2); key:/^a/ for the key only"],
  ["partition:3,5", "only in these partitions"],
];

function Help() {
  return html`<details><summary>Search syntax</summary>
    <p>A record must match all terms:</p>
    <dl class="keys">${EXAMPLES.map(([filter, words]) => html`<div key=${filter}><dt><code>${filter}</code></dt><dd>${words}</dd></div>`)}</dl>
  </details>`;
}
