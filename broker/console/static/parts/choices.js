// What can be chosen in the fields of a form: partitions and topics that exist, in place of a text to guess.

import { apiPath } from "../shell/api.js";
import { useFetched } from "../shell/fetched.js";

/** A list that is longer is typed into, or found by its beginning. */
const LISTED_MOST = 100;
const NAMED_MOST = 1000;

/** @typedef {{ values: string[], isClosed: boolean }} Known  `isClosed`: there are no others. */

/**
 * What is known of fields, by their names; null until the broker has responded, or not.
 * @param {import("./fields.js").FieldRow[]} fields
 * @param {Record<string, string>} on  What the action is done to.
 * @returns {Record<string, Known | undefined> | null}
 */
export function useChoices(fields, on) {
  const names = new Set(fields.map(({ name }) => name));
  const asksPartition = fields.some(({ name, kind }) => name === "partition" && kind === "integer");
  const group = useOnce(on.group !== undefined && (names.has("topic") || asksPartition) ? ["groups", on.group] : null);
  const topic = useOnce(on.topic !== undefined && asksPartition ? ["topics", on.topic] : null);
  const topics = useOnce(names.has("target") ? ["topics"] : null, { limit: NAMED_MOST });
  if ([group, topic, topics].some(({ isAwaited }) => isAwaited)) return null;
  return {
    ...(group.data && group.data.next === null ? ofGroup(group.data.partitions) : {}),
    ...(topic.data && topic.data.partitions <= LISTED_MOST ? { partition: closed(Array.from({ length: topic.data.partitions }, (_, at) => String(at))) } : {}),
    ...(topics.data ? { target: { values: topics.data.items.map((/** @type {any} */ row) => row.topic), isClosed: false } } : {}),
  };
}

/**
 * @param {string[] | null} parts
 * @param {Record<string, number>} [asked]
 */
function useOnce(parts, asked = {}) {
  const target = parts === null ? null : apiPath(parts, asked);
  const { data, of } = useFetched(target, { everyMs: 0 }).seen.value;
  return { data, isAwaited: of !== target };
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
