// Records as lines of JSON, whole: the form that `barnabas produce --input json` reads.

import { apiPath, Refused, refusal } from "../shell/api.js";
import { placeOf } from "./bands.js";

const NEXT = "Barnabas-Next";
const ASKED_MS = 30_000;
const FREED_MS = 60_000;
const PAGE_ROWS = 500;

/**
 * Save the records that are listed as a file, the oldest first; throws Refused, or an Error.
 * @param {string} topic
 * @param {Record<string, string | number>} asked  What they were asked for with.
 * @param {any[]} rows  RecordRows of the API, the oldest first, without markers.
 * @param {(done: number) => void} progress
 */
export async function save(topic, asked, rows, progress) {
  const found = new Map();
  for (const [partition, listed] of Map.groupBy(rows, (row) => row.partition)) {
    const wanted = new Set(listed.map(placeOf));
    // Each partition from the first that is listed on, so that what has come since is not in the way.
    for await (const line of linesOf(topic, { ...asked, partition, from: `offset:${listed[0].offset}`, order: "oldest" })) {
      const place = placeIn(line);
      if (wanted.delete(place)) found.set(place, line);
      progress(found.size);
      if (!wanted.size) break;
    }
    if (wanted.size) throw new Refused(404, "OFFSET_NOT_AVAILABLE", `${wanted.size} of them are not there any more.`);
  }
  offer(`${topic}.jsonl`, rows.map((row) => found.get(placeOf(row))));
}

/**
 * @param {string} topic
 * @param {Record<string, string | number>} asked
 */
async function* linesOf(topic, asked) {
  let after = "";
  do {
    const target = apiPath(["topics", topic, "records", "export"], { ...asked, limit: PAGE_ROWS, after });
    const answer = await fetch(target, { signal: AbortSignal.timeout(ASKED_MS) });
    if (!answer.ok) throw await refusal(answer);
    yield* (await answer.text()).split("\n").filter(Boolean);
    after = answer.headers.get(NEXT) ?? "";
  } while (after);
}

/**
 * The partition and offset of a line: they stand in it before anything that somebody has written.
 * @param {string} line
 */
function placeIn(line) {
  const found = /"partition": (\d+), "offset": (\d+)/.exec(line);
  return found ? `${found[1]}:${found[2]}` : "";
}

/**
 * @param {string} name
 * @param {string[]} lines
 */
function offer(name, lines) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines.map((line) => `${line}\n`), { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), FREED_MS);
}
