// The shell: header, navigation, what is said of the connection, and the screen of the address.

import { ask, awaySince, needsLogin } from "./api.js";
import { announced } from "./announce.js";
import { bootstrap } from "./commands.js";
import { exactTime, time } from "./format.js";
import { html, signal, useEffect, useRef } from "./html.js";
import { isHelpShown, KEYS } from "./keyboard.js";
import { isLive } from "./live.js";
import { place } from "./location.js";
import { isPaused, isUtc, keys, theme, togglePause, zone } from "./preferences.js";
import { screenOf, SCREENS } from "./screens.js";
import { closeAction, OpenAction } from "../parts/action.js";
import { Login } from "../parts/login.js";

/** Who is asking, and what of changes he may try; null until the broker has said so. */
export const session = signal(/** @type {any} */ (null));

async function meet() {
  try {
    session.value = await ask("/api/v1/session");
    if (session.value.bootstrap) bootstrap.value = session.value.bootstrap;
  } catch {
    // What is wrong shows where something is asked for; it is tried again when the broker is back.
  }
}

export function App() {
  const isAway = awaySince.value !== null;
  useEffect(() => {
    if (!isAway) meet();
  }, [isAway]);
  const key = place.value.parts.join("/");
  const Found = screenOf(place.value.parts);
  useFocusOnHeading(key);
  useEffect(closeAction, [key]);
  return html`
    <a class="skip" href="#content">Skip to the content</a>
    <${Header} />
    <p class="quiet" role="status" aria-live="polite">${announced.value}</p>
    <main id="content" tabindex="-1" class=${isAway ? "old" : ""}>
      ${isAway && html`<p class="away"><span class="mark bad">✗ No response from the broker.</span> The page shows the state before ${time(awaySince.value, isUtc.value)}.</p>`}
      ${needsLogin.value ? html`<${Login} needed=${needsLogin.value} />` : html`<${Found} key=${key} parts=${place.value.parts} />`}
    </main>
    <${Help} />
    <${OpenAction} />
  `;
}

// A new screen is read from its heading on; the first one of a visit as the browser begins.
/** @param {string} key */
function useFocusOnHeading(key) {
  const before = useRef(key);
  useEffect(() => {
    if (before.current === key) return;
    before.current = key;
    /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
  }, [key]);
}

function Header() {
  const current = place.value.parts[0] ?? "";
  const screens = useRef(/** @type {HTMLElement | null} */ (null));
  // In a narrow window the screens are in one line that scrolls.
  useEffect(() => {
    const list = screens.current;
    const link = /** @type {HTMLElement | null} */ (list?.querySelector("[aria-current]"));
    if (list && link) list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  return html`<header>
    <nav aria-label="Screens">
      <a class="brand" href="/">Barnabas</a>
      <ul ref=${screens}>
        ${SCREENS.map(([part, name]) => html`<li key=${part}>
          <a href=${`/${part}`} aria-current=${current === part ? "page" : undefined}>${name}</a>
        </li>`)}
      </ul>
    </nav>
    <div class="switches">
      <${Connection} />
      <button type="button" aria-pressed=${isPaused.value} onClick=${togglePause}>Pause</button>
      <${Choice} label="Time" value=${zone} options=${[["local", "Local"], ["utc", "UTC"]]} />
      <${Choice} label="Theme" value=${theme} options=${[["auto", "System"], ["light", "Light"], ["dark", "Dark"]]} />
      <button type="button" class="keyboard" aria-haspopup="dialog" onClick=${() => { isHelpShown.value = true; }}>Keys</button>
      <${Who} />
    </div>
  </header>`;
}

function Connection() {
  if (awaySince.value !== null) {
    return html`<span id="state" class="mark bad" title=${exactTime(awaySince.value, isUtc.value)}>✗ No response since ${time(awaySince.value, isUtc.value)}</span>`;
  }
  if (isPaused.value) return html`<span id="state" class="mark warn">▲ Paused</span>`;
  return html`<span id="state" class="mark good">${isLive.value ? "● Live" : "✓ Connected"}</span>`;
}

function Who() {
  const who = session.value;
  if (who === null) return null;
  const leave = async () => {
    await ask("/api/v1/session", { method: "DELETE" });
    await meet();
  };
  return html`${who.mode === "read" && html`<span class="mark warn" title=${who.reason}>▲ Read-only</span>`}
    ${who.is_logged_in && html`<span class="user" title=${who.user}>${who.user}</span><button type="button" onClick=${leave}>Log out</button>`}`;
}

/** @param {{ label: string, value: import("../vendor/signals.js").Signal<string>, options: [string, string][] }} given */
function Choice({ label, value, options }) {
  return html`<label class="choice"><span class="quiet">${label}</span>
    <select value=${value.value} onChange=${(/** @type {any} */ event) => { value.value = event.currentTarget.value; }}>
      ${options.map(([name, words]) => html`<option key=${name} value=${name}>${words}</option>`)}
    </select>
  </label>`;
}

function Help() {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    if (isHelpShown.value && !dialog.current?.open) dialog.current?.showModal();
    if (!isHelpShown.value && dialog.current?.open) dialog.current.close();
  }, [isHelpShown.value]);
  return html`<dialog ref=${dialog} aria-labelledby="keys-title" onClose=${() => { isHelpShown.value = false; }}>
    <h2 id="keys-title">Keys</h2>
    <dl class="keys">${KEYS.map(([key, words]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl>
    <p><label><input type="checkbox" checked=${keys.value === "on"}
      onChange=${(/** @type {any} */ event) => { keys.value = event.currentTarget.checked ? "on" : "off"; }} /> Single keys do this</label></p>
    <p><button type="button" onClick=${() => { isHelpShown.value = false; }}>Close</button></p>
  </dialog>`;
}
