// Fields of a form, and what was typed into them as the API takes it.

import { html, useId, useMemo } from "../shell/html.js";

/**
 * @typedef {{
 *   name: string, kind: "text" | "long" | "integer" | "password" | "map" | "headers" | "once", doc: string,
 *   title: string, choices: string[], required: boolean, default?: any,
 * }} FieldRow
 */

/**
 * A name of the API as a title: "before_offset" is "Before offset".
 * @param {string} name
 */
export function titled(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * One field.
 * @param {{ field: FieldRow, value?: any, known?: import("./choices.js").Known, others?: string[] }} given  `known`: what can be
 *   chosen; `others`: titles of fields that are filled in instead of this one.
 */
export function Field({ field, value, known, others = [] }) {
  const id = useId();
  if (field.kind === "once") return html`<${Once} name=${field.name} />`;
  const begin = value ?? field.default ?? "";
  return html`<p><label for=${id}>${field.title}${field.required ? "" : html` <span class="faint">(${others.length ? `or ${others.join(", ")}` : "optional"})</span>`}
      ${control(field, id, begin, known)}</label>
    <span class="faint" id=${`${id}-doc`}>${field.doc}</span></p>`;
}

/**
 * What makes all that one form sends the same request, however often it is sent.
 * @param {{ name: string }} given
 */
function Once({ name }) {
  const key = useMemo(() => {
    const random = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(random, (each) => each.toString(16).padStart(2, "0")).join("");
  }, []);
  return html`<input type="hidden" name=${name} value=${key} />`;
}

/**
 * @param {FieldRow} field
 * @param {string} id
 * @param {any} begin
 * @param {import("./choices.js").Known | undefined} known
 */
function control(field, id, begin, known) {
  const shared = { id, name: field.name, required: field.required, "aria-describedby": `${id}-doc`, autocomplete: "off", spellcheck: false };
  if (field.choices.length) {
    return html`<select ...${shared}>
      ${field.required ? null : html`<option value=""></option>`}
      ${field.choices.map((each) => html`<option key=${each} value=${each} selected=${each === begin}>${each}</option>`)}
    </select>`;
  }
  if (known?.isClosed) {
    return html`<select ...${shared}>
      ${field.required ? null : html`<option value=""></option>`}
      ${known.values.map((each) => html`<option key=${each} value=${each} selected=${each === String(begin)}>${each}</option>`)}
    </select>`;
  }
  if (known) {
    return html`<input ...${shared} list=${`${id}-known`} defaultValue=${String(begin)} />
      <datalist id=${`${id}-known`}>${known.values.map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>`;
  }
  switch (field.kind) {
    case "long":
      return html`<textarea ...${shared} rows="6" defaultValue=${String(begin)}></textarea>`;
    case "map":
      return html`<textarea ...${shared} rows="4" placeholder="key=value, a line for each" defaultValue=${asLines(begin)}></textarea>`;
    case "password":
      return html`<input ...${shared} type="password" autocomplete="new-password" />`;
    case "headers":
      return html`<textarea ...${shared} rows="3" placeholder="name=value, a line for each" defaultValue=${headerLines(begin)}></textarea>`;
    case "integer":
      return html`<input ...${shared} inputmode="numeric" pattern="-?[0-9]+" defaultValue=${String(begin)} />`;
    default:
      return html`<input ...${shared} defaultValue=${String(begin)} />`;
  }
}

/** @param {any} value */
function asLines(value) {
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([name, each]) => `${name}=${each}`).join("\n");
}

/**
 * What the API takes of a field; undefined where nothing was given.
 * @param {FieldRow} field
 * @param {FormData} given
 */
export function valueOf(field, given) {
  const text = given.get(field.name);
  if (text === null || text === "") return undefined;
  const words = String(text);
  switch (field.kind) {
    case "integer": {
      const number = Number(words);
      // What JavaScript would round goes as text: the broker reads both.
      return Number.isSafeInteger(number) ? number : words;
    }
    case "map":
      return Object.fromEntries(lines(words).map(pair));
    case "headers":
      return lines(words).map(headerOf);
    default:
      return words;
  }
}

/** @param {string} words */
function lines(words) {
  return words.split("\n").map((each) => each.trim()).filter(Boolean);
}

/** @param {string} line */
function pair(line) {
  const at = line.indexOf("=");
  return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** @typedef {{ key: string, value: string | null | { base64: string } }} Header  As the API has it. */

const HEXADECIMAL = ":hex";
/** A name and a value that are what they are in a line name=value. */
const PLAIN_NAME = /^[^\s{=:](?:[^=:\r\n]*[^\s=:])?$/;
const PLAIN_VALUE = /^(?:\S(?:[^\r\n]*\S)?)?$/;

/**
 * Headers as lines that `headerOf` reads.
 * @param {any} value
 */
export function headerLines(value) {
  return Array.isArray(value) ? value.map(lineOf).join("\n") : "";
}

/** @param {Header} header */
function lineOf({ key, value }) {
  if (!PLAIN_NAME.test(key) || (typeof value === "string" && !PLAIN_VALUE.test(value))) return JSON.stringify({ key, value });
  if (value === null) return key;
  if (typeof value === "string") return `${key}=${value}`;
  const digits = Array.from(atob(value.base64), (each) => each.charCodeAt(0).toString(16).padStart(2, "0"));
  return `${key}${HEXADECIMAL}=${digits.join("")}`;
}

/**
 * What a line means: `name=value`, `name:hex=00ff`, `name` alone for null, or a header in JSON.
 * @param {string} line
 */
export function headerOf(line) {
  if (line.startsWith("{")) return jsonOr(line);
  const [name, value] = pair(line);
  if (name === null || value === null || !name.endsWith(HEXADECIMAL)) return { key: name, value };
  const pairs = value.replaceAll(/\s/g, "").match(/^(?:[0-9a-fA-F]{2})*$/)?.[0];
  if (pairs === undefined) throw new Error(`${name}: no hexadecimal digits`);
  const bytes = Array.from(pairs.matchAll(/../g), ([each]) => String.fromCharCode(Number.parseInt(each, 16)));
  return { key: name.slice(0, -HEXADECIMAL.length), value: { base64: btoa(bytes.join("")) } };
}

/** @param {string} line */
function jsonOr(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`${line}: no header in JSON`);
  }
}
