"""Apache Kafka's own clients at a cluster whose brokers die one after the other."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import pytest

from barnabas.testing import Cluster
from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import run_tool, tool_command
from tests.interop.message_copier import Copier
from tests.interop.transactional import COMMITTED, committed_offset, read_with_confluent
from tests.seeds import SEED
from tests.torture.embedded_brokers import EmbeddedBrokers
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

TOPIC = "t"
LEASE_MS = "1000"
RECORDS = 240
RECORDS_PER_S = 300
EVERY_S = 1.5
CONFIG = {"barnabas.lease.ms": LEASE_MS, "group.initial.rebalance.delay.ms": "100"}


class Killer:
    """Kills one broker after the other and starts it again, in a thread, until told to stop."""

    def __init__(self, cluster: Cluster) -> None:
        self.kills = 0
        self._brokers = EmbeddedBrokers(cluster)
        self._is_over = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._run = self._thread.submit(self._kill)

    def _kill(self) -> None:
        while not self._is_over.wait(EVERY_S):
            number = self.kills % self._brokers.count
            self._brokers.kill_one(number)
            self._brokers.start_one(number)
            self.kills += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.shutdown()
        self._run.result()


def produce(servers: str, settings_path) -> None:
    """Have VerifiableProducer send numbers; by default it would send nothing again."""
    settings_path.write_text("retries=2147483647\nenable.idempotence=true\n")
    result = run_tool(
        kafka_tools.VERIFIABLE_PRODUCER,
        *("--bootstrap-server", servers, "--topic", f"{TOPIC}-in"),
        *("--max-messages", str(RECORDS), "--throughput", str(RECORDS_PER_S)),
        *("--command-config", str(settings_path)),
    )
    assert f'"sent":{RECORDS},"acked":{RECORDS}' in result.output, result.output[-3000:]
    assert "producer_send_error" not in result.output


def consume(servers: str, output_path, settings_path) -> subprocess.Popen[bytes]:
    """Start VerifiableConsumer, a member of a group that reads what is committed."""
    settings_path.write_text("isolation.level=read_committed\n")
    command = tool_command(
        kafka_tools.VERIFIABLE_CONSUMER,
        *("--bootstrap-server", servers, "--topic", f"{TOPIC}-out", "--group-id", "judge"),
        *("--reset-policy", "earliest", "--verbose", "--command-config", str(settings_path)),
    )
    with output_path.open("wb") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )


def consumed(output_path) -> Counter[str]:
    """How often the consumer has printed each record."""
    lines = output_path.read_text(errors="replace").rpartition("\n")[0].splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return Counter(each["value"] for each in events if each["name"] == "record_data")


def test_every_record_is_copied_once_while_brokers_die_in_turn(tmp_path, say):
    values = [b"%d" % number for number in range(RECORDS)]
    with Cluster(brokers=3, config=CONFIG, seed=SEED) as cluster:
        cluster.create_topic(f"{TOPIC}-in")
        cluster.create_topic(f"{TOPIC}-out", partitions=2)
        servers = cluster.bootstrap_servers
        printed = tmp_path / "consumed"
        with Killer(cluster) as killer:
            consumer = consume(servers, printed, tmp_path / "consumer.properties")
            try:
                produce(servers, tmp_path / "producer.properties")
                copier = Copier(servers, TOPIC, tmp_path)
                try:
                    copier.finish()
                finally:
                    copier.kill()
                wait_until(lambda: len(consumed(printed)) == RECORDS, lambda: consumed(printed))
            finally:
                consumer.kill()
                consumer.wait()
        cluster.wait_until_served()
        assert read_with_confluent(servers, f"{TOPIC}-in", 1, COMMITTED) == {0: values}
        copied = read_with_confluent(servers, f"{TOPIC}-out", 2, COMMITTED)
        assert sorted(value for each in copied.values() for value in each) == sorted(values)
        assert committed_offset(servers, f"group-of-{TOPIC}", f"{TOPIC}-in", 0) == RECORDS
        assert set(consumed(printed)) == {value.decode() for value in values}
    assert killer.kills >= 2
    say(
        f"{RECORDS} records copied once in {copier.transactions} transactions, {killer.kills} kills"
    )
