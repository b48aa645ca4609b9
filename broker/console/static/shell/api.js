// Asking the broker: one function for each way, errors with Kafka's names.

import { signal } from "./html.js";
import { path } from "./location.js";

const ASKED_MS = 15_000;

/** Whether the broker answers: null, or since when it does not. */
export const awaySince = signal(/** @type {number | null} */ (null));
/** Why a login is needed before anything can be seen; null where none is. */
export const needsLogin = signal(/** @type {import("../api.d.ts").LoginNeeded | null} */ (null));

/** A refusal in Kafka's words. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} name
   * @param {string} words
   */
  constructor(status, name, words) {
    super(words);
    this.status = status;
    this.kafkaName = name;
  }
}

/**
 * A path of the API.
 * @param {string[]} parts
 * @param {Record<string, string | number | boolean | null | undefined>} [asked]
 */
export function apiPath(parts, asked = {}) {
  const text = Object.fromEntries(Object.entries(asked).map(([name, value]) => [name, typeof value === "boolean" ? String(value) : value]));
  return path(["api", "v1", ...parts], text);
}

/**
 * Ask for a path of the API; throws Refused, or an Error where the broker is away.
 * @param {string} target
 * @param {{ method?: string, body?: unknown, signal?: AbortSignal }} [how]
 * @returns {Promise<any>}
 */
export async function ask(target, { method = "GET", body, signal: aborted } = {}) {
  const timeout = AbortSignal.timeout(ASKED_MS);
  const asked = { method, signal: aborted ? AbortSignal.any([aborted, timeout]) : timeout, headers: {} };
  if (body !== undefined) Object.assign(asked, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  let answer;
  try {
    answer = await fetch(target, asked);
  } catch (error) {
    if (aborted?.aborted) throw error;
    awaySince.value ??= Date.now();
    throw new Error("The broker does not respond.", { cause: error });
  }
  awaySince.value = null;
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  throw await refusal(answer);
}

const TOGETHER_MS = 5000;
/** @type {Map<string, { at: number, answer: Promise<any> }>} */
const together = new Map();

/**
 * Ask for a path that many parts of a screen ask for: once for all that do so within some seconds.
 * @param {string} target
 * @returns {Promise<any>}
 */
export function askTogether(target) {
  const now = Date.now();
  for (const [name, { at }] of together) if (now - at >= TOGETHER_MS) together.delete(name);
  const known = together.get(target);
  if (known) return known.answer;
  const answer = ask(target);
  together.set(target, { at: now, answer });
  return answer;
}

/**
 * Why it was not done.
 * @param {Response} answer
 */
export async function refusal(answer) {
  const text = await answer.text();
  try {
    const refused = JSON.parse(text);
    // A login that failed says nothing of the ways to log in.
    if (answer.status === 401 && refused.logins) needsLogin.value = refused;
    const { error, message } = refused;
    return new Refused(answer.status, error, message);
  } catch {
    return new Refused(answer.status, `HTTP ${answer.status}`, text.trim().slice(0, 300));
  }
}
