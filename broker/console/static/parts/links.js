// Names as links to their screens. A name is any text of somebody's: it is only ever text.

import { html } from "../shell/html.js";
import { path } from "../shell/location.js";

const LONGEST_SHOWN = 80;

/**
 * A name that is too long, without its middle: names differ at their ends, and end with a partition's number.
 * @param {string} name
 * @param {number} most
 */
export function cut(name, most) {
  if (name.length <= most) return name;
  const ahead = Math.ceil((most - 1) / 2);
  return `${name.slice(0, ahead)}…${name.slice(ahead + 1 - most)}`;
}

/** @param {string} name */
export function short(name) {
  return isolated(name, cut(name, LONGEST_SHOWN));
}

/**
 * A sentence, to its beginning where it is too long.
 * @param {string} words
 */
export function beginning(words) {
  return isolated(words, words.length > LONGEST_SHOWN ? `${words.slice(0, LONGEST_SHOWN - 1)}…` : words);
}

/**
 * @param {string} name
 * @param {string} shown
 */
function isolated(name, shown) {
  // Isolated, so that letters that are read from right to left do not turn round what follows.
  return html`<bdi title=${shown === name ? undefined : name}>${shown || "(empty)"}</bdi>`;
}

/** @param {{ name: string, opens?: boolean }} given  `opens`: whether it is what a row opens. */
export function TopicLink({ name, opens }) {
  return html`<a href=${path(["topics", name])} data-open=${opens}>${short(name)}</a>`;
}

/**
 * @param {{
 *   topic: string, partition: number | string, offset?: import("../shell/format.js").Figure, opens?: boolean, isOfScreen?: boolean,
 * }} given  `isOfScreen`: the screen is the topic's, which needs no name.
 */
export function PartitionLink({ topic, partition, offset, opens, isOfScreen = false }) {
  const asked = { partition, from: offset === undefined || offset === null ? null : `offset:${offset}` };
  return html`<a href=${path(["topics", topic, "records"], asked)} data-open=${opens}>${isOfScreen ? partition : short(`${topic}-${partition}`)}</a>`;
}

/** @param {{ name: string, opens?: boolean }} given */
export function GroupLink({ name, opens }) {
  return html`<a href=${path(["groups", name])} data-open=${opens}>${short(name)}</a>`;
}

/** @param {{ name: string, opens?: boolean }} given */
export function TransactionLink({ name, opens }) {
  return html`<a href=${path(["transactions", name])} data-open=${opens}>${short(name)}</a>`;
}

/**
 * The transaction that blocks the read_committed consumers of a partition.
 * @param {{ transaction: any }} given  An OpenTransaction of the API, or null.
 */
export function Blocker({ transaction: blocker }) {
  if (!blocker) return html`–`;
  if (blocker.transaction) return html`<${TransactionLink} name=${blocker.transaction.transactional_id} />`;
  if (blocker.hanging) return html`<span class="mark bad"><span aria-hidden="true">✗</span> hanging transaction (producer ${blocker.producer_id})</span>`;
  return html`producer ${blocker.producer_id}`;
}
