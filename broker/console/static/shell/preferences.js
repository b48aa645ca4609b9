// What a person chooses for all screens, kept by the browser; and whether the page stands still.

import { computed, effect, signal } from "./html.js";
import { place, setQuery } from "./location.js";

/** @typedef {"auto" | "light" | "dark"} Theme */

/**
 * @param {string} name
 * @param {string} otherwise
 */
function kept(name, otherwise) {
  const found = signal(stored(name) ?? otherwise);
  effect(() => {
    try {
      localStorage.setItem(`barnabas.${name}`, found.value);
    } catch {
      // A browser that keeps nothing: the choice holds until the page is closed.
    }
  });
  return found;
}

/** @param {string} name */
function stored(name) {
  try {
    return localStorage.getItem(`barnabas.${name}`);
  } catch {
    return null;
  }
}

export const theme = kept("theme", "auto");
export const zone = kept("zone", "local");
export const keys = kept("keys", "on");
export const isUtc = computed(() => zone.value === "utc");

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

/** Whether live numbers stand still; a part of the address. */
export const isPaused = computed(() => place.value.query.paused === "1");

export function togglePause() {
  setQuery({ paused: isPaused.peek() ? null : "1" });
}

/** The time that relative ages are counted from: a second long, and still while paused. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden && !isPaused.peek()) now.value = Date.now();
}, 1000);
