// The keyboard: one table of keys, none of which does anything in a field but to leave it.

import { signal } from "./html.js";
import { go } from "./location.js";
import { keys, togglePause } from "./preferences.js";

export const KEYS = [
  ["/", "Filter"],
  ["↓, Enter", "Leave the filter for the first row"],
  ["Escape", "Empty the filter, then leave it, or another field"],
  ["g n", "Go to Now"],
  ["g t", "Go to topics"],
  ["g g", "Go to groups"],
  ["g x", "Go to transactions"],
  ["g p", "Go to pipelines"],
  ["g c", "Go to clients"],
  ["g s", "Go to storage"],
  ["g e", "Go to events"],
  ["j, k", "Next row, row before"],
  ["Enter", "Open the row"],
  ["p", "Pause, resume"],
  ["c", "Copy the equivalent command"],
  ["?", "These keys"],
];
/** @type {Record<string, string>} */
const PLACES = {
  n: "/",
  t: "/topics",
  g: "/groups",
  x: "/transactions",
  p: "/pipelines",
  c: "/clients",
  s: "/storage",
  e: "/events",
};
const CHORD_MS = 1500;

export const isHelpShown = signal(false);
/** @type {(() => void) | null} */
let copies = null;
/** @type {((step: number) => boolean) | null} */
let moves = null;
let chordUntil = 0;

/**
 * Say what `c` copies on this screen.
 * @param {(() => void) | null} copying
 */
export function copyWith(copying) {
  copies = copying;
}

/**
 * Say what `j` and `k` do while something is open; false where they move the focus as everywhere.
 * @param {((step: number) => boolean) | null} moving
 */
export function moveWith(moving) {
  moves = moving;
}

/**
 * What the rows of a part of the page open.
 * @param {ParentNode} within
 * @returns {HTMLElement[]}
 */
function openersIn(within) {
  return [...within.querySelectorAll(":is([data-row] :is(a, button), a[data-row])[data-open]")].map((each) => /** @type {HTMLElement} */ (each));
}

/**
 * Have the focus on the first row of a part of the page, or on the title where there is none.
 * @param {ParentNode} [within]
 */
export function focusRow(within = document) {
  const first = openersIn(within)[0] ?? document.querySelector("main h1");
  /** @type {HTMLElement | null} */ (first)?.focus();
}

/** @param {number} step */
function moveRow(step) {
  if (moves?.(step)) return;
  const rows = openersIn(document);
  if (!rows.length) return;
  const at = rows.findIndex((each) => each.closest("[data-row]")?.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1);
  rows[next].focus();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (leavesField(event)) return undefined;
  if (keys.peek() !== "on" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
  const isChord = Date.now() < chordUntil;
  chordUntil = 0;
  if (isChord && PLACES[event.key]) return done(event, () => go(PLACES[event.key]));
  switch (event.key) {
    case "g":
      chordUntil = Date.now() + CHORD_MS;
      return undefined;
    case "/":
      return done(event, () => /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"))?.focus());
    case "j":
      return done(event, () => moveRow(1));
    case "k":
      return done(event, () => moveRow(-1));
    case "p":
      return done(event, togglePause);
    case "c":
      return copies ? done(event, copies) : undefined;
    case "?":
      return done(event, () => {
        isHelpShown.value = !isHelpShown.peek();
      });
    default:
      return undefined;
  }
}

/**
 * Leave a field by the keys that every field knows; false if there is nothing to leave.
 * @param {KeyboardEvent} event
 */
function leavesField(event) {
  const at = event.target;
  if (event.defaultPrevented || isInDialog() || !(at instanceof HTMLElement) || !isField(at)) return false;
  const isFilter = at instanceof HTMLInputElement && at.matches("[data-filter]");
  if (event.key === "Escape" && isFilter && at.value) {
    done(event, () => {
      at.value = "";
      at.dispatchEvent(new Event("input", { bubbles: true }));
    });
  } else if (event.key === "ArrowDown" && isFilter) done(event, () => focusRow());
  else if (event.key === "Escape") done(event, () => /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus());
  else return false;
  return true;
}

function isInDialog() {
  return document.querySelector("dialog[open]") !== null;
}

/** @param {HTMLElement} at */
function isField(at) {
  return at.isContentEditable || at.matches("input:not([type=checkbox], [type=radio]), textarea, select");
}

/** @param {KeyboardEvent} event */
function isWriting(event) {
  if (isInDialog() && event.key !== "?") return true;
  return event.target instanceof HTMLElement && isField(event.target);
}

/**
 * @param {KeyboardEvent} event
 * @param {() => void} doing
 */
function done(event, doing) {
  event.preventDefault();
  doing();
}

document.addEventListener("keydown", pressed);
