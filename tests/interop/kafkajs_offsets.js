// Reads a group's committed offset with kafkajs while the group's coordinator moves.
//
// Usage: node kafkajs_offsets.js KAFKAJS member|monitor SERVERS GROUP TOPIC. It prints "move" when the
// coordinator is to move, waits for a line on its input, and prints "=" and what it has read.
"use strict";

const fs = require("node:fs");

const [library, program, servers, groupId, topic] = process.argv.slice(2);
const { Kafka, logLevel } = require(library);
const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.NOTHING });

let moved = false;

/** Nothing else of this process runs meanwhile, as if its machine were busy. */
function move() {
  if (!moved) {
    moved = true;
    fs.writeSync(1, "move\n");
    fs.readSync(0, Buffer.alloc(1));
  }
}

async function member() {
  const consumer = kafka.consumer({ groupId });
  consumer.on(consumer.events.GROUP_JOIN, move);
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const first = new Promise((resolve) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => resolve(message.value.toString()),
    });
  });
  return first;
}

async function monitor() {
  const admin = kafka.admin();
  await admin.connect();
  const committed = async () => {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
    return found.partitions[0].offset;
  };
  await committed();
  move();
  return committed();
}

(program === "member" ? member() : monitor()).then(
  (result) => {
    fs.writeSync(1, `=${result}\n`);
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
