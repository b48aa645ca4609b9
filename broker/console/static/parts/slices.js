// Many rows without a long task: drawn some in each frame, in slices of which only what is near the window is laid out.

import { useEffect, useRef, useState } from "../shell/html.js";

const SLICE_ROWS = 50;
/** Rows that are new to a frame: a page of a hundred takes five. */
const NEW_ROWS = 20;

/** @typedef {{ number: number, items: any[] }} Slice */

/**
 * Rows in slices; a row stays in its slice whether others come before it, as in a live tail, or behind it.
 * @param {any[]} items
 * @returns {Slice[]}
 */
export function useSlices(items) {
  /** Places of the rows that are drawn, counted from the first one that was. @type {{ current: WeakMap<any, number> }} */
  const places = useRef(new WeakMap());
  const [, drawMore] = useState(0);
  const { slices, isWhole } = sliced(items, places.current);
  useEffect(() => {
    if (isWhole) return undefined;
    const frame = requestAnimationFrame(() => drawMore((before) => before + 1));
    return () => cancelAnimationFrame(frame);
  });
  return slices;
}

/**
 * @param {any[]} items
 * @param {WeakMap<any, number>} places  Takes in those that are to be drawn.
 * @returns {{ slices: Slice[], isWhole: boolean }}
 */
export function sliced(items, places) {
  const known = items.findIndex((item) => places.has(item));
  const origin = known < 0 ? 0 : /** @type {number} */ (places.get(items[known])) - known;
  /** @type {Slice[]} */
  const slices = [];
  let left = NEW_ROWS;
  let isWhole = true;
  for (const [at, item] of items.entries()) {
    if (!places.has(item)) {
      if (!left) {
        isWhole = false;
        continue;
      }
      left -= 1;
      places.set(item, origin + at);
    }
    const number = Math.floor((origin + at) / SLICE_ROWS);
    if (slices.at(-1)?.number !== number) slices.push({ number, items: [] });
    slices[slices.length - 1].items.push(item);
  }
  return { slices, isWhole };
}
