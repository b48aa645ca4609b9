"""The command line against Barnabas and Apache Kafka 4.3.0, beside other people's clients.

Commands run in this process, except those that a test interrupts.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import confluent_kafka
import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.kafka_tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, TOPICS, run_tool
from tests.counterparts.transaction_client import TransactionClient
from tests.counterparts.wire_client import Addressed
from tests.interop.clients import Confluent, Sent
from tests.interop.command_line import CommandLine, run, run_alone
from tests.products import BARNABAS_AND_KAFKA
from tests.requests import alter_configs
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
BROKER = 4
"""Resource type of settings of brokers; without a name, of all of them."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEPT = ("-X", "retention.ms=-1")
"""For records of long ago: retention, which comes round at any time, would delete them."""
TIMEOUT_S = 60


@pytest.fixture(scope="module", params=BARNABAS_AND_KAFKA)
def either(request, tmp_path_factory) -> Iterator[Addressed]:
    """Barnabas, embedded; by night also Apache Kafka."""
    is_ours = request.param == "barnabas"
    with Broker() if is_ours else ApacheKafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def barnabas(either) -> CommandLine:
    """Run a command against the broker."""
    return CommandLine(either)


@pytest.fixture
def filled(barnabas, topic) -> str:
    """A topic with 3 partitions and 100 records with keys."""
    assert barnabas("topics", "create", topic, "-p", 3).lines == [f"{topic} created"]
    lines = [f"key-{number % 20}:{number}" for number in range(100)]
    assert barnabas.lines_of(lines, "produce", topic, "-K", ":").exit_code == 0
    return topic


def tool(broker, main_class, *arguments):
    result = run_tool(main_class, "--bootstrap-server", broker.bootstrap_servers, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_topics_life(barnabas, topic):
    created = barnabas(
        "topics", "create", topic, "-p", 2, "-X", "retention.ms=60000", "--format", "json"
    )
    assert created.json == [{"topic": topic, "changed": True, "partitions": 2, "replicas": 1}]
    assert "(TOPIC_ALREADY_EXISTS)" in barnabas("topics", "create", topic).stderr
    assert barnabas("topics", "create", topic, "--if-not-exists").exit_code == 0
    wait_until(lambda: f"{topic} 2 1" in barnabas("topics", "list").lines, "the topic")
    lines = barnabas("topics", "describe", topic).lines
    assert "config retention.ms=60000" in lines
    rows = [line.split() for line in lines[-2:]]
    assert [(row[0], row[3], row[4], row[5], row[6]) for row in rows] == [
        ("0", "1", "1", "0", "0"),
        ("1", "1", "1", "0", "0"),
    ]
    altered = barnabas(
        "topics", "alter", topic, "-p", 4, "-X", "segment.bytes=2000000", "--unset", "retention.ms"
    )
    assert altered.lines == [f"{topic} altered"]
    described = tool(barnabas.broker, TOPICS, "--describe", "--topic", topic)
    assert "PartitionCount: 4" in described
    assert "segment.bytes=2000000" in described
    assert "retention.ms" not in described
    assert "(INVALID_PARTITIONS)" in barnabas("topics", "alter", topic, "-p", 1).stderr
    assert "(INVALID_CONFIG)" in barnabas("topics", "alter", topic, "-X", "nope=1").stderr
    assert barnabas("topics", "delete", topic).lines == [f"{topic} deleted"]
    gone = "(UNKNOWN_TOPIC_OR_PARTITION)"
    wait_until(lambda: gone in barnabas("topics", "describe", topic).stderr, "the deletion")
    assert gone in barnabas("topics", "delete", topic).stderr


def test_records_arrive_whole(barnabas, filled):
    read_back = barnabas("consume", filled, "-o", "beginning", "-e", "--format", "json")
    records = {(record["partition"], record["offset"]): record for record in read_back.json_lines}
    assert len(records) == 100
    for partition in range(3):
        mine = [record for (number, _), record in records.items() if number == partition]
        if not mine:
            continue
        theirs = Confluent().consume(
            barnabas.broker.bootstrap_servers, filled, partition, len(mine)
        )
        assert [(each.key.decode(), each.value.decode(), each.offset) for each in theirs] == [
            (record["key"], record["value"], record["offset"]) for record in mine
        ]
        assert [each.timestamp_ms for each in theirs] == [record["timestamp"] for record in mine]


def test_a_key_has_the_partition_that_kafkas_clients_give_it(barnabas, filled):
    of_key = {}
    for record in barnabas(
        "consume", filled, "-o", "beginning", "-e", "--format", "json"
    ).json_lines:
        of_key.setdefault(record["key"], set()).add(record["partition"])
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": barnabas.broker.bootstrap_servers, "partitioner": "murmur2"}
    )
    theirs = {}
    for key in of_key:
        producer.produce(
            filled, b"", key,
            on_delivery=lambda _, sent: theirs.update({sent.key().decode(): {sent.partition()}}),
        )  # fmt: skip
    assert producer.flush(TIMEOUT_S) == 0
    assert theirs == of_key


def test_java_reads_every_codec(barnabas, topic):
    """Enough data for several blocks of each codec: one of lz4's ways is not Java's."""
    barnabas("topics", "create", topic)
    sent = []
    for codec in CODECS:
        lines = [f"{codec} {number} {'x' * 100}" for number in range(2000)]
        sent += lines
        assert barnabas.lines_of(lines, "produce", topic, "-z", codec).exit_code == 0
    consumed = tool(
        barnabas.broker, CONSOLE_CONSUMER, "--topic", topic, "--partition", "0",
        "--offset", "earliest", "--max-messages", str(len(sent)), "--timeout-ms", "60000",
    )  # fmt: skip
    assert [line for line in consumed.splitlines() if line.endswith("x")] == sent
    again = barnabas("consume", topic, "-o", "beginning", "-e")
    assert again.stdout.splitlines() == sent


def test_where_to_begin(barnabas, topic):
    servers = barnabas.broker.bootstrap_servers
    barnabas("topics", "create", topic, *KEPT)
    records = [Sent(None, b"%d" % n, (), 1_700_000_000_000 + 1000 * n) for n in range(10)]
    Confluent().produce(servers, topic, records, "none", 0)
    for where, first in (("-3", 7), ("@1700000006000", 6), ("end", 10)):
        lines = barnabas("consume", topic, "-o", where, "-e").lines
        assert lines == [str(number) for number in range(first, 10)], where
    assert "offset 11 does not exist, only 0 to 10" in barnabas("consume", topic, "-o", 11).stderr


def test_json_goes_round(barnabas, topic):
    servers = barnabas.broker.bootstrap_servers
    copy = f"{topic}-copy"
    barnabas("topics", "create", topic, copy, *KEPT)
    records = [
        Sent(b"\xff\x00", "ü".encode(), (("h", b"1"), ("h", None)), 1_700_000_000_000),
        Sent(None, None, (), 1_700_000_000_001),
        Sent(b"", b"", (), 1_700_000_000_002),
    ]
    Confluent().produce(servers, topic, records, "none", 0)
    read = barnabas("consume", topic, "-o", "beginning", "-e", "--format", "json")
    assert barnabas("produce", copy, "--input", "json", stdin=read.stdout.encode()).exit_code == 0
    here, there = (Confluent().consume(servers, name, 0, 3) for name in (topic, copy))
    assert here == there


def test_a_large_record(barnabas, topic):
    barnabas("topics", "create", topic, "-X", "max.message.bytes=5000000")
    line = "x" * 3_000_000
    assert barnabas.lines_of([line], "produce", topic).exit_code == 0
    assert barnabas("consume", topic, "-o", "beginning", "-e").lines == [line]
    ended = barnabas.lines_of(["x" * 6_000_000], "produce", topic)
    assert "(MESSAGE_TOO_LARGE)" in ended.stderr


PRINTED = {
    "a table": ("topics", "describe"),
    "records": ("consume", "-o", "beginning", "-e", "--format", "json"),
    "a broker's error": ("topics", "create"),
    "an error of our own": ("produce", "--input", "json"),
    "a group that does not exist": ("groups", "describe"),
    "an unknown option": ("topics", "list", "--nonsense"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_command_as_a_process_prints_and_exits_as_in_this_process(barnabas, filled, name):
    words = (*PRINTED[name], filled, "-b", barnabas.broker.bootstrap_servers)
    alone = run_alone(*words, stdin=b"no JSON\n")
    assert alone == run(*words, stdin=b"no JSON\n")
    assert alone.exit_code == {"a table": 0, "records": 0, "an unknown option": 2}.get(name, 1)


# ------------------------------------------------------------------------------------------ groups


def confluent_consumer(broker, group, protocol):
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "client.id": "theirs",
    }
    if protocol == "classic":
        settings["partition.assignment.strategy"] = "range"
    return confluent_kafka.Consumer(settings)


def read(consumer, topic, count):
    consumer.subscribe([topic])
    values = []
    while len(values) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{len(values)} of {count}"
        assert message.error() is None, message.error()
        values.append(message.value().decode())
    return values


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_others(barnabas, filled, protocol):
    group = f"group-{filled}"
    consumer = confluent_consumer(barnabas.broker, group, protocol)
    read(consumer, filled, 100)
    consumer.commit(asynchronous=False)
    barnabas.lines_of(["late"], "produce", filled, "-p", 0)
    described = barnabas("groups", "describe", group, "--format", "json").json[0]
    lines = barnabas("groups", "list", "--type", protocol).lines
    busy = barnabas("groups", "reset-offsets", group, "--to", "beginning")
    theirs = tool(barnabas.broker, CONSUMER_GROUPS, "--describe", "--group", group)
    consumer.close()
    assert (described["state"], described["type"], described["lag"]) == ("Stable", protocol, 1)
    (member,) = described["members"]
    assert member["client"] == "theirs"
    assert member["partitions"] == [{"topic": filled, "partitions": [0, 1, 2]}]
    assert f"{group} Stable {protocol} consumer" in lines
    assert busy.stderr == f"barnabas: {group}: the group has 1 member, which must stop first\n"
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
    rows = {
        (row[1], int(row[2])): (row[3], row[4], row[5], row[6], row[7])
        for row in (line.split() for line in theirs.splitlines())
        if len(row) > 7 and row[0] == group
    }
    ours = {
        (each["topic"], each["partition"]): (
            "-" if each["committed_offset"] is None else str(each["committed_offset"]),
            str(each["end_offset"]),
            "-" if each["lag"] is None else str(each["lag"]),
            each["member"],
            member["host"],
        )
        for each in described["partitions"]
    }
    assert ours == rows
    wait_until(
        lambda: barnabas("groups", "reset-offsets", group, "--to", "-2").exit_code == 0,
        "an idle group",
    )
    again = confluent_consumer(barnabas.broker, group, protocol)
    positions = [
        place.offset
        for place in again.committed([confluent_kafka.TopicPartition(filled, n) for n in range(3)])
    ]
    again.close()
    ends = [each["end_offset"] for each in described["partitions"]]
    assert positions == [max(end - 2, 0) for end in ends]
    wait_until(
        lambda: barnabas("groups", "delete", group).exit_code == 0, "the group can be deleted"
    )
    assert "(GROUP_ID_NOT_FOUND)" in barnabas("groups", "describe", group).stderr


def test_reading_as_a_group(barnabas, filled):
    group = f"group-{filled}"
    words = ("consume", filled, "-g", group, "-o", "beginning")
    first = barnabas(*words, "-n", 30).lines
    tool_says = tool(barnabas.broker, CONSUMER_GROUPS, "--describe", "--group", group)
    committed = [int(found) for found in re.findall(rf"{filled}\s+\d+\s+(\d+)", tool_says)]
    assert sum(committed) == 30
    second = barnabas(*words, "-e").lines
    assert sorted(map(int, first + second)) == list(range(100))


def test_sharing_a_group_with_others(barnabas, filled):
    """Consumers of Barnabas and librdkafka share the partitions and lose no record."""
    group = f"group-{filled}"
    theirs = confluent_consumer(barnabas.broker, group, "classic")
    read(theirs, filled, 1)
    with barnabas.start("consume", filled, "-g", group, "-o", "beginning") as ours:

        def shared() -> bool:
            theirs.poll(0.2)
            (found,) = barnabas("groups", "describe", group, "--format", "json").json
            return found["state"] == "Stable" and len(found["members"]) == 2

        wait_until(shared, "two members")
        (found,) = barnabas("groups", "describe", group, "--format", "json").json
        theirs.close()
        ours.send_signal(signal.SIGINT)
        _, stderr = ours.communicate(timeout=120)
    assert (ours.returncode, stderr) == (130, "")
    shares = [
        number
        for member in found["members"]
        for topic in member["partitions"]
        for number in topic["partitions"]
    ]
    assert sorted(shares) == [0, 1, 2]
    assert all(member["partitions"] for member in found["members"])


# ---------------------------------------------------------------------------------------- crashes


def test_transactions(either, barnabas, topic):
    """The list has owner and end of open transactions; only Barnabas reports the client."""
    barnabas("topics", "create", topic, "-p", 2)
    with TransactionClient(either, "the-client") as client:
        client.begin(topic, topic, 0, 1, timeout_ms=600_000)
        producer_id, epoch = client.producers[topic]
        is_ours = isinstance(either, Broker)
        who = "the-client /127.0.0.1" if is_ours else "- -"
        (line,) = barnabas("transactions", "list", "--state", "Ongoing").lines[1:]
        assert line.startswith(f"{topic} Ongoing {producer_id} {epoch} ")
        assert line.endswith(f" 2 {who}")
        (described,) = barnabas("transactions", "describe", topic, "--format", "json").json
        assert described["partitions"] == [{"topic": topic, "partition": n} for n in (0, 1)]
        assert described["client"] == ("the-client" if is_ours else None)
        lines = barnabas("transactions", "list-blocking", "-t", topic).lines[1:]
        assert [line.split()[:5] for line in lines] == [[topic, n, "0", "1", "0"] for n in "01"]
        place = ("-t", topic, "-p", 0, "--start-offset", 0)
        assert (
            "the transaction does not hang"
            in barnabas("transactions", "abort", *place, "-y").stderr
        )
        assert barnabas("transactions", "abort", topic, "-y").lines == [f"{topic} aborted"]
        assert barnabas("transactions", "list-blocking", "-t", topic, "--format", "json").json == []
        assert "no transaction is open" in barnabas("transactions", "abort", topic, "-y").stderr


def test_a_transaction_that_hangs(either, barnabas, topic):
    """Barnabas lets none come about; one of Kafka's, written without verification, is ended."""
    barnabas("topics", "create", topic)
    holders = ("transactions", "list-blocking", "-t", topic, "--format", "json")
    with TransactionClient(either) as client:
        client.init(topic)
        if isinstance(either, Broker):
            # It belongs to a transaction without this partition.
            assert client.produce(topic, topic, 0) == ErrorCode.TRANSACTION_ABORTABLE
            assert barnabas(*holders).json == []
            return
        verify(client, "false")
        # Apache Kafka needs a moment to apply its new setting.
        wait_until(lambda: client.produce(topic, topic, 0) == ErrorCode.NONE, "unverified records")
        verify(client, "true")
    ((hanging,),) = (each["transactions"] for each in barnabas(*holders).json)
    assert (hanging["hanging"], hanging["start_offset"]) == (True, 0)
    place = ("-t", topic, "-p", 0, "--start-offset", 0, "-y")
    assert barnabas("transactions", "abort", *place).lines == [
        f"{topic}-0 from offset 0 on aborted"
    ]
    assert barnabas(*holders).json == []
    assert "open ones begin at: nowhere" in barnabas("transactions", "abort", *place).stderr


def verify(client, wanted):
    """Set whether Apache Kafka verifies the partitions of transactional records."""
    alter_configs(client, BROKER, "", ("transaction.partition.verification.enable", 0, wanted))


def test_a_broker_that_restarts_in_the_middle(own_broker, topic):
    """Every record once and in order, although the broker is killed while they are written."""
    barnabas = CommandLine(own_broker)
    barnabas("topics", "create", topic)
    with barnabas.start("produce", topic) as producer:
        for number in range(2000):
            producer.stdin.write(f"{number}\n")
            producer.stdin.flush()
            if number == 1000:
                wait_until(
                    lambda: not barnabas("topics", "describe", topic).lines[-1].endswith(" 0"),
                    "the first record",
                )
                own_broker.kill()
                own_broker.restart()
        stdout, stderr = producer.communicate(timeout=300)
    assert (producer.returncode, stderr) == (0, "")
    assert stdout == f"{topic}-0: 2,000 records, offsets 0 to 1999\n"
    lines = barnabas("consume", topic, "-o", "beginning", "-e").lines
    assert lines == [str(number) for number in range(2000)]


def test_the_cluster_and_its_settings(barnabas):
    found = barnabas("cluster", "describe", "--format", "json").json
    assert [each["id"] for each in found["brokers"]] == [1]
    key = "log.cleaner.threads"
    assert barnabas("cluster", "alter", "-X", f"{key}=2").lines == ["all brokers altered"]
    wait_until(lambda: f"{key} 2 cluster" in barnabas("cluster", "configs").lines)
    barnabas("cluster", "alter", "--unset", key)
    wait_until(lambda: f"{key} 1 default" in barnabas("cluster", "configs", key).lines)


def test_records_and_offsets_are_deleted(barnabas):
    barnabas("topics", "create", "short", "-p", "2")
    for partition in range(2):
        barnabas("produce", "short", "-p", partition, stdin=b"a\nb\nc\n")
    barnabas("consume", "short", "-g", "short", "-o", "beginning", "-e")
    found = barnabas("records", "delete", "short:1", "--before", "-1", "--format", "json").json
    (deleted,) = found["partitions"]
    assert (deleted["old_start"], deleted["new_start"]) == (0, 2)
    assert sorted(barnabas("consume", "short", "-o", "beginning", "-e").lines) == [*"abcc"]
    lines = barnabas("groups", "delete-offsets", "short", "-t", "short:0").lines
    assert lines == ["short-0 deleted"]
