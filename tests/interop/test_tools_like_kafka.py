"""Apache Kafka's administration tools say of Barnabas what they say of Apache Kafka 4.3.0.

One script of commands is for both; exit codes and every line but stack traces must be equal. What
differs on purpose is listed with its reason, and must differ.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from barnabas.protocol.records import Record, encode_batch
from tests.counterparts import kafka_tools
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.kafka_tools import ToolResult, run_tool
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import now_ms, produce
from tests.interop.recorded_kafka import Barnabas, plain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"

TOPIC = "a"
PLACES = {
    "delete": {"partitions": [{"topic": TOPIC, "partition": 0, "offset": 3}], "version": 1},
    "elect": {"partitions": [{"topic": TOPIC, "partition": 0}]},
    "move": {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [1]}]},
    "elsewhere": {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [2]}]},
}
"""Files that tools read; "@name" in a command stands for the path of one."""


def topics(*arguments: str) -> tuple[str, ...]:
    return (kafka_tools.TOPICS, *arguments)


def configs(kind: str, name: str | None, *arguments: str) -> tuple[str, ...]:
    entity = ("--entity-default",) if name is None else ("--entity-name", name) if name else ()
    return (kafka_tools.CONFIGS, "--entity-type", kind, *entity, *arguments)


DESCRIBE = "--describe"
SCRIPT: dict[str, tuple[str, ...]] = {
    "create a topic": topics(
        *("--create", "--topic", TOPIC, "--partitions", "2", "--config", "retention.ms=3600000")
    ),
    "describe topics": topics(DESCRIBE),
    "grow a topic": topics("--alter", "--topic", TOPIC, "--partitions", "3"),
    "delete records": (kafka_tools.DELETE_RECORDS, "--offset-json-file", "@delete"),
    "sizes": (LOG_DIRS, DESCRIBE, "--topic-list", TOPIC),
    "producers": (TRANSACTIONS, "describe-producers", "--topic", TOPIC, "--partition", "1"),
    "describe topics' settings": configs("topics", "", DESCRIBE),
    "set the broker": configs("brokers", "1", "--alter", "--add-config", "log.retention.ms=5000"),
    "set all brokers": configs("brokers", None, "--alter", "--add-config", "log.retention.ms=6000"),
    "describe the broker": configs("brokers", "1", DESCRIBE),
    "describe all brokers": configs("brokers", None, DESCRIBE),
    "describe users": configs("users", "", DESCRIBE),
    "limit a user": configs("users", "u", "--alter", "--add-config", "producer_byte_rate=1000"),
    "let a user in": configs("users", "u", "--alter", "--add-config", "SCRAM-SHA-256=[password=p]"),
    "describe that user": configs("users", "u", DESCRIBE),
    "set a group": configs(
        "groups", "g", "--alter", "--add-config", "consumer.session.timeout.ms=50000"
    ),
    "describe groups": configs("groups", "", DESCRIBE),
    "describe a group": configs("groups", "g", DESCRIBE),
    "quieten loggers": configs("broker-loggers", "1", "--alter", "--add-config", "root=ERROR"),
    "elect everywhere": (ELECTION, "--election-type", "preferred", "--all-topic-partitions"),
    "elect somewhere": (ELECTION, "--election-type", "preferred", "--path-to-json-file", "@elect"),
    "list moves": (REASSIGN, "--list"),
    "move nowhere": (REASSIGN, "--execute", "--reassignment-json-file", "@move"),
    "verify a move": (REASSIGN, "--verify", "--reassignment-json-file", "@move"),
    "move elsewhere": (REASSIGN, "--execute", "--reassignment-json-file", "@elsewhere"),
    "list rules": (kafka_tools.ACLS, "--list"),
    "delete a topic": topics("--delete", "--topic", TOPIC),
}

ON_PURPOSE = {
    "describe topics": "Kafka makes min.insync.replicas a dynamic default of its own",
    "describe all brokers": "Kafka makes min.insync.replicas a dynamic default of its own",
}


Said = tuple[int, list[str]]
"""An exit code, and lines."""


def run(broker: BrokerProcess) -> dict[str, Said]:
    """Run the whole script against one broker."""
    files = broker.directory / "files"
    files.mkdir()
    for name, content in PLACES.items():
        (files / name).write_text(json.dumps(content))
    results = {}
    for label, (main_class, *arguments) in SCRIPT.items():
        given = [str(files / each[1:]) if each.startswith("@") else each for each in arguments]
        where = ("--bootstrap-server", broker.bootstrap_servers)
        results[label] = comparable(run_tool(main_class, *where, *given), broker)
        if label == "create a topic":
            produce_one_batch(broker)
    return results


def produce_one_batch(broker: BrokerProcess) -> None:
    """Append five records in one batch, so that sizes are equal."""
    records = [Record(offset, now_ms(), None, b"x" * 100) for offset in range(5)]
    with WireClient(broker) as client:
        produce(client, TOPIC, 0, encode_batch(records))


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> dict[str, Said]:
    """The output of every command about Barnabas."""
    with Barnabas(tmp_path_factory.mktemp("ours")) as broker:
        return run(broker)


def comparable(result: ToolResult, broker: BrokerProcess) -> Said:
    """Return the exit code and the lines, without what two brokers cannot have in common."""
    text = result.output.replace(broker.bootstrap_servers, "<broker>")
    text = text.replace(str(broker.data_directory), "<data>").replace(str(broker.directory), "<at>")
    text = re.sub(r"TopicId: \S+", "TopicId: <id>", text)
    text = re.sub(r"^\S+Z main ERROR ", "", text, flags=re.MULTILINE)
    lines = [line for line in text.splitlines() if not re.match(r"\s+(at|\.\.\.) ", line)]
    return result.exit_code, [_sorted_json(line) for line in lines]


def _sorted_json(line: str) -> str:
    """Bring a line of JSON, whose lists come in any order, into one order."""
    if not line.startswith("{"):
        return line
    return json.dumps(_in_order(json.loads(line)), sort_keys=True)


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(each) for each in value), key=repr)
    return value


@pytest.mark.parametrize("label", SCRIPT)
def test_tools_say_the_same(ours, kafka, label):
    mine, theirs = plain(ours[label]), kafka.observe("script", run)[label]
    if label in ON_PURPOSE:
        assert mine != theirs
    else:
        assert mine == theirs


def test_the_script_does_what_it_says(ours):
    """Equal answers could be equally wrong."""
    codes = {label: code for label, (code, _) in ours.items()}
    assert {label for label, code in codes.items() if code} == {"move elsewhere", "list rules"}
    assert "low_watermark: 3" in "\n".join(ours["delete records"][1])
    assert re.search(r'"size": [1-9]', "\n".join(ours["sizes"][1]))
    assert len(ours["producers"][1]) == 1
