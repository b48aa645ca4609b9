// What the other files write elements with: Preact, htm and signals under one roof.

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export { Fragment, render } from "../vendor/preact.js";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "../vendor/signals.js";

export const html = htm.bind(h);
