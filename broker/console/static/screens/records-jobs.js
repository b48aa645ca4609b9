// Replays of a topic's records: how far each is, and what has become of it.

import { Action } from "../parts/action.js";
import { Table } from "../parts/list.js";
import { TransactionLink } from "../parts/links.js";
import { Mark } from "../parts/states.js";
import { Time } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { REFRESH_MS, useFetched } from "../shell/fetched.js";
import { bytes, count, counted } from "../shell/format.js";
import { html, useEffect, useState } from "../shell/html.js";
import { path } from "../shell/location.js";

const RUNNING_MS = 1000;

/** @type {Record<string, "good" | "bad" | "warn" | "plain">} */
const KINDS = { running: "warn", committed: "good", cancelled: "plain", failed: "bad" };

/** @param {{ topic: string, started: number }} given  `started`: how many were started here. */
export function Jobs({ topic, started }) {
  const [isRunning, setRunning] = useState(false);
  const { seen, refresh } = useFetched(apiPath(["jobs"], { topic }), { everyMs: isRunning ? RUNNING_MS : REFRESH_MS, keep: topic });
  const items = seen.value.data?.items ?? [];
  useEffect(() => setRunning(items.some((/** @type {any} */ row) => row.state === "running")), [items]);
  useEffect(() => {
    if (started) refresh();
  }, [started]);
  if (!items.length) return null;
  const columns = [
    { title: "Job", cell: (/** @type {any} */ row) => html`<${TransactionLink} name=${row.transactional_id} />` },
    { title: "State", cell: (/** @type {any} */ row) => html`<${Mark} kind=${KINDS[row.state]}>${row.state}<//>${row.message === null ? "" : ` ${row.message}`}` },
    { title: "From", cell: (/** @type {any} */ row) => row.topic === null ? "–" : html`<${TopicLink} name=${row.topic} />` },
    { title: "To", cell: (/** @type {any} */ row) => row.target === null ? "–" : html`<${TopicLink} name=${row.target} />` },
    { title: "Progress", cell: (/** @type {any} */ row) => html`<${HowFar} row=${row} />` },
    { title: "Written", cell: (/** @type {any} */ row) => html`${count(row.records)} (${bytes(row.bytes)})` },
    { title: "Started", cell: (/** @type {any} */ row) => html`<${Time} at=${row.started_ms} />` },
    { title: "Action", cell: (/** @type {any} */ row) => row.state === "running" ? html`<${Action} name="job.cancel" words="Cancel" on=${{ transactional_id: row.transactional_id }} />` : null },
  ];
  return html`<details open=${isRunning || started > 0}><summary>${counted(items.length, "replay")}</summary>
    <${Table} label="Replays" columns=${columns} rows=${items} rowKey=${(/** @type {any} */ row) => row.transactional_id} />
  </details>`;
}

/** @param {{ name: string }} given */
function TopicLink({ name }) {
  return html`<a href=${path(["topics", name, "records"])}>${name}</a>`;
}

/** @param {{ row: any }} given */
function HowFar({ row }) {
  const [done, total] = [Number(row.offsets_done), Number(row.offsets_total)];
  const words = `${count(row.offsets_done)} of ${count(row.offsets_total)} offsets`;
  return html`${row.state === "running" ? html`<progress value=${done} max=${Math.max(total, 1)} aria-label=${words}></progress> ` : null}${words}`;
}

/**
 * What the form of a replay begins with: what is listed.
 * @param {string} topic
 * @param {Record<string, string>} place
 */
export function chosenBy(topic, place) {
  const { filter, partition, from, until_ms: until } = place;
  return { topic, filter, partition, from, until_ms: until };
}
