// A topic: what is in it, who writes and reads it, and who holds its readers back?

import { Action } from "../parts/action.js";
import { Plot } from "../parts/plot.js";
import { Facts, Screen } from "../parts/screen.js";
import { Missing, isMissing } from "../parts/missing.js";
import { Mark, Problem } from "../parts/states.js";
import { barnabas, kafka, kcat } from "../shell/commands.js";
import { bytes, count, counted, rate } from "../shell/format.js";
import { html, useRef } from "../shell/html.js";
import { useLive } from "../shell/live.js";
import { path } from "../shell/location.js";
import { Configs, Groups, Held, Partitions, Producers, Readers } from "./topic-lists.js";
import { useSamples } from "./topic-samples.js";

/** @param {{ parts: string[] }} given */
export function Topic({ parts }) {
  const name = parts[1];
  const { state, error } = useLive(`topic:${encodeURIComponent(name)}`).value;
  const wasHeld = useRef(false);
  wasHeld.current ||= Number(state?.blocked_offsets ?? 0) > 0; // Short transactions come and go: the list stays to look for long ones.
  if (isMissing(error)) return html`<${Missing} title=${name} kind="topic" above=${{ href: "/topics", words: "Topics" }} command="barnabas topics list" />`;
  const on = { topic: name };
  const records = path(["topics", name, "records"]);
  const actions = html`
    <a class="button" href=${records}>Records</a>
    <a class="button" href=${path(["topics", name, "records"], { follow: 1 })}>Follow</a>
    <${Action} name="records.produce" on=${on} commands=${[barnabas("produce", name), kcat("-P", "-t", name)]} />
    <${Action} name="topic.configure" on=${on} />
    <${Action} name="topic.add_partitions" on=${on} />
    <${Action} name="topic.delete_records" on=${on} />
    <${Action} name="topic.delete" on=${on} commands=${[barnabas("topics", "delete", name)]} />`;
  return html`<${Screen} title=${name} question="Contents, producers and consumers" above=${{ href: "/topics", words: "Topics" }} actions=${actions}
    commands=${[barnabas("topics", "describe", name), kcat("-L", "-t", name), kafka("kafka-topics", "--describe", "--topic", name)]}>
    ${error && html`<${Problem} error=${error} />`}
    ${state === null && !error ? html`<p class="faint">Loading</p>` : null}
    ${state && html`<${Summary} topic=${state} />`}
    ${state && html`<${Plots} key=${name} topic=${state} />`}
    ${wasHeld.current ? html`<${Held} topic=${name} />` : null}
    <h2>Partitions</h2><${Partitions} topic=${name} />
    <h2>Producers</h2><${Producers} topic=${name} />
    <h2>Consumer groups</h2><${Groups} topic=${name} />
    <h2>Consumer connections</h2><${Readers} topic=${name} />
    <h2>Configurations</h2>${state && html`<${Configs} rows=${state.configs} />`}
  <//>`;
}

/** @param {{ topic: import("../api.d.ts").TopicDescription }} given */
function Summary({ topic }) {
  const held = Number(topic.blocked_offsets);
  return html`
    <p>${held
      ? html`<${Mark} kind="warn">${counted(topic.blocked_offsets, "record")} ${held === 1 ? "is" : "are"} blocked by open transactions.<//>`
      : html`<${Mark} kind="good">No record is blocked for read_committed consumers.<//>`}</p>
    <${Facts} figures=${[
      ["Partitions", count(topic.partitions)],
      ["Records", html`<span title="Upper bound: transaction markers and compacted records are counted">${count(topic.records_max)}</span>`],
      ["Size", bytes(topic.size_bytes)],
      ["Blocked", count(topic.blocked_offsets)],
      ["Cleanup", topic.cleanup_policy],
      ["Id", html`<code>${topic.topic_id}</code>`],
    ]} />`;
}

/**
 * Since the page was opened: the broker keeps no history of single topics.
 * @param {{ topic: import("../api.d.ts").TopicDescription }} given
 */
function Plots({ topic }) {
  const { times, written, held } = useSamples(topic);
  return html`<div class="plots">
    <${Plot} title="Records in" times=${times} lines=${[{ label: "in", values: written }]} format=${rate} span="this visit" />
    <${Plot} title="Records blocked for read_committed consumers" times=${times} lines=${[{ label: "blocked", values: held, colour: 2 }]} format=${count}
      span="this visit" />
  </div>`;
}
