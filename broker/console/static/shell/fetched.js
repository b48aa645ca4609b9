// What was asked of the API once, or again and again while it is looked at.

import { ask } from "./api.js";
import { signal, useEffect, useMemo } from "./html.js";
import { isPaused } from "./preferences.js";

export const REFRESH_MS = 5000;
const SLOW_MS = 300;

/**
 * @typedef {{ data: any, of: string | null, error: Error | null, isSlow: boolean, failedSince: number | null }} Fetched
 *   `data` stays while the next answer is awaited, and when it fails; `of`: the path whose answer came last.
 */

/**
 * Ask for a path, keep the answer, ask again every `everyMs`; null asks nothing.
 * @param {string | null} target
 * @param {{ everyMs?: number, keep?: string, asking?: typeof ask }} [how]  `keep`: an answer is kept while this is
 *   the same; `asking`: what asks.
 * @returns {{ seen: import("../vendor/signals.js").Signal<Fetched>, refresh: () => void }}
 */
export function useFetched(target, { everyMs = REFRESH_MS, keep = target ?? "", asking = ask } = {}) {
  const seen = useMemo(
    () => signal(/** @type {Fetched} */ ({ data: null, of: null, error: null, isSlow: false, failedSince: null })),
    [keep],
  );
  const again = useMemo(() => ({ now: () => {} }), [keep]);
  useEffect(() => {
    if (target === null) return undefined;
    const given = new AbortController();
    let timer = 0;
    async function look() {
      clearTimeout(timer);
      const slow = setTimeout(() => {
        seen.value = { ...seen.peek(), isSlow: true };
      }, SLOW_MS);
      try {
        const data = await asking(/** @type {string} */ (target), { signal: given.signal });
        if (!given.signal.aborted) seen.value = { data, of: target, error: null, isSlow: false, failedSince: null };
      } catch (error) {
        if (given.signal.aborted) return;
        const before = seen.peek();
        const failedSince = before.failedSince ?? Date.now();
        seen.value = { ...before, of: target, error: /** @type {Error} */ (error), isSlow: false, failedSince };
      } finally {
        clearTimeout(slow);
      }
      if (!given.signal.aborted && everyMs) timer = setTimeout(tick, everyMs);
    }
    function tick() {
      if (document.hidden || isPaused.peek()) timer = setTimeout(tick, 1000);
      else look();
    }
    again.now = look;
    look();
    return () => {
      given.abort();
      clearTimeout(timer);
    };
  }, [target, everyMs, keep]);
  return { seen, refresh: () => again.now() };
}
