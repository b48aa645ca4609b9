// Records as lines of JSON, byte for byte: the form that `barnabas produce --input json` reads.
//
// What a list shows is laid out and may be cut, so the bytes are asked for one by one.

import { apiPath } from "../shell/api.js";

const ASKED_MS = 15_000;

/**
 * Save records as a file.
 * @param {string} topic
 * @param {any[]} rows  RecordRows of the API.
 * @param {(done: number) => void} progress
 */
export async function save(topic, rows, progress) {
  const lines = [];
  for (const row of rows) {
    if (row.state !== "marker") lines.push(JSON.stringify(await lineOf(topic, row)));
    progress(lines.length);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => `${line}\n`).join("")], { type: "application/x-ndjson" }));
  link.download = `${topic}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), ASKED_MS);
}

/**
 * @param {string} topic
 * @param {any} row
 */
async function lineOf(topic, row) {
  const parts = ["topics", topic, "partitions", String(row.partition), "records", String(row.offset), "raw"];
  const headers = [];
  for (let at = 0; at < row.header_count; at += 1) {
    const shown = row.headers[at];
    // In a list there are only the first of many headers, and their names cannot be asked for.
    if (shown === undefined) throw new Error(`The record at ${row.partition}:${row.offset} has too many headers to be saved from here.`);
    headers.push({ key: shown.name, value: shown.value === null ? null : await bytesOf(parts, `header:${at}`) });
  }
  return {
    topic,
    partition: row.partition,
    offset: row.offset,
    timestamp: row.timestamp_ms,
    key: row.key === null ? null : await bytesOf(parts, "key"),
    value: row.value === null ? null : await bytesOf(parts, "value"),
    headers,
  };
}

/**
 * @param {string[]} parts
 * @param {string} part
 */
async function bytesOf(parts, part) {
  const answer = await fetch(apiPath(parts, { part }), { signal: AbortSignal.timeout(ASKED_MS) });
  if (!answer.ok) throw new Error(`It could not be read: ${answer.status}.`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { base64: btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join("")) };
  }
}
