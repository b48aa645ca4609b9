// The address: which screen is shown, and all of its state that a link should carry.

import { computed, signal } from "./html.js";

/** @typedef {{ parts: string[], query: Record<string, string>, hash: string }} Place */

/** @returns {Place} */
function read() {
  const raw = window.location.pathname.replace(/^\/+|\/+$/g, "");
  return {
    parts: raw ? raw.split("/").map(decoded) : [],
    query: Object.fromEntries(new URLSearchParams(window.location.search)),
    hash: window.location.hash,
  };
}

/** @param {string} part */
function decoded(part) {
  try {
    const text = decodeURIComponent(part);
    return /^~+\.{1,2}$/.test(text) ? text.slice(1) : text;
  } catch {
    return part;
  }
}

/**
 * As a part of a path. "." and ".." have a "~" in front: browsers take them away, encoded, too (URL Standard,
 * double-dot path segments); and so has what would be read as one of these.
 * @param {string} text
 */
function encoded(text) {
  return encodeURIComponent(/^~*\.{1,2}$/.test(text) ? `~${text}` : text);
}

export const place = signal(read());
export const query = computed(() => place.value.query);

/**
 * A path; each part may be any text.
 * @param {string[]} parts
 * @param {Record<string, string | number | null | undefined>} [asked]
 */
export function path(parts, asked = {}) {
  const given = Object.entries(asked).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/${parts.map(encoded).join("/")}${search ? `?${search}` : ""}`;
}

/**
 * Go somewhere; `replace` leaves no trace of the place before.
 * @param {string} href
 * @param {{ replace?: boolean }} [how]
 */
export function go(href, { replace = false } = {}) {
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  place.value = read();
  if (!replace) window.scrollTo(0, 0);
}

/**
 * Change some of the query, which is state of the screen; null takes a field out.
 * @param {Record<string, string | number | null | undefined>} changes
 * @param {{ replace?: boolean }} [how]
 */
export function setQuery(changes, how = { replace: true }) {
  go(path(place.peek().parts, { ...place.peek().query, ...changes }), how);
}

/** @param {MouseEvent} event */
function followed(event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
  if (link.pathname.startsWith("/api/") || link.pathname.startsWith("/assets/")) return;
  if (link.hash && link.pathname === window.location.pathname && link.search === window.location.search) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
}

window.addEventListener("popstate", () => {
  place.value = read();
});
document.addEventListener("click", followed);
