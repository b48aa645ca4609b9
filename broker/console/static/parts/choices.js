// What can be chosen in the fields of a form: partitions and topics that exist, in place of a text to guess.

import { apiPath } from "../shell/api.js";
import { useFetched } from "../shell/fetched.js";

/** A list that is longer is typed into, or found by its beginning. */
const LISTED_MOST = 100;
const NAMED_MOST = 1000;

/** @typedef {{ values: string[], isClosed: boolean }} Known  `isClosed`: there are no others. */

/**
 * What is known of fields, by their names.
 * @param {import("./fields.js").FieldRow[]} fields
 * @param {Record<string, string>} on  What the action is done to.
 * @returns {Record<string, Known | undefined>}
 */
export function useChoices(fields, on) {
  const names = new Set(fields.map(({ name }) => name));
  const asksPartition = fields.some(({ name, kind }) => name === "partition" && kind === "integer");
  const group = useOnce(on.group !== undefined && (names.has("topic") || asksPartition) ? ["groups", on.group] : null);
  const topic = useOnce(on.topic !== undefined && asksPartition ? ["topics", on.topic] : null);
  const topics = useOnce(names.has("target") ? ["topics"] : null, { limit: NAMED_MOST });
  return {
    ...(group && group.next === null ? ofGroup(group.partitions) : {}),
    ...(topic && topic.partitions <= LISTED_MOST ? { partition: closed(Array.from({ length: topic.partitions }, (_, at) => String(at))) } : {}),
    ...(topics ? { target: { values: topics.items.map((/** @type {any} */ row) => row.topic), isClosed: false } } : {}),
  };
}

/**
 * @param {string[] | null} parts
 * @param {Record<string, number>} [asked]
 */
function useOnce(parts, asked = {}) {
  return useFetched(parts === null ? null : apiPath(parts, asked), { everyMs: 0 }).seen.value.data;
}

/**
 * Topics and partitions of which a group has offsets; others can be reset, too, so they stay open.
 * @param {{ topic: string, partition: number }[]} rows
 * @returns {Record<string, Known | undefined>}
 */
export function ofGroup(rows) {
  const topics = [...new Set(rows.map(({ topic }) => topic))];
  const partitions = [...new Set(rows.map(({ partition }) => partition))].sort((one, other) => one - other).map(String);
  return { topic: { values: topics, isClosed: false }, partition: { values: partitions, isClosed: false } };
}

/** @param {string[]} values @returns {Known} */
function closed(values) {
  return { values, isClosed: true };
}
