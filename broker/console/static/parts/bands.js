// Which of the records that are listed are of one transaction.

/** @typedef {{ number: number, producer: string, isFirst: boolean, count: number }} Band  `isFirst`: of those that are listed. */

const COLOURS = 4;

/**
 * The transaction of each record that has one, by its place; numbered from the top.
 *
 * In a partition, a producer's records up to its next marker are one transaction.
 * @param {any[]} rows  RecordRows of the API.
 * @param {boolean} isNewestFirst
 * @returns {Map<string, Band>}
 */
export function bandsOf(rows, isNewestFirst) {
  /** @type {Map<string, any[]>} */
  const open = new Map();
  /** @type {any[][]} */
  const all = [];
  for (const row of isNewestFirst ? rows.toReversed() : rows) {
    if (!row.is_transactional) continue;
    const whose = `${row.partition}/${row.producer_id}`;
    let band = open.get(whose);
    if (band === undefined) {
      band = [];
      open.set(whose, band);
      all.push(band);
    }
    band.push(row);
    if (row.state === "marker") open.delete(whose);
  }
  const found = new Map();
  for (const [at, band] of (isNewestFirst ? all.toReversed() : all).entries()) {
    const first = isNewestFirst ? band.at(-1) : band[0];
    const written = band.filter((row) => row.state !== "marker").length;
    for (const row of band) {
      found.set(placeOf(row), { number: at + 1, producer: row.producer_id, isFirst: row === first, count: written });
    }
  }
  return found;
}

/**
 * The class of a row, whose edge has the colour of its transaction.
 * @param {Band | undefined} band
 */
export function bandClass(band) {
  return band ? `band band-${band.number % COLOURS}` : "";
}

/**
 * What names a record of a topic, in the address, too.
 * @param {any} row
 */
export function placeOf(row) {
  return `${row.partition}:${row.offset}`;
}
