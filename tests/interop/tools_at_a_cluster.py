"""Numbers that Apache Kafka's own clients write, copy and read, while their brokers are not well.

VerifiableProducer writes one topic, TransactionalMessageCopier copies it into another one,
VerifiableConsumer reads that. Nothing happens to any of them, so none of them may fail.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import run_tool, tool_command
from tests.interop.administration import admin, create
from tests.interop.message_copier import Copier
from tests.interop.transactional import COMMITTED, committed_offset, read_with_confluent
from tests.torture.killer import Killer, Meanwhile
from tests.torture.turns import Brokers
from tests.waiting import wait_until

RECORDS_PER_S = 300
PARTITIONS = 2
"""The number of partitions of the destination topic."""
READ_S = 120
ANSWER_S = 60


class Copying:
    """One run of the three tools; ``topic`` is what its topics and its groups are named by."""

    def __init__(self, servers: str, topic: str, records: int, directory: Path) -> None:
        self._servers = servers
        self._topic = topic
        self._records = records
        self._directory = directory
        self._printed = directory / f"{topic}-consumed"
        self.transactions = 0
        """The number of transactions that the copier has ended."""
        create(servers, f"{topic}-in", partitions=1)
        create(servers, f"{topic}-out", partitions=PARTITIONS)

    def run(self) -> None:
        """Write, copy and read everything; AssertionError when a tool fails."""
        with ExitStack() as stack:
            consumer = self._start_consumer()
            stack.callback(consumer.wait)
            stack.callback(consumer.kill)
            self._produce()
            # It copies the records that exist when it starts.
            copier = Copier(self._servers, self._topic, self._directory)
            stack.callback(copier.kill)
            copier.finish()
            self.transactions = copier.transactions
            wait_until(
                lambda: len(self._consumed()) == self._records, self._consumed, seconds=READ_S
            )

    def judge(self) -> None:
        """Demand every number once in both topics, and read to the end by both groups."""
        values = [b"%d" % number for number in range(self._records)]
        source, target = f"{self._topic}-in", f"{self._topic}-out"
        written = read_with_confluent(self._servers, source, 1, COMMITTED)
        assert written == {0: values}
        copied = read_with_confluent(self._servers, target, PARTITIONS, COMMITTED)
        assert sorted(value for each in copied.values() for value in each) == sorted(values)
        group = f"group-of-{self._topic}"
        assert committed_offset(self._servers, group, source, 0) == self._records
        # What it read since its last commit it reads again when it has to join its group again.
        assert set(self._consumed()) == {value.decode() for value in values}

    def _produce(self) -> None:
        """Send numbers with VerifiableProducer; by default it would not retry."""
        settings = self._settings("producer", "retries=2147483647\nenable.idempotence=true\n")
        result = run_tool(
            kafka_tools.VERIFIABLE_PRODUCER,
            *("--bootstrap-server", self._servers, "--topic", f"{self._topic}-in"),
            *("--max-messages", str(self._records), "--throughput", str(RECORDS_PER_S)),
            *("--command-config", settings),
        )
        all_of_them = f'"sent":{self._records},"acked":{self._records}'
        assert all_of_them in result.output, result.output[-3000:]
        assert "producer_send_error" not in result.output

    def _start_consumer(self) -> subprocess.Popen[bytes]:
        """Start VerifiableConsumer, a member of a group that reads what is committed."""
        command = tool_command(
            kafka_tools.VERIFIABLE_CONSUMER,
            *("--bootstrap-server", self._servers, "--topic", f"{self._topic}-out"),
            *("--group-id", f"readers-of-{self._topic}", "--reset-policy", "earliest"),
            *("--verbose", "--command-config"),
            self._settings("consumer", "isolation.level=read_committed\n"),
        )
        with self._printed.open("wb") as output:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def _consumed(self) -> Counter[str]:
        """Return the number of times that the consumer has printed each record."""
        lines = self._printed.read_text(errors="replace").rpartition("\n")[0].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return Counter(each["value"] for each in events if each["name"] == "record_data")

    def _settings(self, whose: str, text: str) -> str:
        path = self._directory / f"{self._topic}-{whose}.properties"
        path.write_text(text)
        return str(path)


class Reassigning(Meanwhile):
    """Has kafka-reassign-partitions move all partitions to and fro, until its block is left.

    The broker that gets the request, or the new leader, may be dying: then one call of the tool has
    no effect.
    """

    def __init__(self, servers: str, directory: Path, seed: int) -> None:
        self._moves = 0
        self._servers = servers
        self._plan = directory / "plan.json"
        self._chance = random.Random(seed)
        super().__init__(self._move)

    @property
    def moves(self) -> int:
        """The number of moves of the partitions. Raises the error that ended it."""
        assert not self.is_over or self._is_enough.is_set(), "it has ended by itself"
        return self._moves

    def _move(self) -> None:
        while not self._is_enough.is_set():
            self._plan.write_text(json.dumps({"version": 1, "partitions": self._random_plan()}))
            result = run_tool(
                kafka_tools.REASSIGN_PARTITIONS,
                *("--bootstrap-server", self._servers),
                *("--reassignment-json-file", str(self._plan), "--execute"),
            )
            self._moves += "Successfully started partition reassignments" in result.output

    def _random_plan(self) -> list[dict[str, object]]:
        known = admin(self._servers).list_topics(timeout=ANSWER_S)
        node_ids = sorted(known.brokers)
        return [
            {"topic": name, "partition": each, "replicas": [self._chance.choice(node_ids)]}
            for name in sorted(known.topics)
            for each in sorted(known.topics[name].partitions)
        ]


def copy_while_brokers_die(
    brokers: Brokers, directory: Path, seed: int, *, kills: int, moves: int, records: int
) -> str:
    """Copy until ``kills`` brokers have died and ``moves`` moves are done; judge all copies.

    Return a summary of the faults and copies.
    """
    servers = brokers.bootstrap_servers
    rounds: list[Copying] = []
    with Killer(brokers) as killer, Reassigning(servers, directory, seed) as reassigning:
        while killer.kills < kills or reassigning.moves < moves:
            copying = Copying(servers, f"t{len(rounds)}", records, directory)
            copying.run()
            rounds.append(copying)
    for each in rounds:
        each.judge()
    return (
        f"{len(rounds)} times {records} records copied in {rounds[0].transactions} transactions, "
        f"{killer.kills} kills, {reassigning.moves} reassignments"
    )
