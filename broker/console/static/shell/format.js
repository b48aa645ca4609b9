// Numbers and times for people. A number of 64 bits may come as a string: no digit of it is lost.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
export const NOTHING = "–";

/** @typedef {number | string | null | undefined} Figure  A number; a string beyond 2^53. */

/** @param {Figure} value */
export function count(value) {
  if (value === null || value === undefined) return NOTHING;
  return whole.format(typeof value === "string" ? BigInt(value) : value);
}

/** @param {number | null | undefined} value */
export function decimal(value) {
  return value === null || value === undefined ? NOTHING : rough.format(value);
}

/** @param {number | null | undefined} value */
export function rate(value) {
  return value === null || value === undefined ? NOTHING : `${rough.format(value)}/s`;
}

/** @param {Figure} value */
export function bytes(value) {
  if (value === null || value === undefined) return NOTHING;
  let left = Number(value);
  let unit = 0;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${rough.format(left)} ${UNITS[unit]}`;
}

/** @param {number | null | undefined} value */
export function bytesRate(value) {
  return value === null || value === undefined ? NOTHING : `${bytes(value)}/s`;
}

/** @param {number | null | undefined} value */
export function milliseconds(value) {
  return value === null || value === undefined ? NOTHING : `${rough.format(value)} ms`;
}

/** @param {number | null | undefined} value */
export function microseconds(value) {
  if (value === null || value === undefined) return NOTHING;
  if (value < 1000) return `${rough.format(value)} µs`;
  return value < 1_000_000 ? milliseconds(value / 1000) : `${rough.format(value / 1_000_000)} s`;
}

/** @param {number | null | undefined} value */
export function percent(value) {
  return value === null || value === undefined ? NOTHING : `${rough.format(100 * value)} %`;
}

/** @param {Figure} value  Milliseconds. */
export function duration(value) {
  if (value === null || value === undefined) return NOTHING;
  const seconds = Math.max(0, Math.floor(Number(value) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/**
 * A time of day, with the date where it is not today's.
 * @param {Figure} value  Milliseconds since 1970.
 * @param {boolean} isUtc
 */
export function time(value, isUtc) {
  if (value === null || value === undefined) return NOTHING;
  const when = new Date(Number(value));
  if (Number.isNaN(when.getTime())) return String(value);
  const zone = isUtc ? { timeZone: "UTC" } : {};
  const day = when.toLocaleDateString("sv-SE", zone);
  const today = new Date().toLocaleDateString("sv-SE", zone);
  return day === today ? clock(value, isUtc) : `${day} ${clock(value, isUtc)}`;
}

/**
 * A time of day alone, for an axis of hours, where a date has no room.
 * @param {Figure} value  Milliseconds since 1970.
 * @param {boolean} isUtc
 */
export function clock(value, isUtc) {
  if (value === null || value === undefined) return NOTHING;
  return new Date(Number(value)).toLocaleTimeString("sv-SE", isUtc ? { timeZone: "UTC" } : {});
}

/**
 * The same to the millisecond, with its zone.
 * @param {Figure} value
 * @param {boolean} isUtc
 */
export function exactTime(value, isUtc) {
  if (value === null || value === undefined) return NOTHING;
  const when = new Date(Number(value));
  if (Number.isNaN(when.getTime())) return String(value);
  if (isUtc) return when.toISOString().replace("T", " ");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const rest = String(when.getMilliseconds()).padStart(3, "0");
  return `${when.toLocaleString("sv-SE")}.${rest} ${zone}`;
}

/**
 * A number and its noun: "1 record", "2 records".
 * @param {Figure} value
 * @param {string} noun
 * @param {string} [plural]
 */
export function counted(value, noun, plural) {
  return `${count(value)} ${String(value) === "1" ? noun : (plural ?? `${noun}s`)}`;
}

/**
 * One number less another, exact beyond 2^53.
 * @param {Figure} more
 * @param {Figure} less
 */
export function difference(more, less) {
  if (more === null || more === undefined || less === null || less === undefined) return null;
  return String(BigInt(more) - BigInt(less));
}

/**
 * Two numbers together, exact beyond 2^53.
 * @param {string | number} one
 * @param {string | number} other
 */
export function sum(one, other) {
  return String(BigInt(one) + BigInt(other));
}
