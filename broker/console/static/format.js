// Numbers and times for people. A number of 64 bits may come as a string: no digit of it is lost.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function count(value) {
  if (value === null) return "–";
  return whole.format(typeof value === "string" ? BigInt(value) : value);
}

export function rate(value) {
  return value === null ? "–" : `${rough.format(value)}/s`;
}

export function bytes(value) {
  if (value === null) return "–";
  let left = Number(value);
  let unit = 0;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${rough.format(left)} ${UNITS[unit]}`;
}

export function milliseconds(value) {
  return value === null ? "–" : `${rough.format(value)} ms`;
}

export function percent(value) {
  return value === null ? "–" : `${rough.format(100 * value)} %`;
}

export function duration(value) {
  const seconds = Math.max(0, Math.floor(Number(value) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
