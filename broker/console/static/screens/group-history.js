// How the lag of a group has gone, and when its members were shared out anew.

import { Plot } from "../parts/plot.js";
import { Shown } from "../parts/states.js";
import { Time } from "../parts/times.js";
import { Trend } from "../parts/trend.js";
import { apiPath } from "../shell/api.js";
import { count, counted } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";

const NAMED = 5;

/** @param {{ name: string }} given */
export function History({ name }) {
  const { seen } = useFetched(apiPath(["groups", name, "history"]));
  return html`<h2>Lag over time</h2>
    <${Shown} seen=${seen.value}>${(/** @type {any} */ data) => html`<${Lag} data=${data} /><${Rebalances} data=${data} />`}<//>`;
}

/** @param {{ data: any }} given  A GroupHistory of the API. */
function Lag({ data }) {
  if (data.is_hidden) return html`<p class="faint">The lag is hidden: it includes topics that you cannot see.</p>`;
  if (data.since_ms === null) return html`<p class="faint">Measured every five seconds once the group has a committed offset.</p>`;
  return html`<p>Trend: <${Trend} trend=${data.trend} /> <span class="faint">(measured since <${Time} at=${data.since_ms} /> while a page shows the group; the broker keeps ten minutes)</span></p>
    <div class="plots"><${Plot} title="Lag" times=${data.times_ms.map(Number)} format=${count}
      marks=${data.rebalances.map((/** @type {any} */ each) => Number(each.time_ms))}
      lines=${[
        { label: "Can be read now", values: data.lag_readable.map(Number) },
        { label: "blocked", values: data.lag_blocked.map(Number) },
      ]} /></div>`;
}

/** @param {{ data: any }} given  A GroupHistory of the API. */
function Rebalances({ data }) {
  const all = data.rebalances;
  const since = html`since <${Time} at=${data.rebalances_since_ms} />`;
  if (!all.length) return html`<p class="faint">No rebalance ${since}.</p>`;
  return html`<p>${counted(all.length, "rebalance")} ${since}${all.length > NAMED ? `, the last ${NAMED}` : ""}: ${all.slice(-NAMED).reverse().map((/** @type {any} */ each, /** @type {number} */ at) =>
    html`${at ? ", " : ""}<${Time} at=${each.time_ms} /> (generation ${count(each.generation)})`)}. <span class="faint">The plot marks each of them.</span></p>`;
}
