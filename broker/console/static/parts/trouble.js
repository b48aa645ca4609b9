// What is wrong beside the broker's own checks: readers that wait for long, groups that fall behind.

import { counted, sum } from "../shell/format.js";

/** Transactions are open all the time: one that is open for longer than this is worth a sentence. */
const LONG_MS = 10_000;
/** Partitions and groups that the API names, the worst ones: behind a full list there may be more. */
const MOST_KNOWN = 5;

/** @typedef {import("../api.d.ts").Worst} Worst */
/** @typedef {import("../api.d.ts").OpenTransaction} OpenTransaction */
/** @typedef {{ kind: "bad" | "warn", words: string, href: string }} Trouble */

/**
 * The sentences of the status line; none while all is well.
 * @param {Worst | null} worst
 * @returns {Trouble[]}
 */
export function troublesOf(worst) {
  if (worst === null) return [];
  return [heldBack(worst), fallingBehind(worst)].filter((each) => each !== null);
}

/**
 * @param {Worst} worst
 * @returns {Trouble | null}
 */
function heldBack(worst) {
  const rows = worst.held_back.filter(({ transactions: [first] }) => first && isLong(first, Number(worst.as_of)));
  if (!rows.length) return null;
  const holders = new Set(rows.map(({ transactions: [first] }) => first.producer_id));
  const records = rows.reduce((total, row) => sum(total, row.held_back), "0");
  const groups = worst.lagging.filter((group) => Number(group.lag_held_back)).length;
  const isHanging = rows.some(({ transactions: [first] }) => first.hanging);
  const verb = holders.size === 1 ? "holds" : "hold";
  const least = worst.held_back.length >= MOST_KNOWN ? "at least " : "";
  // Not "of the group": there are records that no group reads.
  const waiting = groups ? `; ${counted(groups, "group")} ${groups === 1 ? "waits" : "wait"}` : "";
  const held = `${least}${counted(records, "record")}${waiting}`;
  const words = `${counted(holders.size, isHanging ? "hanging transaction" : "transaction")} ${verb} back ${held}`;
  return { kind: isHanging ? "bad" : "warn", words, href: "/transactions" };
}

/**
 * Whether readers have waited for a transaction for long, or wait for one that nothing ends.
 * @param {OpenTransaction} first
 * @param {number} now  The broker's time.
 */
function isLong(first, now) {
  const since = first.transaction?.start_time_ms ?? first.last_timestamp_ms;
  return first.hanging || now - Number(since) >= LONG_MS;
}

/**
 * @param {Worst} worst
 * @returns {Trouble | null}
 */
function fallingBehind(worst) {
  const groups = worst.lagging.filter((group) => group.trend === "falling_behind").length;
  if (!groups) return null;
  return { kind: "warn", words: `${counted(groups, "group")} ${groups === 1 ? "falls" : "fall"} behind`, href: "/groups?sort=-lag" };
}
