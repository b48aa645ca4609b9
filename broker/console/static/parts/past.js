// What the broker has recorded of itself, from before anybody looked, and how it goes on.

import { ask, apiPath } from "../shell/api.js";
import { duration } from "../shell/format.js";
import { html, useEffect, useState } from "../shell/html.js";
import { isPaused } from "../shell/preferences.js";

const SPAN_MS = 10_000;
const AGAIN_MS = 1000;
const YEAR_MS = 365 * 86_400_000;

/** @typedef {import("../api.d.ts").HistoryOfBroker} History */
/** @typedef {{ bounds: number[], times: number[], counts: number[][] }} HeatPast */
/** @typedef {{ times: number[], values: Map<string, (number | null)[]>, heat: Map<string, HeatPast> }} Past */

/** @returns {Past} */
function nothing() {
  return { times: [], values: new Map(), heat: new Map() };
}

/**
 * Some series of the history, which grow every ten seconds: only what is new is asked for.
 * @param {string[]} names
 * @param {{ step: number, lengthMs: number }} span
 * @param {number | null} now  The broker's time; null as long as there is nothing to be asked.
 * @returns {Past}
 */
export function useHistory(names, span, now) {
  const [past, setPast] = useState(nothing);
  const asked = names.join();
  const isThere = now !== null;
  useEffect(() => {
    setPast(nothing());
    if (now === null) return undefined;
    const given = new AbortController();
    let since = now - span.lengthMs;
    let timer = 0;
    async function look() {
      try {
        const target = apiPath(["history"], { series: asked, step_s: span.step, since_ms: since });
        const found = /** @type {History} */ (await ask(target, { signal: given.signal }));
        since = Math.max(since, newest(found) + 1);
        setPast((before) => joined(before, found, newest(found) - span.lengthMs));
      } catch {
        // What is wrong the header says, and the screen above; it is tried again.
      }
      if (!given.signal.aborted) timer = setTimeout(tick, SPAN_MS);
    }
    function tick() {
      if (document.hidden || isPaused.peek()) timer = setTimeout(tick, AGAIN_MS);
      else look();
    }
    look();
    return () => {
      given.abort();
      clearTimeout(timer);
    };
  }, [asked, span, isThere]);
  return past;
}

/** @param {History} found */
function newest(found) {
  return Math.max(0, ...[found.times_ms, ...found.heat.map((each) => each.times_ms)].map((times) => Number(times.at(-1) ?? 0)));
}

/**
 * What was there and what has come, from a time on.
 * @param {Past} before
 * @param {History} found
 * @param {number} from
 * @returns {Past}
 */
export function joined(before, found, from) {
  const times = [...before.times, ...found.times_ms.map(Number)];
  const first = firstSince(times, from);
  const values = new Map(found.series.map(({ name, values: more }) => [name, [...(before.values.get(name) ?? []), ...more].slice(first)]));
  const heat = new Map(found.heat.map((each) => [each.name, joinedHeat(before.heat.get(each.name), each, from)]));
  return { times: times.slice(first), values, heat };
}

/**
 * @param {HeatPast | undefined} before
 * @param {import("../api.d.ts").HeatOfHistory} found
 * @param {number} from
 * @returns {HeatPast}
 */
function joinedHeat(before, found, from) {
  const times = [...(before?.times ?? []), ...found.times_ms.map(Number)];
  const first = firstSince(times, from);
  return { bounds: found.bounds_us.map(Number), times: times.slice(first), counts: [...(before?.counts ?? []), ...found.counts].slice(first) };
}

/**
 * @param {number[]} times
 * @param {number} from
 */
function firstSince(times, from) {
  const first = times.findIndex((each) => each >= from);
  return first < 0 ? times.length : first;
}

/**
 * One series divided by another; nothing where that was nothing.
 * @param {(number | null)[] | undefined} values
 * @param {(number | null)[] | undefined} by
 * @returns {(number | null)[]}
 */
export function quotient(values = [], by = []) {
  return values.map((value, at) => (value === null || !by[at] ? null : value / by[at]));
}

/** What stands in the place of all plots where nothing is recorded. */
export function NoHistory() {
  return html`<p class="empty">Nothing is recorded, so rates, latencies, the heat maps and the time until the disk is full are missing:
    <code>barnabas.console.history</code> is <code>false</code>. With <code>barnabas.console.history=true</code> in <code>server.properties</code>
    they are there from the next start on; they take less than 2 MB of memory.</p>`;
}

/**
 * When the device is full at the rate of the last hour: of all that is written to it, not of this broker alone.
 * @param {import("../shell/format.js").Figure} fullInMs
 */
export function timeUntilFull(fullInMs) {
  if (fullInMs === null || fullInMs === undefined) return "";
  return `full in ${Number(fullInMs) > YEAR_MS ? "more than a year" : `about ${duration(fullInMs)}`} at the device's present rate`;
}
