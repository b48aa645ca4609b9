// Now: what the broker is doing, and whether anything is wrong.

import { h, svg, table } from "./elements.js";
import { bytes, count, duration, milliseconds, percent, rate } from "./format.js";
import { Live } from "./live.js";

const FIGURES = [
  ["records_in", "Records in", rate],
  ["bytes_in", "Bytes in", (value) => (value === null ? "–" : `${bytes(value)}/s`)],
  ["sent_bytes", "Bytes out", (value) => (value === null ? "–" : `${bytes(value)}/s`)],
  ["produce_p99_ms", "Produce, p99", milliseconds],
  ["flush_p99_ms", "Journal sync, p99", milliseconds],
  ["loop_busy", "Event loop", percent],
  ["transactions_open", "Open transactions", count],
  ["connections", "Connections", count],
];
const POINTS = 600;
const WIDTH = 600;
const HEIGHT = 100;

const points = new Map(FIGURES.map(([name]) => [name, []]));
let latest = null;
let isPaused = false;

function plot(name, words) {
  const values = points.get(name);
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1e-9);
  const at = (value, index) =>
    `${((index + POINTS - values.length) / POINTS) * WIDTH},${HEIGHT - (value / most) * (HEIGHT - 4) - 2}`;
  const line = values.flatMap((value, index) => (value === null ? [] : [at(value, index)]));
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
    svg("polyline", { points: line.join(" ") }),
  );
}

function figure([name, title, format]) {
  const values = points.get(name);
  const known = values.filter((value) => value !== null);
  const newest = values.at(-1) ?? null;
  const words = known.length
    ? `${title}: ${format(newest)}; up to ${format(Math.max(...known))} in the last ten minutes`
    : `${title}: nothing yet`;
  return h("figure", {}, h("figcaption", {}, title), h("strong", {}, format(newest)), plot(name, words));
}

function health(state) {
  const wrong = Object.entries(state.checks).filter(([, found]) => found !== "ok");
  if (!wrong.length) return h("p", { class: "good" }, "✓ Clients are served.");
  return h("ul", { class: "bad" }, ...wrong.map(([name, found]) => h("li", {}, `✗ ${name}: ${found}`)));
}

function lagging(worst) {
  if (worst === null) return h("p", { class: "faint" }, "Looking.");
  if (!worst.lagging.length) return h("p", {}, "No group is behind.");
  return table(
    ["Group", "State", "#Can be read now", "#Held back"],
    worst.lagging.map((each) => [each.group, each.state, count(each.lag_readable), count(each.lag_held_back)]),
  );
}

function heldBack(worst) {
  if (worst === null) return h("p", { class: "faint" }, "Looking.");
  if (!worst.held_back.length) return h("p", {}, "No reader of committed records waits.");
  return table(
    ["Partition", "#Held back", "By", "Client", "#Open for"],
    worst.held_back.map((each) => {
      const [first] = each.transactions;
      const held = first?.transaction ?? null;
      const who = held?.transactional_id ?? (first?.hanging ? "a transaction that hangs" : "–");
      const age = held === null ? "–" : duration(held.age_ms);
      return [`${each.topic}-${each.partition}`, count(each.held_back), who, held?.client ?? "–", age];
    }),
  );
}

function numbers(state) {
  const oldest = state.oldest_start_time_ms;
  return table(
    ["#Topics", "#Partitions", "#Groups", "#Transactional ids", "#Oldest open transaction", "#Journal", "#Room on the disk"],
    [
      [
        count(state.topics),
        count(state.partitions),
        count(state.worst?.groups ?? null),
        count(state.transactional_ids),
        oldest === null ? "none" : duration(Number(state.as_of) - Number(oldest)),
        bytes(state.journal_bytes),
        bytes(state.disk_free_bytes),
      ],
    ],
  );
}

function draw() {
  const state = latest;
  if (state === null) return;
  document.getElementById("broker").textContent = `${state.cluster_id}, node ${state.node_id}, ${state.version}`;
  document
    .getElementById("now")
    .replaceChildren(
      health(state),
      h("section", { class: "figures", "aria-label": "The last ten minutes" }, ...FIGURES.map(figure)),
      h("h2", {}, "Readers that wait for a transaction"),
      heldBack(state.worst),
      h("h2", {}, "Groups that are behind"),
      lagging(state.worst),
      h("h2", {}, "What is here"),
      numbers(state),
    );
}

function say(words, isOld) {
  document.body.classList.toggle("old", isOld);
  const place = document.getElementById("state");
  if (place.textContent !== words) place.textContent = words;
}

async function remember() {
  const query = new URLSearchParams({ series: FIGURES.map(([name]) => name).join(",") });
  const answer = await fetch(`/api/v1/history?${query}`, { signal: AbortSignal.timeout(10_000) });
  if (!answer.ok) return; // Without a history the plots begin now.
  for (const { name, values } of (await answer.json()).series) points.set(name, values);
}

function take(state) {
  latest = state;
  for (const [name, values] of points) {
    values.push(state.rates[name] ?? null);
    if (values.length > POINTS) values.shift();
  }
  say("Live", false);
  draw();
}

async function begin() {
  try {
    await remember();
  } catch {
    say("The broker does not answer", true);
  }
  const live = new Live("overview", {
    state: (_, state) => take(state),
    refused: (_, error) => say(`${error.error}: ${error.message}`, true),
    away: () => say("The broker is away", true),
  });
  const button = document.getElementById("pause");
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    live.isPaused = isPaused;
    button.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) say("Paused", false);
  });
}

begin();
