// An answer of events that somebody asked for, and that may end.
//
// An EventSource would not say why it was refused, and comes again when everything has been said.

import { awaySince, Refused, refusal } from "./api.js";

/**
 * The events of an answer, until it ends; throws Refused, or an Error where the broker is away.
 * @param {string} target  A path of the API.
 * @param {AbortSignal} aborted
 * @returns {AsyncGenerator<{ kind: string, data: any }>}
 */
export async function* eventsOf(target, aborted) {
  let answer;
  try {
    answer = await fetch(target, { signal: aborted, headers: { Accept: "text/event-stream" } });
  } catch (error) {
    throw away(error, aborted);
  }
  awaySince.value = null;
  if (!answer.ok) throw await refusal(answer);
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  try {
    yield* readAll(reader, aborted);
  } finally {
    // Who has read enough closes the answer; else the broker cuts it off, and the browser complains.
    if (!aborted.aborted) await reader.cancel().catch(() => undefined); // Of one that is broken it fails.
  }
}

/**
 * @param {ReadableStreamDefaultReader<string>} reader
 * @param {AbortSignal} aborted
 * @returns {AsyncGenerator<{ kind: string, data: any }>}
 */
async function* readAll(reader, aborted) {
  let rest = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      throw away(error, aborted);
    }
    if (piece.done) return;
    const blocks = (rest + piece.value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = read(block);
      if (event?.kind === "refused") throw new Refused(400, event.data.error, event.data.message);
      if (event) yield event;
    }
  }
}

/**
 * @param {unknown} error
 * @param {AbortSignal} aborted
 */
function away(error, aborted) {
  if (aborted.aborted) return error;
  awaySince.value ??= Date.now();
  return new Error("The broker does not respond.", { cause: error });
}

/** @param {string} block  Lines; comments keep the connection open and say nothing. */
function read(block) {
  const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  const kind = fields.get("event");
  return kind === undefined ? null : { kind, data: JSON.parse(fields.get("data") ?? "null") };
}
