// Which screen an address shows.

import { html } from "./html.js";
import { Screen } from "../parts/screen.js";
import { Clients } from "../screens/clients.js";
import { Events } from "../screens/events.js";
import { Group } from "../screens/group.js";
import { Groups } from "../screens/groups.js";
import { Now } from "../screens/now.js";
import { Pipelines } from "../screens/pipelines.js";
import { Records } from "../screens/records.js";
import { Security } from "../screens/security.js";
import { Settings } from "../screens/settings.js";
import { Storage } from "../screens/storage.js";
import { Topic } from "../screens/topic.js";
import { Topics } from "../screens/topics.js";
import { TransactionalId } from "../screens/transaction.js";
import { Transactions } from "../screens/transactions.js";

/** @typedef {(given: { parts: string[] }) => any} ScreenOfParts */

/** First parts of addresses, and the names of their screens, as the navigation shows them. */
export const SCREENS = [
  ["", "Now"],
  ["topics", "Topics"],
  ["groups", "Groups"],
  ["transactions", "Transactions"],
  ["pipelines", "Pipelines"],
  ["clients", "Clients"],
  ["storage", "Storage"],
  ["settings", "Settings"],
  ["security", "Security"],
  ["events", "Events"],
];

/**
 * Addresses: a part with a colon before it stands for something.
 * @type {[string[], ScreenOfParts][]}
 */
const ADDRESSES = [
  [[], Now],
  [["topics"], Topics],
  [["topics", ":topic"], Topic],
  [["topics", ":topic", "records"], Records],
  [["groups"], Groups],
  [["groups", ":group"], Group],
  [["transactions"], Transactions],
  [["transactions", ":id"], TransactionalId],
  [["pipelines"], Pipelines],
  [["clients"], Clients],
  [["storage"], Storage],
  [["settings"], Settings],
  [["security"], Security],
  [["events"], Events],
];

/**
 * @param {string[]} parts
 * @returns {ScreenOfParts}
 */
export function screenOf(parts) {
  const found = ADDRESSES.find(
    ([pattern]) => pattern.length === parts.length && pattern.every((each, at) => each.startsWith(":") || each === parts[at]),
  );
  return found ? found[1] : Nowhere;
}

function Nowhere() {
  return html`<${Screen} title="Page not found">
    <p>This address is not a page of the console. <a href="/">Go to Now</a>, or choose a screen above.</p><//>`;
}
