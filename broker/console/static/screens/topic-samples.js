// What a topic was like each second since its page was opened.

import { useEffect, useRef, useState } from "../shell/html.js";
import { isPaused } from "../shell/preferences.js";

const EVERY_MS = 1000;
const MOST = 600;

/** @typedef {{ times: number[], written: (number | null)[], held: (number | null)[] }} Samples */

/**
 * @param {import("../api.d.ts").TopicDescription} topic  The newest state.
 * @returns {Samples}
 */
export function useSamples(topic) {
  const newest = useRef(topic);
  newest.current = topic;
  const before = useRef({ at: Date.now(), records: Number(topic.records_max) });
  const [samples, setSamples] = useState(/** @type {Samples} */ ({ times: [], written: [], held: [] }));
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.hidden || isPaused.peek()) return;
      const at = Date.now();
      const records = Number(newest.current.records_max);
      const last = before.current;
      before.current = { at, records };
      // Where records were deleted there is no telling how many came; after a pause, when.
      const isTold = records >= last.records && at - last.at < 3 * EVERY_MS;
      setSamples(({ times, written, held }) => ({
        times: [...times, at].slice(-MOST),
        written: [...written, isTold ? (1000 * (records - last.records)) / (at - last.at) : null].slice(-MOST),
        held: [...held, Number(newest.current.held_back)].slice(-MOST),
      }));
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return samples;
}
