// What is wrong beside the broker's own checks: readers that wait for long, groups that fall behind.

import { counted } from "../shell/format.js";

/** @typedef {import("../api.d.ts").Worst} Worst */
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
function heldBack({ waiting }) {
  const { transactions, hanging, records, groups } = waiting;
  if (!transactions) return null;
  const verb = transactions === 1 ? "holds" : "hold";
  // Not "of the group": there are records that no group reads.
  const who = groups ? `; ${counted(groups, "group")} ${groups === 1 ? "waits" : "wait"}` : "";
  const words = `${counted(transactions, hanging ? "hanging transaction" : "transaction")} ${verb} back ${counted(records, "record")}${who}`;
  return { kind: hanging ? "bad" : "warn", words, href: "/transactions" };
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
