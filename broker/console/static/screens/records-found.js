// What of a topic is shown: a page of it, what a search finds meanwhile, or what comes in.

import { apiPath, ask, Refused } from "../shell/api.js";
import { announce, say } from "../shell/announce.js";
import { eventsOf } from "../shell/events.js";
import { counted, difference, sum } from "../shell/format.js";
import { useEffect, useRef, useState } from "../shell/html.js";

/** Records that a page keeps. */
export const MOST_KEPT = 1000;
/** Records that a live tail keeps. */
export const TAIL_KEPT = 300;
const DRAWN_MS = 200;
const AGAIN_MS = 3000;
const TOO_MANY = 429;

/**
 * @typedef {{
 *   items: any[], scanned: any, next: string | null, formats: { key: string, value: string } | null,
 *   error: Error | null, isAsking: boolean, wasStopped: boolean, skipped: string, unseen: string,
 *   isOf: string, isOld: boolean,
 * }} Found  `isOf`: the question that this answers; `isOld`: another one is asked, and not answered yet.
 */

/** @type {Found} */
const NOTHING_YET = {
  items: [], scanned: null, next: null, formats: null,
  error: null, isAsking: true, wasStopped: false, skipped: "0", unseen: "0",
  isOf: "", isOld: true,
};

/** @typedef {(change: (before: Found) => Found) => void} Sets */

/**
 * @param {string} topic
 * @param {Record<string, string | number>} asked  As the API calls it.
 * @param {{ isFollowing: boolean, isPaused: boolean }} how  Pausing a live tail keeps what is there.
 */
export function useFound(topic, asked, { isFollowing, isPaused }) {
  const parts = ["topics", topic, "records"];
  const question = apiPath(parts, isFollowing ? { ...asked, follow: true } : asked);
  const [found, setFound] = useState(NOTHING_YET);
  const [after, setAfter] = useState({ question, cursor: "", scanned: /** @type {any} */ (null) });
  const cursor = after.question === question ? after.cursor : "";
  const stop = useRef(() => {});
  const isStill = isFollowing && isPaused;
  useEffect(() => {
    const asking = new AbortController();
    const isMore = cursor !== "" || isFollowing;
    setFound((before) => ({ ...before, isAsking: !isStill, error: null, wasStopped: false, isOld: !isMore || before.isOf !== question }));
    if (isStill) return undefined;
    stop.current = () => {
      asking.abort();
      setFound((before) => ({ ...before, isAsking: false, wasStopped: true }));
    };
    /** @type {Sets} */
    const sets = (change) => {
      if (asking.signal.aborted) return;
      setFound((before) => change(before.isOld ? { ...NOTHING_YET, isOf: question, isOld: false } : before));
    };
    const target = apiPath(parts, { ...asked, after: cursor });
    if (isFollowing) follow(question, asking.signal, sets);
    else {
      const before = cursor === "" ? null : after.scanned;
      if (asked.filter) search(target, asking.signal, sets, before);
      else look(target, asking.signal, sets, before);
    }
    return () => asking.abort();
  }, [question, cursor, isStill]);
  return {
    found,
    stop: () => stop.current(),
    goOn: () => setAfter({ question, cursor: found.next ?? "", scanned: found.scanned }),
  };
}

/**
 * A page.
 * @param {string} target
 * @param {AbortSignal} aborted
 * @param {Sets} sets
 * @param {any} before  What was looked at before, where this goes on.
 */
async function look(target, aborted, sets, before) {
  try {
    const page = await ask(target, { signal: aborted });
    sets((shown) => ({
      ...shown,
      items: [...shown.items, ...page.items].slice(-MOST_KEPT),
      scanned: joined(before, page.scanned),
      next: page.next,
      formats: { key: page.key_format, value: page.value_format },
      isAsking: false,
    }));
    if (!aborted.aborted) say(`${counted(page.items.length, "record")} found.`);
  } catch (error) {
    sets((before) => ({ ...before, error: /** @type {Error} */ (error), isAsking: false }));
  }
}

/**
 * A search, which shows what it finds and how far it is.
 * @param {string} target
 * @param {AbortSignal} aborted
 * @param {Sets} sets
 * @param {any} before  What was looked at before, where this goes on.
 */
async function search(target, aborted, sets, before) {
  const draw = drawing(aborted, (records) => sets((before) => ({ ...before, items: [...before.items, ...records].slice(-MOST_KEPT) })));
  try {
    for await (const { kind, data } of eventsOf(target, aborted)) {
      if (kind === "record") {
        draw.add(data);
        continue;
      }
      draw.now();
      const isDone = kind === "done";
      sets((shown) => ({
        ...shown,
        scanned: joined(before, data.scanned),
        next: data.next,
        formats: data.key_format === null ? null : { key: data.key_format, value: data.value_format },
        isAsking: !isDone,
      }));
      if (!isDone) continue;
      if (!aborted.aborted) say(`${counted(data.found, "record")} found.`);
      return;
    }
    throw new Error("The search was cut off.");
  } catch (error) {
    draw.now();
    sets((before) => ({ ...before, error: /** @type {Error} */ (error), isAsking: false }));
  }
}

/**
 * What two looks have looked at, of which the second has gone on behind the first.
 * @param {any} before  Null where there was none.
 * @param {any} now
 */
export function joined(before, now) {
  if (before === null) return now;
  const earlier = new Map(before.partitions.map((/** @type {any} */ each) => [each.partition, each]));
  const partitions = now.partitions.map((/** @type {any} */ each) => {
    const first = earlier.get(each.partition);
    earlier.delete(each.partition);
    if (!first || first.from_offset === first.until_offset) return each;
    if (each.from_offset === each.until_offset) return { ...each, from_offset: first.from_offset, until_offset: first.until_offset };
    return { ...each, from_offset: Math.min(first.from_offset, each.from_offset), until_offset: Math.max(first.until_offset, each.until_offset) };
  });
  return {
    ...now,
    records: sum(before.records, now.records),
    bytes: sum(before.bytes, now.bytes),
    took_ms: before.took_ms + now.took_ms,
    undecided: sum(before.undecided, now.undecided),
    partitions: [...earlier.values(), ...partitions].sort((one, other) => one.partition - other.partition),
    unread: [...before.unread, ...now.unread],
  };
}

/**
 * What comes in, the newest first; when the stream is cut off, it begins again.
 * @param {string} target
 * @param {AbortSignal} aborted
 * @param {Sets} sets
 */
async function follow(target, aborted, sets) {
  const draw = drawing(aborted, (records) => {
    sets((before) => ({ ...before, isAsking: false, items: [...records.reverse(), ...before.items].slice(0, TAIL_KEPT) }));
    announce(`${counted(records.length, "record")} more.`);
  });
  while (!aborted.aborted) {
    // Each stream counts from its own begin.
    let told = /** @type {any} */ ({ skipped: 0, unseen: 0 });
    try {
      sets((before) => ({ ...before, error: null }));
      for await (const { kind, data } of eventsOf(target, aborted)) {
        if (kind === "record") draw.add(data);
        if (kind !== "skipped") continue;
        const [skipped, unseen] = [difference(data.skipped, told.skipped), difference(data.unseen, told.unseen)];
        told = data;
        sets((before) => ({ ...before, skipped: sum(before.skipped, skipped ?? 0), unseen: sum(before.unseen, unseen ?? 0) }));
      }
    } catch (error) {
      sets((before) => ({ ...before, error: /** @type {Error} */ (error), isAsking: false }));
      if (error instanceof Refused && error.status !== TOO_MANY && error.status < 500) return;
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

/**
 * Records that are drawn together: not for each of them is the page made anew.
 * @param {AbortSignal} aborted
 * @param {(records: any[]) => void} shows
 */
function drawing(aborted, shows) {
  /** @type {any[]} */
  let waiting = [];
  let timer = 0;
  function now() {
    clearTimeout(timer);
    timer = 0;
    if (waiting.length && !aborted.aborted) shows(waiting);
    waiting = [];
  }
  return {
    now,
    /** @param {any} record */
    add(record) {
      waiting.push(record);
      if (!timer) timer = setTimeout(now, DRAWN_MS);
    },
  };
}
