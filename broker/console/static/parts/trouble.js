// What is wrong beside the broker's own checks: transactions that block consumers, groups that fall behind.

import { counted } from "../shell/format.js";

/** @typedef {import("../api.d.ts").Worst} Worst */
/** @typedef {{ kind: "bad" | "warn", words: string, href: string }} Trouble */

/**
 * Return the sentences of the status line; none without problems.
 * @param {Worst | null} worst
 * @returns {Trouble[]}
 */
export function troublesOf(worst) {
  if (worst === null) return [];
  return [blocked(worst), fallingBehind(worst)].filter((each) => each !== null);
}

/**
 * @param {Worst} worst
 * @returns {Trouble | null}
 */
function blocked({ waiting }) {
  const { transactions, hanging, records, groups } = waiting;
  if (!transactions) return null;
  const verb = transactions === 1 ? "blocks" : "block";
  const affected = groups ? `; ${counted(groups, "group")} affected` : "";
  const words = `${counted(transactions, hanging ? "hanging transaction" : "transaction")} ${verb} ${counted(records, "record")}${affected}`;
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
