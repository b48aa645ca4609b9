// Commands as a shell takes them.

import { signal } from "./html.js";

/** Where clients connect: the address of a listener as the broker advertises it. */
export const bootstrap = signal("localhost:9092");

const PLAIN = /^[\w@%+=:,./-]+$/;

/** @param {string} text */
export function quoted(text) {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * A command line: words that are null are left out.
 * @param {(string | number | null | undefined)[]} words
 */
export function line(...words) {
  return words.filter((each) => each !== null && each !== undefined).map((each) => quoted(String(each))).join(" ");
}

/** @param {...(string | number | null | undefined)} words */
export function barnabas(...words) {
  return { tool: "barnabas", line: `${line("barnabas", ...words)} --bootstrap-server ${quoted(bootstrap.value)}` };
}

/** @param {...(string | number | null | undefined)} words */
export function kcat(...words) {
  return { tool: "kcat", line: line("kcat", "-b", bootstrap.value, ...words) };
}

/**
 * @param {string} tool
 * @param {...(string | number | null | undefined)} words
 */
export function kafka(tool, ...words) {
  return { tool: `${tool}.sh`, line: line(`${tool}.sh`, "--bootstrap-server", bootstrap.value, ...words) };
}

/**
 * Asking the API, where no command says the same; somebody who logs in gives a password to curl.
 * @param {string} target  A path of the API.
 */
export function curl(target) {
  return { tool: "curl", line: line("curl", "-sf", `${window.location.origin}${target}`) };
}
