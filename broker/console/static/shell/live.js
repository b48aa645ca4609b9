// The newest state of some things, for as long as the page is looked at: one stream for all of it.

import { awaySince, refusal } from "./api.js";
import { effect, signal, useEffect, useMemo } from "./html.js";
import { isPaused } from "./preferences.js";

const AGAIN_MS = 3000;
const LARGEST_WATCHED = 8;

/** @typedef {{ state: any, error: { error: string, message: string } | null, at: number | null }} Seen */

/** @type {Map<string, { users: number, seen: import("../vendor/signals.js").Signal<Seen> }>} */
const watched = new Map();
/** @type {EventSource | null} */
let source = null;
let watching = "";
let again = 0;
let isPlanned = false;

export const isLive = signal(false);

/**
 * The newest state of one thing, as `/api/v1/live` calls it: "overview", "group:a%2Fb".
 * @param {string} name
 * @returns {import("../vendor/signals.js").Signal<Seen>}
 */
export function useLive(name) {
  const entry = useMemo(() => entryOf(name), [name]);
  useEffect(() => {
    const mine = entry;
    watched.set(name, mine);
    mine.users += 1;
    plan();
    return () => {
      mine.users -= 1;
      if (!mine.users) watched.delete(name);
      plan();
    };
  }, [name]);
  return entry.seen;
}

/** @param {string} name */
function entryOf(name) {
  let entry = watched.get(name);
  if (entry === undefined) {
    entry = { users: 0, seen: signal(/** @type {Seen} */ ({ state: null, error: null, at: null })) };
    watched.set(name, entry);
  }
  return entry;
}

// Several parts of a screen come and go in one turn; the stream is opened once after all of them.
function plan() {
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => {
    isPlanned = false;
    follow();
  });
}

// A browser has six connections to one broker: a page that nobody sees gives its one back.
function follow() {
  const used = [...watched].filter(([, entry]) => entry.users).map(([name]) => name);
  const wanted = isPaused.peek() || document.hidden ? "" : used.slice(0, LARGEST_WATCHED).join(",");
  if (wanted === watching && (source !== null || !wanted)) return;
  close();
  watching = wanted;
  if (wanted) open(wanted);
}

function close() {
  clearTimeout(again);
  source?.close();
  source = null;
  isLive.value = false;
}

/** @param {string} wanted */
function open(wanted) {
  const opened = new EventSource(`/api/v1/live?${new URLSearchParams({ watch: wanted })}`);
  source = opened;
  opened.addEventListener("open", () => {
    isLive.value = true;
    awaySince.value = null;
  });
  opened.addEventListener("state", (event) => {
    const { watch, state } = JSON.parse(event.data);
    const entry = watched.get(watch);
    if (entry) entry.seen.value = { state, error: null, at: Date.now() };
  });
  opened.addEventListener("refused", (event) => {
    const { watch, error } = JSON.parse(event.data);
    const entry = watched.get(watch);
    if (entry) entry.seen.value = { ...entry.seen.peek(), error };
  });
  opened.addEventListener("error", () => {
    isLive.value = false;
    awaySince.value ??= Date.now();
    // A stream that was cut is opened again by the browser, one that was refused is not.
    if (opened.readyState !== EventSource.CLOSED) return;
    close();
    again = setTimeout(findOut, AGAIN_MS);
  });
}

// An EventSource does not say why it was refused: a plain request does.
async function findOut() {
  try {
    const answer = await fetch("/api/v1/session", { signal: AbortSignal.timeout(AGAIN_MS) });
    if (!answer.ok) await refusal(answer);
  } catch {
    // Still away: the next try of the stream says so again.
  }
  watching = "";
  follow();
}

document.addEventListener("visibilitychange", follow);
effect(() => {
  isPaused.value;
  plan();
});
