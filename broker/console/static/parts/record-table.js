// Records in a table: the state of each, and which of them are of one transaction.

import { apiPath } from "../shell/api.js";
import { bytes, counted } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html, useEffect, useRef } from "../shell/html.js";
import { moveWith } from "../shell/keyboard.js";
import { query, setQuery } from "../shell/location.js";
import { bandClass, bandsOf, placeOf } from "./bands.js";
import { TransactionLink } from "./links.js";
import { OneRecord, State, Value } from "./record.js";
import { useSlices } from "./slices.js";
import { Time } from "./times.js";

const NAMED = 1000;

/**
 * @param {{
 *   topic: string, items: any[], formats: Record<string, string | undefined>, hasBands: boolean, isNewestFirst: boolean,
 *   isOld?: boolean,
 * }} given  `hasBands`: whether all records are listed, those of open and aborted transactions, too.
 */
export function RecordTable({ topic, items, formats, hasBands, isNewestFirst, isOld = false }) {
  const chosen = query.value.record;
  useMoves(items);
  return html`<div class=${chosen ? "beside" : ""}>
    ${chosen ? html`<${OneRecord} key=${chosen} topic=${topic} place=${chosen} formats=${formats} />` : null}
    ${items.length ? html`<${Rows} topic=${topic} items=${items} chosen=${chosen} hasBands=${hasBands} isNewestFirst=${isNewestFirst} isOld=${isOld} />` : null}
  </div>`;
}

/**
 * While a record is open, `j` and `k` open the one below and the one above.
 * @param {any[]} items
 */
function useMoves(items) {
  const shown = useRef(items);
  shown.current = items;
  useEffect(() => {
    moveWith((step) => {
      const chosen = query.peek().record;
      const at = shown.current.findIndex((row) => placeOf(row) === chosen);
      if (!chosen || at < 0) return false;
      const next = shown.current[Math.min(Math.max(at + step, 0), shown.current.length - 1)];
      open(placeOf(next));
      document.getElementById(idOf(next))?.focus();
      return true;
    });
    return () => moveWith(null);
  }, []);
}

/** @param {string | null} place */
function open(place) {
  setQuery({ record: place });
}

/** @param {any} row */
function idOf(row) {
  return `record-${row.partition}-${row.offset}`;
}

/**
 * @param {{
 *   topic: string, items: any[], chosen: string | undefined, hasBands: boolean, isNewestFirst: boolean, isOld: boolean,
 * }} given
 */
function Rows({ topic, items, chosen, hasBands, isNewestFirst, isOld }) {
  const bands = hasBands ? bandsOf(items, isNewestFirst) : new Map();
  const names = useNames(topic, bands.size > 0);
  /** Rows that are as they were are not drawn again. @type {{ current: WeakMap<any, { of: string, row: any }> }} */
  const drawn = useRef(new WeakMap());
  /** @param {any} row */
  const rowOf = (row) => {
    const band = bands.get(placeOf(row));
    const name = band && names.get(band.producer);
    const of = `${chosen === placeOf(row)} ${bands.size > 0} ${JSON.stringify(band)} ${name}`;
    const before = drawn.current.get(row);
    if (before?.of === of) return before.row;
    const made = html`<${Row} key=${placeOf(row)} row=${row} isChosen=${chosen === placeOf(row)} hasBands=${bands.size > 0} band=${band} name=${name} />`;
    drawn.current.set(row, { of, row: made });
    return made;
  };
  const slices = useSlices(items);
  return html`<div class="scroll records" tabindex="0" role="region" aria-label="Records">
    ${slices.map((slice, at) => html`<div class="slice ${bands.size ? "banded" : ""}" key=${slice.number}>
      <table class=${isOld ? "old" : ""}>
        <${Head} hasBands=${bands.size > 0} isFirst=${at === 0} />
        <tbody>${slice.items.map(rowOf)}</tbody>
      </table>
    </div>`)}
  </div>`;
}

/**
 * The columns of a slice; behind the first one for who does not see them above.
 * @param {{ hasBands: boolean, isFirst: boolean }} given
 */
function Head({ hasBands, isFirst }) {
  return html`<colgroup>
      <col class="of-offset" /><col class="of-time" /><col class="of-key" /><col class="of-value" /><col class="of-state" />
      ${hasBands ? html`<col class="of-band" />` : null}<col class="of-size" />
    </colgroup>
    <thead class=${isFirst ? "" : "again"}><tr>
      <th scope="col" class="number" title="Partition number, colon, offset in the partition">Partition:<wbr />offset</th><th scope="col">Time</th><th scope="col">Key</th><th scope="col">Value</th>
      <th scope="col">State</th>${hasBands ? html`<th scope="col">Transaction</th>` : null}<th scope="col" class="number">Size</th>
    </tr></thead>`;
}

/** @param {{ row: any, isChosen: boolean, hasBands: boolean, band: import("./bands.js").Band | undefined, name: string | undefined }} given */
function Row({ row, isChosen, hasBands, band, name }) {
  return html`<tr data-row class=${bandClass(band)}>
    <th scope="row" class="number"><button type="button" class="small" id=${idOf(row)} data-open aria-expanded=${isChosen}
      onClick=${() => open(isChosen ? null : placeOf(row))}>${placeOf(row)}</button></th>
    <td><${Time} at=${row.timestamp_ms} /></td>
    <td><${Value} shown=${row.key} /></td>
    <td><${Value} shown=${row.value} /></td>
    <td><${State} row=${row} /></td>
    ${hasBands ? html`<td>${band ? html`<${InBand} band=${band} name=${name} />` : "none"}</td>` : null}
    <td class="number">${bytes(row.size_bytes)}</td>
  </tr>`;
}

/** @param {{ band: import("./bands.js").Band, name: string | undefined }} given */
function InBand({ band, name }) {
  if (!band.isFirst) return html`${band.number}`;
  return html`${band.number}: ${name === undefined ? `producer ${band.producer}` : html`<${TransactionLink} name=${name} />`}, ${counted(band.count, "record")}`;
}

/**
 * The transactional ids of a topic's producers, by producer id.
 * @param {string} topic
 * @param {boolean} isWanted
 * @returns {Map<string, string>}
 */
function useNames(topic, isWanted) {
  const target = isWanted ? apiPath(["topics", topic, "producers"], { limit: NAMED }) : null;
  const { data } = useFetched(target, { keep: topic }).seen.value;
  const items = data?.items ?? [];
  return new Map(items.filter((/** @type {any} */ row) => row.transactional_id !== null).map((/** @type {any} */ row) => [row.producer_id, row.transactional_id]));
}
