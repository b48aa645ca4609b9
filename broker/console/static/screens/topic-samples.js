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
  const before = useRef({ at: Date.now(), written: Number(topic.written) });
  const [samples, setSamples] = useState(/** @type {Samples} */ ({ times: [], written: [], held: [] }));
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.hidden || isPaused.peek()) return;
      const at = Date.now();
      const total = Number(newest.current.written);
      const last = before.current;
      before.current = { at, written: total };
      // Of a topic that was made again there is no telling how many came; after a pause, when.
      const isTold = total >= last.written && at - last.at < 3 * EVERY_MS;
      setSamples(({ times, written, held }) => ({
        times: [...times, at].slice(-MOST),
        written: [...written, isTold ? (1000 * (total - last.written)) / (at - last.at) : null].slice(-MOST),
        held: [...held, Number(newest.current.blocked_offsets)].slice(-MOST),
      }));
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return samples;
}
