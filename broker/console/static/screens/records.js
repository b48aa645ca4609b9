// Records: find one, see what state it is in.

import { Action } from "../parts/action.js";
import { Missing, isMissing } from "../parts/missing.js";
import { RecordTable } from "../parts/record-table.js";
import { Screen } from "../parts/screen.js";
import { Empty, Problem } from "../parts/states.js";
import { apiPath } from "../shell/api.js";
import { barnabas, curl, kcat } from "../shell/commands.js";
import { html, useState } from "../shell/html.js";
import { path, query } from "../shell/location.js";
import { isPaused } from "../shell/preferences.js";
import { Choices } from "./records-choices.js";
import { useFound } from "./records-found.js";
import { chosenBy, Jobs } from "./records-jobs.js";
import { Followed, Looked, Save } from "./records-looked.js";

/** What of the address is asked of the API, in a live tail and otherwise. */
const OF_TAIL = ["partition", "filter", "view", "key_format", "value_format"];
const OF_PAGE = [...OF_TAIL, "from", "until_ms", "order"];
const PAGE_ROWS = 100;

/** @param {{ parts: string[] }} given */
export function Records({ parts }) {
  const topic = parts[1];
  const place = query.value;
  const isFollowing = place.follow === "1";
  const [started, setStarted] = useState(0);
  const asked = askedBy(place, isFollowing);
  const { found, stop, goOn } = useFound(topic, asked, { isFollowing, isPaused: isPaused.value });
  const partition = place.partition && !place.partition.includes(",") ? place.partition : null;
  const formats = { key_format: place.key_format ?? found.formats?.key, value_format: place.value_format ?? found.formats?.value };
  if (isMissing(found.error)) return html`<${Missing} title=${topic} kind="topic" above=${{ href: "/topics", words: "Topics" }} command="barnabas topics list" />`;
  const isEmpty = !found.isOld && !found.isAsking && !found.items.length && !found.error;
  return html`<${Screen} title=${`Records of ${topic}`} above=${{ href: path(["topics", topic]), words: topic }} commands=${commandsOf(topic, place, asked, isFollowing)}
    actions=${html`<${Action} name="records.produce" on=${{ topic }} values=${partition ? { partition } : {}} />
      <${Action} name="records.replay" on=${{ topic }} values=${chosenBy(topic, place)} onDone=${() => setStarted(started + 1)} />`}>
    <${Choices} key=${topic} guessed=${found.formats} />
    ${found.error && html`<${Problem} error=${found.error} />`}
    ${isFollowing
      ? html`<${Followed} found=${found} isPaused=${isPaused.value} />`
      : html`<${Looked} found=${found} isSearch=${Boolean(place.filter)} stop=${stop} goOn=${goOn} />`}
    <${Jobs} topic=${topic} started=${started} />
    <div class=${found.isAsking && !isFollowing ? "slow" : ""} aria-busy=${found.isAsking && !isFollowing}>
      <${RecordTable} topic=${topic} items=${found.items} formats=${formats} hasBands=${place.view === "all"} isNewestFirst=${isFollowing || place.order !== "oldest"}
        isOld=${found.isOld} />
      ${isEmpty && !isFollowing ? html`<${Nothing} topic=${topic} place=${place} hasMore=${found.next !== null} />` : null}
    </div>
    ${found.items.length && !isFollowing ? html`<${Save} topic=${topic} asked=${asked} items=${found.items} isNewestFirst=${place.order !== "oldest"} />` : null}
  <//>`;
}

/**
 * @param {Record<string, string>} place
 * @param {boolean} isFollowing
 * @returns {Record<string, string | number>}
 */
function askedBy(place, isFollowing) {
  const given = (isFollowing ? OF_TAIL : OF_PAGE).filter((name) => place[name]).map((name) => [name, place[name]]);
  return { ...Object.fromEntries(given), ...(isFollowing ? { from: "end" } : { limit: PAGE_ROWS }) };
}

/** @param {{ topic: string, place: Record<string, string>, hasMore: boolean }} given */
function Nothing({ topic, place, hasMore }) {
  if (hasMore) return html`<${Empty}>No match in the records read so far; there are more to read.<//>`;
  if (place.filter) return html`<${Empty}>No match in the records read.<//>`;
  if (place.view === "all") return html`<${Empty} command=${`barnabas produce ${topic}`}>No records in this range. Produce one:<//>`;
  return html`<${Empty} command=${`barnabas produce ${topic}`}>No record is visible to read_committed consumers here. Show all to see the records of an open
    transaction, or write one:<//>`;
}

/**
 * The same by command: without the filter, which no command has.
 * @param {string} topic
 * @param {Record<string, string>} place
 * @param {Record<string, string | number>} asked
 * @param {boolean} isFollowing
 */
function commandsOf(topic, place, asked, isFollowing) {
  const partitions = place.partition ?? null;
  const isOne = partitions !== null && !partitions.includes(",");
  const [ours, theirs] = offsetsOf(isFollowing ? "end" : (place.from ?? "beginning"));
  const level = place.view === "all" ? ["--isolation", "read_uncommitted"] : [];
  const end = isFollowing ? [] : ["--exit", "--max-messages", PAGE_ROWS];
  return [
    barnabas("consume", topic, ...(partitions === null ? [] : ["--partition", partitions]), `--offset=${ours}`, ...level, ...end),
    kcat("-C", "-t", topic, ...(isOne ? ["-p", partitions] : []), "-o", theirs, ...(isFollowing ? [] : ["-e", "-c", PAGE_ROWS])),
    ...(isFollowing ? [] : [curl(apiPath(["topics", topic, "records"], asked))]),
  ];
}

/**
 * Where to begin, as `barnabas` and as `kcat` say it.
 * @param {string} from
 */
function offsetsOf(from) {
  const [kind, number] = from.split(":");
  switch (kind) {
    case "offset":
      return [number, number];
    case "last":
      return [`-${number}`, `-${number}`];
    case "time":
      return [`@${number}`, `s@${number}`];
    default:
      return [kind, kind];
  }
}
