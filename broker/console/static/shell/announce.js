// What a screen reader is told by itself: in one polite region, rarely.

import { signal } from "./html.js";

const BETWEEN_MS = 10_000;
export const announced = signal("");
let last = 0;

/**
 * Say something of live numbers: at most every ten seconds.
 * @param {string} words
 */
export function announce(words) {
  if (Date.now() - last < BETWEEN_MS) return;
  say(words);
}

/**
 * Say what a person has just caused, at once.
 * @param {string} words
 */
export function say(words) {
  last = Date.now();
  announced.value = words;
}
