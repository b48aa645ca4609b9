// A list that the server filters, sorts and pages; its state is in the address.

import { apiPath } from "../shell/api.js";
import { count } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html, useEffect, useId, useRef, useState } from "../shell/html.js";
import { focusRow } from "../shell/keyboard.js";
import { query, setQuery } from "../shell/location.js";
import { Problem } from "./states.js";
import { Time } from "./times.js";

const PAGE_ROWS = 100;
const LARGEST_PAGE = 1000;
const TYPED_MS = 250;

/**
 * @typedef {{
 *   title: string, sort?: string, isNumber?: boolean, cell: (row: any) => any, help?: string,
 * }} Column  The first column is what names the row; `sort` is what the API calls it.
 */

/**
 * A list of the API.
 * @param {{
 *   label: string, parts: string[], columns: Column[] | ((refresh: () => void) => Column[]), rowKey: (row: any) => string,
 *   asked?: Record<string, string | number | boolean | null>, sort: string, empty: any | ((data: any) => any),
 *   hasFilter?: boolean, filterWords?: string, prefix?: string, everyMs?: number, options?: any, note?: (data: any) => any,
 * }} given  `prefix`: of the fields of the address, where a screen has two lists; `options`: what stands beside the
 *   filter; it and `empty` may depend on what was answered; `note`: what else of the answer is said; `refresh` asks at
 *   once for what has changed.
 */
export function List(given) {
  const { label, parts, rowKey, asked = {}, empty, hasFilter = true, prefix = "", options = null, note } = given;
  const place = query.value;
  const filter = place[`${prefix}filter`] ?? "";
  const sort = place[`${prefix}sort`] ?? given.sort;
  const [rows, setRows] = useState(PAGE_ROWS);
  const state = { ...asked, sort, ...(hasFilter ? { filter } : {}) };
  const target = apiPath(parts, { ...state, limit: Math.min(rows, LARGEST_PAGE) });
  const { seen, refresh } = useFetched(target, { keep: parts.join("/"), everyMs: given.everyMs });
  const { data, of, error, isSlow, failedSince } = seen.value;
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const leave = useLeaving(section, of === target);
  const items = data?.items ?? [];
  const columns = typeof given.columns === "function" ? given.columns(refresh) : given.columns;
  return html`<section ref=${section} class="list ${isSlow ? "slow" : ""}" aria-label=${label}>
    <div class="tools">
      ${hasFilter && html`<${Filter} name=${`${prefix}filter`} value=${filter} words=${given.filterWords ?? `Filter ${label.toLowerCase()}`} leave=${leave} />`}
      ${typeof options === "function" ? options(data) : options}
      <span class="faint" role="status">
        ${data && html`${shownOf(items.length, data)}, as of <${Time} at=${data.as_of} />`}
      </span>
    </div>
    ${error && html`<${Problem} error=${error} since=${failedSince} />`}
    ${data && note?.(data)}
    ${data === null && error ? null : data && !items.length
      ? filter ? html`<div class="empty"><p>No name contains “${filter}”.</p></div>` : typeof empty === "function" ? empty(data) : empty
      : html`<${Table} label=${label} columns=${columns} rows=${items} rowKey=${rowKey} sort=${sort} isOld=${error !== null}
          sorts=${(/** @type {string} */ chosen) => setQuery({ [`${prefix}sort`]: chosen === given.sort ? null : chosen })} />`}
    ${data?.next && rows < LARGEST_PAGE
      ? html`<button type="button" onClick=${() => setRows(rows + PAGE_ROWS)}>Show ${PAGE_ROWS} more</button>`
      : null}
    ${data?.next && rows >= LARGEST_PAGE ? html`<p class="faint">The list has more rows: use the filter.</p>` : null}
  </section>`;
}

/**
 * How many rows are shown, of how many; some lists do not know it.
 * @param {number} shown
 * @param {{ next: string | null, total?: number }} data
 */
export function shownOf(shown, { next, total }) {
  if (next === null) return `${count(shown)} shown`;
  return total === undefined ? `${count(shown)} shown, there are more` : `${count(shown)} of ${count(total)} shown`;
}

/**
 * What has the focus go from the filter to the first row, once that is one of what the filter finds.
 * @param {{ current: HTMLElement | null }} section
 * @param {boolean} isAnswered
 */
function useLeaving(section, isAnswered) {
  const [isLeaving, setLeaving] = useState(false);
  useEffect(() => {
    if (!isLeaving || !isAnswered) return;
    setLeaving(false);
    // Somebody may have gone elsewhere meanwhile.
    if (section.current?.contains(document.activeElement)) focusRow(section.current);
  }, [isLeaving, isAnswered]);
  return () => setLeaving(true);
}

/** @param {{ name: string, value: string, words: string, leave: () => void }} given */
function Filter({ name, value, words, leave }) {
  const [typed, setTyped] = useState(value);
  const id = useId();
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => setQuery({ [name]: typed || null }), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  /** @param {KeyboardEvent} event */
  const left = (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown" && (event.key !== "Escape" || typed)) return;
    event.preventDefault();
    if (typed !== value) setQuery({ [name]: typed || null });
    leave();
  };
  return html`<label class="filter" for=${id}>${words}
    <input id=${id} type="search" data-filter autocomplete="off" spellcheck=${false} value=${typed} onKeyDown=${left}
      onInput=${(/** @type {any} */ event) => setTyped(event.currentTarget.value)} />
  </label>`;
}

/**
 * A table; without `sorts`, one whose order is as it is.
 * @param {{
 *   label: string, columns: Column[], rows: any[], rowKey: (row: any) => string, sort?: string,
 *   sorts?: (sort: string) => void, isOld?: boolean,
 * }} given
 */
export function Table({ label, columns, rows, rowKey, sort = "", sorts, isOld = false }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table class=${isOld ? "old" : ""}>
      <thead><tr>${columns.map((column) => html`<${Heading} key=${column.title} column=${column} sort=${sort} sorts=${sorts} />`)}</tr></thead>
      <tbody>
        ${rows.map((row) => html`<tr key=${rowKey(row)} data-row>
          ${columns.map((column, at) =>
            at === 0
              ? html`<th scope="row" class=${column.isNumber ? "number" : ""}>${column.cell(row)}</th>`
              : html`<td class=${column.isNumber ? "number" : ""}>${column.cell(row)}</td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{ column: Column, sort: string, sorts?: (sort: string) => void }} given */
function Heading({ column, sort, sorts }) {
  const { title, help, isNumber } = column;
  const look = isNumber ? "number" : "";
  if (!column.sort || !sorts) return html`<th scope="col" class=${look} title=${help}>${title}</th>`;
  const isUp = sort === column.sort;
  const isDown = sort === `-${column.sort}`;
  // Numbers are asked for from the largest on, names from the first on.
  const next = isNumber ? (isDown ? column.sort : `-${column.sort}`) : isUp ? `-${column.sort}` : column.sort;
  return html`<th scope="col" class=${look} title=${help} aria-sort=${isUp ? "ascending" : isDown ? "descending" : "none"}>
    <button type="button" class="sorts" onClick=${() => sorts(next)}>${title}<span aria-hidden="true">${isUp ? " ↑" : isDown ? " ↓" : ""}</span></button>
  </th>`;
}
