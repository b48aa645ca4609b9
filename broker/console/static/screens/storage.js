// Storage: is the disk the limit?

import { Heat } from "../parts/heat.js";
import { PartitionLink } from "../parts/links.js";
import { Table } from "../parts/list.js";
import { NoHistory, quotient, timeUntilFull, useHistory } from "../parts/past.js";
import { Plot } from "../parts/plot.js";
import { Facts, Screen } from "../parts/screen.js";
import { Empty, Mark, Shown } from "../parts/states.js";
import { Time } from "../parts/times.js";
import { apiPath } from "../shell/api.js";
import { curl } from "../shell/commands.js";
import { bytes, count, decimal, rate } from "../shell/format.js";
import { useFetched } from "../shell/fetched.js";
import { html } from "../shell/html.js";

/** @typedef {import("../api.d.ts").Storage} Disk */

/** @type {[string, string][]} */
const HEATS = [["flush", "Journal sync times"], ["produce", "Produce request times"]];
const SERIES = ["flushes", "flushed_batches", "journal_bytes", "backlog_bytes", "disk_free_bytes", ...HEATS.map(([name]) => name)];
const SIX_HOURS = { step: 10, lengthMs: 21_600_000 };

/** @type {import("../parts/list.js").Column[]} */
const LARGEST = [
  { title: "Partition", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} opens />` },
  { title: "Size", isNumber: true, cell: (row) => bytes(row.size_bytes) },
];

/** @type {import("../parts/list.js").Column[]} */
const COMPACTIONS = [
  { title: "Partition", cell: (row) => html`<${PartitionLink} topic=${row.topic} partition=${row.partition} />` },
  { title: "When", cell: (row) => html`<${Time} at=${row.time_ms} />` },
  { title: "Before", isNumber: true, cell: (row) => bytes(row.bytes_before) },
  { title: "After", isNumber: true, cell: (row) => bytes(row.bytes_after) },
];

export function Storage() {
  const storage = useFetched(apiPath(["storage"])).seen.value;
  const isRecorded = storage.data?.has_history ?? false;
  const past = useHistory(SERIES, SIX_HOURS, isRecorded ? Number(storage.data.as_of) : null);
  return html`<${Screen} title="Storage" question="Disk space, journal and logs" commands=${[curl(apiPath(["storage"]))]}>
    <${Shown} seen=${storage}>${(/** @type {Disk} */ found) => html`<${Summary} storage=${found} />`}<//>
    ${storage.data && !isRecorded ? html`<${NoHistory} />` : html`<${Plots} past=${past} />`}
    <${Shown} seen=${storage}>${(/** @type {Disk} */ found) => html`<${Compactions} passes=${found.compactions} /><${Largest} logs=${found.largest} />`}<//>
  <//>`;
}

/** @param {{ storage: Disk }} given */
function Summary({ storage }) {
  const untilFull = timeUntilFull(storage.full_in_ms);
  return html`
    <p>${storage.is_full
      ? html`<${Mark} kind="bad">The disk is full: the broker rejects appends and serves consumers.<//>`
      : html`<${Mark} kind="good">Disk space left${untilFull && `, ${untilFull}`}.<//>`}
      ${storage.damage ? html` <${Mark} kind="bad">${storage.damage}<//>` : null}</p>
    <${Facts} figures=${[
      ["Directory", html`<code>${storage.directory}</code>`],
      ["Free", bytes(storage.free_bytes)],
      ["Total", bytes(storage.total_bytes)],
      ["Logs", count(storage.logs)],
      ["Size of logs", bytes(storage.size_bytes)],
      ["Journal", bytes(storage.journal_bytes)],
      ["Journal written since the start", bytes(storage.journal_written_bytes)],
      ["Journal backlog", bytes(storage.backlog_bytes)],
    ]} />`;
}

/** @param {{ past: import("../parts/past.js").Past }} given */
function Plots({ past }) {
  const { times, values, heat } = past;
  const of = (/** @type {string} */ name) => values.get(name) ?? [];
  return html`<section class="plots" aria-label="The last six hours">
    ${HEATS.map(([name, title]) => {
      const found = heat.get(name);
      return found ? html`<${Heat} key=${name} title=${title} ...${found} />` : null;
    })}
    <${Plot} title="Journal syncs" format=${rate} times=${times} span="six hours" lines=${[{ label: "syncs", values: of("flushes") }]} />
    <${Plot} title="Batches per sync" format=${decimal} times=${times} span="six hours" lines=${[{ label: "batches", values: quotient(of("flushed_batches"), of("flushes")) }]} />
    <${Plot} title="Journal" format=${bytes} times=${times} span="six hours" lines=${[{ label: "journal", values: of("journal_bytes") }, { label: "backlog", values: of("backlog_bytes") }]} />
    <${Plot} title="Free disk space" format=${bytes} times=${times} span="six hours" lines=${[{ label: "free", values: of("disk_free_bytes") }]} />
  </section>`;
}

/** @param {{ passes: readonly any[] }} given */
function Compactions({ passes }) {
  return html`<section><h2>Compaction</h2>
    ${passes.length
      ? html`<${Table} label="Compaction" columns=${COMPACTIONS} rows=${passes} rowKey=${(/** @type {any} */ row) => `${row.time_ms}-${row.topic}-${row.partition}`} />`
      : html`<${Empty}>No log has been compacted since the broker started.<//>`}
  </section>`;
}

/** @param {{ logs: readonly any[] }} given */
function Largest({ logs }) {
  return html`<section><h2>Largest logs</h2>
    ${logs.length
      ? html`<${Table} label="Largest logs" columns=${LARGEST} rows=${logs} rowKey=${(/** @type {any} */ row) => `${row.topic}-${row.partition}`} />`
      : html`<${Empty} command="barnabas topics create orders">There are no logs yet.<//>`}
  </section>`;
}
