// Writes one invoice for each order, exactly once, with kafkajs.
//
// kafkajs sends no member of the group with its offsets. So a transactional ID belongs to a partition
// of the orders: a new owner of the partition fences the previous one, and then reads the offset.
"use strict";

const library = process.argv[2] ?? "kafkajs";
const { Kafka, logLevel } = require(library);
const brokers = process.env.KAFKA_BOOTSTRAP_SERVERS.split(",");
const kafka = new Kafka({ clientId: "invoicing", brokers, logLevel: logLevel.ERROR });
const groupId = "invoicing";
const orders = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 1000 });
const admin = kafka.admin();

/** The owners of the partitions since the group's last rebalance. */
let owners = new Map();

/** Fence the previous owner of a partition; return a producer, and the offset to begin at. */
async function owned(topic, partition) {
  const producer = kafka.producer({
    transactionalId: `${groupId}-${partition}`,
    transactionTimeout: 10_000,
    maxInFlightRequests: 1,
    idempotent: true,
  });
  await producer.connect();
  await (await producer.transaction()).abort();
  const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
  const { offset } = found.partitions.find((each) => each.partition === partition);
  return { producer, next: BigInt(offset) };
}

/** Commit the invoices of a batch together with its offset. */
async function invoice({ batch, resolveOffset, heartbeat, isStale }) {
  const { topic, partition } = batch;
  const mine = owners;
  if (!mine.has(partition)) {
    mine.set(partition, await owned(topic, partition));
  }
  const { producer, next } = mine.get(partition);
  const messages = batch.messages.filter((order) => BigInt(order.offset) >= next);
  if (messages.length > 0 && !isStale() && mine === owners) {
    const transaction = await producer.transaction();
    await transaction.send({
      topic: "invoices",
      messages: messages.map(({ key, value, headers }) => ({ key, value, headers })),
    });
    const offset = String(BigInt(messages.at(-1).offset) + 1n);
    const topics = [{ topic, partitions: [{ partition, offset }] }];
    await transaction.sendOffsets({ consumerGroupId: groupId, topics });
    await transaction.commit();
  }
  resolveOffset(batch.lastOffset());
  await heartbeat();
}

/** An error ends the program; a supervisor starts it again at the committed offsets. */
function end(error) {
  console.error(error);
  process.exit(1);
}

async function main() {
  orders.on(orders.events.GROUP_JOIN, () => {
    owners = new Map();
  });
  orders.on(orders.events.CRASH, ({ payload }) => end(payload.error));
  await admin.connect();
  await orders.connect();
  await orders.subscribe({ topics: ["orders"], fromBeginning: true });
  await orders.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: (payload) => invoice(payload).catch(end),
  });
}

main().catch(end);
