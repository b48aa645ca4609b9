// A change: its button, its form, what it would do, and the name typed where it cannot be undone.
//
// All of it is drawn from the table of actions that the broker serves: there is no form of its own
// for any of them.

import { html, signal, useEffect, useRef, useState } from "../shell/html.js";
import { apiPath, ask, askTogether } from "../shell/api.js";
import { say } from "../shell/announce.js";
import { useFetched } from "../shell/fetched.js";
import { bytes, count, duration } from "../shell/format.js";
import { useChoices } from "./choices.js";
import { CopyAs } from "./copy.js";
import { Field, titled, valueOf } from "./fields.js";
import { Table } from "./list.js";
import { Problem } from "./states.js";

/** @typedef {import("./fields.js").FieldRow} FieldRow */
/**
 * @typedef {{
 *   action: string, title: string, method: string, path: string, resource: string, destructive: boolean,
 *   fields: FieldRow[], one_of: string[],
 * }} ActionRow  As `/api/v1/actions` has them.
 */
/** @typedef {Record<string, string>} Resource  What it is done to: {topic: "orders"}. */

/**
 * @typedef {{
 *   row: ActionRow, on: Resource, values: Record<string, any>, commands: import("./copy.js").Command[],
 *   onDone?: (effect: any) => void,
 * }} Opened  A form, and what it is about.
 */

/** @type {import("../vendor/signals.js").Signal<Opened | null>} */
const opened = signal(null);
/** @type {import("../vendor/signals.js").Signal<Map<string, ActionRow> | null>} */
const table = signal(null);
let isAsked = false;

async function learn() {
  if (isAsked) return;
  isAsked = true;
  try {
    const found = await ask(apiPath(["actions"]));
    table.value = new Map(found.items.map((/** @type {ActionRow} */ each) => [each.action, each]));
  } catch {
    isAsked = false; // The buttons come when it can be asked again.
  }
}

const ALLOWED_MS = 10_000;

/**
 * What somebody may do to one thing, with the reason where he may not.
 * @param {Resource | null} on  Null: not known yet.
 * @returns {Map<string, any>}
 */
function useAllowed(on) {
  const target = on === null ? null : apiPath(["allowed"], on);
  const { data } = useFetched(target, { everyMs: ALLOWED_MS, asking: askTogether }).seen.value;
  return new Map((data?.items ?? []).map((/** @type {any} */ each) => [each.action, each]));
}

/**
 * The button of an action.
 * @param {{
 *   name: string, on?: Resource, isOffered?: boolean, values?: Record<string, any>, words?: string, about?: string,
 *   onDone?: (effect: any) => void, commands?: import("./copy.js").Command[], look?: string,
 * }} given  `look`: a class in place of the one for danger, which the dialog has anyway; `isOffered`: whether there is anything to be done; what was asked for is shown to its end. `values`: what
 *   the form begins with; `about`: what tells it from other buttons of these words.
 */
export function Action({ name, on = {}, isOffered = true, values = {}, words, about = "", onDone, commands = [], look = undefined }) {
  const row = table.value?.get(name);
  useEffect(() => {
    learn();
  });
  // What is done to the broker is allowed or not whatever it is called by.
  const allowed = useAllowed(row && isOffered ? (row.resource ? on : {}) : null).get(name);
  if (!row || !allowed || !isOffered) return null;
  const label = words ?? row.title;
  const shown = look ?? (row.destructive ? "danger" : "");
  if (!allowed.allowed) {
    return html`<span class="refused"><button type="button" class=${shown} aria-disabled="true" title=${allowed.reason}
      onClick=${() => say(allowed.reason)}>${label}</button> <span class="faint">${allowed.reason}</span></span>`;
  }
  const open = () => {
    opened.value = { row, on, values, commands, onDone };
  };
  return html`<button type="button" class=${shown} aria-haspopup="dialog" aria-label=${about ? `${label}… ${about}` : undefined} onClick=${open}>${label}…</button>`;
}

/**
 * The form that is open. It is not the button's: the row with the button may go while somebody reads what was done.
 */
export function OpenAction() {
  return opened.value && html`<${WithChoices} ...${opened.value} />`;
}

/**
 * The form once its choices are known: a list that came later would replace the field in which the user types.
 * @param {Opened} given
 */
function WithChoices(given) {
  const choices = useChoices(given.row.fields, given.on);
  return choices && html`<${Dialog} ...${given} choices=${choices} close=${closeAction} />`;
}

/** Close the form: of another screen it is none. */
export function closeAction() {
  opened.value = null;
}

/** @param {Opened & { choices: Record<string, import("./choices.js").Known | undefined>, close: () => void }} given */
function Dialog({ row, on, values, commands, onDone, choices, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [effect, setEffect] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isAsking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  const [result, setResult] = useState(/** @type {any} */ (null));
  const confirmation = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    // The first that can have the focus gets it. Without a field that is the title: it would be "Copy as", and the
    // confirmation comes only with the effect.
    dialog.current?.showModal();
    // What needs no answer shows what it would do at once.
    if (!row.fields.length) send(true);
  }, []);

  /** @param {boolean} isDry */
  async function send(isDry) {
    setAsking(true);
    try {
      const body = { ...bodyOf(form.current, row.fields), ...(isDry || !row.destructive ? {} : { confirm: typed, based_on: effect.based_on }) };
      const found = await ask(targetOf(row, on, isDry), { method: row.method, body });
      setError(null);
      if (isDry) setEffect(found);
      else {
        setResult(found);
        say(found.summary);
        onDone?.(found);
      }
    } catch (refused) {
      setError(/** @type {Error} */ (refused));
      if ("status" in /** @type {any} */ (refused) && /** @type {any} */ (refused).status === 409) setEffect(null);
    } finally {
      setAsking(false);
    }
  }
  // What comes next is to type the name: of the dialog, and of its button, there is nothing else left to do.
  useEffect(() => {
    if (effect !== null && result === null) confirmation.current?.focus();
  }, [effect]);
  const named = nameOf(row, on);
  const mayGo = effect !== null && (!row.destructive || typed === named);
  return html`<dialog ref=${dialog} class="action" aria-labelledby="action-title" onClose=${close}>
    <h2 id="action-title" tabindex=${row.fields.length ? undefined : "-1"}>${row.title}${named ? html`: <bdi>${named}</bdi>` : null}</h2>
    ${error && html`<${Problem} error=${error} />`}
    ${result
      ? html`<${Effect} effect=${result} />`
      : html`<form ref=${form} onSubmit=${(/** @type {any} */ event) => { event.preventDefault(); if (hasOne(event.currentTarget, row)) send(true); }} onInput=${() => setEffect(null)}>
          ${row.fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} known=${choices[field.name]} others=${othersOf(field, row)} />`)}
          ${row.fields.length ? html`<p><button type="submit" class=${effect ? "" : "primary"} disabled=${isAsking}>Preview</button></p>` : null}
        </form>
        ${effect && html`<${Effect} effect=${effect} />`}
        ${effect && row.destructive
          ? html`<form onSubmit=${(/** @type {any} */ event) => { event.preventDefault(); if (mayGo && !isAsking) send(false); }}>
              <label class="confirmation">Type <bdi><strong>${named}</strong></bdi> to confirm
                <input ref=${confirmation} value=${typed} autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ event) => setTyped(event.currentTarget.value)} /></label></form>`
          : null}`}
    ${commands.length ? html`<${CopyAs} commands=${commands} isDialog />` : null}
    <p class="actions">
      ${!result && html`<button type="button" class=${`${mayGo ? "primary" : ""} ${row.destructive ? "danger" : ""}`} disabled=${!mayGo || isAsking} onClick=${() => send(false)}>${row.title}</button>`}
      <button type="button" class=${result ? "primary" : ""} onClick=${() => dialog.current?.close()}>${result ? "Close" : "Cancel"}</button>
    </p>
  </dialog>`;
}

/**
 * What an action has done, or would.
 * @param {{ effect: any }} given
 */
function Effect({ effect }) {
  const columns = [
    { title: "Object", cell: (/** @type {any} */ row) => row.what },
    { title: "Before", cell: (/** @type {any} */ row) => row.before ?? "–" },
    { title: "After", cell: (/** @type {any} */ row) => row.after ?? "–" },
    { title: "Note", cell: (/** @type {any} */ row) => row.note ?? "" },
  ];
  return html`<section class="effect" aria-label=${effect.dry_run ? "Preview" : "Result"}>
    <p role="status"><strong>${effect.dry_run ? "Preview: " : "✓ Done: "}</strong>${effect.summary}</p>
    ${Object.keys(effect.figures).length
      ? html`<dl class="facts">${figuresOf(effect.figures).map(([title, words]) => html`<div key=${title}><dt>${title}</dt><dd>${words}</dd></div>`)}</dl>`
      : null}
    ${effect.changes.length
      ? html`<${Table} label="Changes" columns=${columns} rows=${effect.changes} rowKey=${(/** @type {any} */ row) => row.what} />`
      : null}
  </section>`;
}

/**
 * The figures of an effect with their units, without those that repeat another one under its old name.
 * @param {Record<string, number | string>} figures
 */
export function figuresOf(figures) {
  const old = new Set(["limits", "offsets_held_back", "rules"]);
  return Object.entries(figures).filter(([name]) => !old.has(name)).map(([name, value]) => figureOf(name, value));
}

/**
 * A figure of an effect with its unit, which the API has in its name.
 * @param {string} name  "bytes", "open_for_ms".
 * @param {number | string} value
 * @returns {[string, string]}
 */
export function figureOf(name, value) {
  const title = titled(name.replace(/_ms$/, "")).replace(/^Bytes$/, "Size").replace(/^Acls$/, "ACLs");
  if (name.endsWith("_at_most")) return [titled(name.replace(/_at_most$/, "")), `at most ${count(value)}`];
  if (name.endsWith("_ms")) return [title, duration(value)];
  if (name === "bytes" || name.endsWith("_bytes")) return [title, bytes(value)];
  // What is beyond 2^53 comes as a text, and so may be anything else that is none of a number.
  return [title, /^-?\d+$/.test(String(value)) ? count(value) : String(value)];
}

/**
 * The titles of the fields that are filled in instead of one.
 * @param {FieldRow} field
 * @param {ActionRow} row
 */
function othersOf({ name }, { one_of: names, fields }) {
  return names.includes(name) ? fields.filter((each) => each.name !== name && names.includes(each.name)).map(({ title }) => title) : [];
}

/**
 * Whether one of the fields is filled in of which an action needs exactly one; says so at the first of them otherwise.
 * @param {HTMLFormElement} form
 * @param {ActionRow} row
 */
function hasOne(form, { one_of: names, fields }) {
  const inputs = names.map((name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name)));
  if (!inputs.length || inputs.filter((input) => input.value !== "").length === 1) return true;
  const titles = fields.filter((field) => names.includes(field.name)).map((field) => field.title);
  inputs[0].setCustomValidity(`Fill in one of these: ${titles.join(", ")}`);
  inputs[0].reportValidity();
  const forgotten = () => inputs[0].setCustomValidity("");
  for (const input of inputs) input.addEventListener("input", forgotten, { once: true });
  return false;
}

/**
 * @param {ActionRow} row
 * @param {Resource} on
 * @param {boolean} isDry
 */
function targetOf(row, on, isDry) {
  const parts = row.path.replace("/api/v1/", "").split("/");
  const named = parts.map((part) => (part.startsWith("{") ? on[part.slice(1, -1)] : part));
  return apiPath(named, isDry ? { dry_run: true } : {});
}

/**
 * The name that is typed: that of what the path ends with.
 * @param {ActionRow} row
 * @param {Resource} on
 */
function nameOf(row, on) {
  const names = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => on[name]);
  return names.at(-1) ?? "";
}

/**
 * @param {HTMLFormElement | null} form
 * @param {FieldRow[]} fields
 */
function bodyOf(form, fields) {
  if (form === null) return {};
  const given = new FormData(form);
  const values = fields.map((field) => [field.name, valueOf(field, given)]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}
