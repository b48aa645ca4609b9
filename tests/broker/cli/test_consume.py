import json

import pytest

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.cli.arguments import addresses
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.records import consumer
from barnabas.broker.cli.records.consumer import Consumer
from barnabas.broker.cli.records.record_text import Template, record_as_json, record_from_json
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from tests.counterparts.transaction_client import TransactionClient


@pytest.fixture
def ten(shell, request):
    """A topic with two partitions, ten records in each, a second apart."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shell("topics", "create", name, "-p", "2")
    lines = [
        {
            "key": f"k{number}",
            "value": f"{partition}/{number}",
            "partition": partition,
            "timestamp": 1_700_000_000_000 + 1000 * number,
        }
        for number in range(10)
        for partition in range(2)
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    assert shell("produce", name, "--input", "json", stdin=stdin).exit_code == 0
    return name


def expected(*wanted):
    return [f"{partition}/{number}" for partition, numbers in wanted for number in numbers]


EVERYTHING = expected((0, range(10)), (1, range(10)))


@pytest.mark.parametrize("where", ["beginning", "earliest", "0", "-10", "-99", "@0", "@2020-01-01"])
def test_from_the_beginning(shell, ten, where):
    assert sorted(shell("consume", ten, "-o", where, "-e").lines) == sorted(EVERYTHING)


@pytest.mark.parametrize(
    "where",
    ["7", "-3", "@1700000007000", "@2023-11-14T22:13:27Z", "@2023-11-14T23:13:26.001+01:00"],
)
def test_from_somewhere(shell, ten, where):
    found = shell("consume", ten, "-o", where, "--exit").lines
    assert sorted(found) == expected((0, range(7, 10)), (1, range(7, 10)))


@pytest.mark.parametrize("where", ["end", "latest", "10", "@2033-01-01"])
def test_from_the_end(shell, ten, where):
    assert shell("consume", ten, "-o", where, "-e").lines == []


@pytest.mark.parametrize("group", [(), ("-g", "readers")])
def test_records_behind_an_open_transaction_are_named(own_broker, own_shell, group):
    own_shell("topics", "create", "two", "-p", "2")
    own_shell("produce", "two", "-p", "0", stdin=b"a\n")
    with TransactionClient(own_broker) as client:
        client.begin("open", "two", 0)
        ended = own_shell("consume", "two", "-o", "beginning", "-e", *group)
        assert (ended.exit_code, ended.stdout) == (0, "a\n")
        assert "barnabas: two-0: offsets 1 to 1 were not read, since a transaction is open" in (
            ended.stderr
        )
        assert "two-1" not in ended.stderr
        read = ("consume", "two", "-o", "beginning", "-e", "--isolation", "read_uncommitted")
        assert "not read" not in own_shell(*read).stderr


def test_nothing_more_than_what_was_there(shell, ten):
    assert shell("consume", ten, "-e").lines == []


@pytest.mark.parametrize("where", ["11", "99"])
def test_an_offset_that_is_not_there(shell, ten, where):
    error = shell("consume", ten, "-p", "1", "-o", where, "-e").error
    assert error == f"{ten}-1: offset {where} does not exist, only 0 to 10"


def test_order_within_a_partition(shell, ten):
    lines = shell("consume", ten, "-p", "1", "-o", "beginning", "-e").lines
    assert lines == expected((1, range(10)))


@pytest.mark.parametrize("chosen", [("-p", "0,1"), ("-p", "0", "-p", "1"), ("-p", "0,0,1")])
def test_several_partitions(shell, ten, chosen):
    lines = shell("consume", ten, *chosen, "-o", "beginning", "-e").lines
    assert sorted(lines) == sorted(EVERYTHING)


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        (["{ten}:1"], [1]),
        (["{ten}:0", "{ten}:1"], [0, 1]),
        (["{ten}:0,1"], [0, 1]),
        (["{ten}", "{ten}:1"], [0, 1]),
        (["{ten}*:1"], [1]),
    ],
)
def test_topic_with_partitions_reads_these(shell, ten, given, partitions):
    topics = [each.format(ten=ten) for each in given]
    lines = shell("consume", *topics, "-o", "beginning", "-e").lines
    assert sorted(lines) == sorted(expected(*((each, range(10)) for each in partitions)))


def test_topic_with_partitions_is_refused_with_group_or_option(shell, ten):
    refused = shell("consume", f"{ten}:1", "-g", "g")
    assert (refused.exit_code, "nor with TOPIC:N" in refused.stderr) == (2, True)
    refused = shell("consume", f"{ten}:1", "-p", "1", "-e")
    assert (refused.exit_code, "-p goes with one topic" in refused.stderr) == (2, True)
    assert "the topic has only 2" in shell("consume", f"{ten}:2", "-e").error


def test_partitions_that_are_not_there(shell, ten):
    assert shell("consume", ten, "-p", "0,2", "-e").error == (
        f"{ten}-2: the topic has only 2 partitions"
    )


def test_a_topic_that_is_not_there(shell):
    assert shell("consume", "nowhere", "-e").error == (
        "nowhere: no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)"
    )


def test_consume_stops_after_the_count_of_records(shell, ten):
    assert len(shell("consume", ten, "-o", "beginning", "-n", "7").lines) == 7
    assert len(shell("consume", ten, "-o", "beginning", "-n", "70", "-e").lines) == 20


def test_keys(shell, ten):
    lines = shell("consume", ten, "-p", "0", "-o", "-2", "-e", "-K", "\\t").stdout
    assert lines == "k8\t0/8\nk9\t0/9\n"


def test_json(shell, ten):
    ended = shell("consume", ten, "-p", "1", "-o", "-1", "-e", "--format", "json")
    assert ended.json == {
        "topic": ten,
        "partition": 1,
        "offset": 9,
        "timestamp": 1_700_000_009_000,
        "key": "k9",
        "value": "1/9",
        "headers": [],
    }


def test_a_template(shell, ten):
    ended = shell(
        "consume", ten, "-p", "1", "-o", "-1", "-e", "-f", "%t %p %o %k %v %K %V %T %D %%\\n"
    )
    assert ended.stdout == (f"{ten} 1 9 k9 1/9 2 3 1700000009000 2023-11-14T22:13:29.000Z %\n")


def test_a_template_with_nothing_to_show():
    record = ReceivedRecord("t", 0, 0, -1, None, None, (("a", None), ("b", b"1")))
    assert Template("[%k|%v|%K|%V|%T|%D|%h]").fill(record) == b"[||-1|-1|-1|-|a=,b=1]"


@pytest.mark.parametrize(
    "data",
    [b"", b"text", "ü".encode(), b"\xff\x00", None],
    ids=["empty", "text", "utf-8", "binary", "null"],
)
def test_json_loses_nothing(data):
    record = ReceivedRecord("t", 3, 9, 7, data, data, (("h", data), ("h", b"2")))
    again = record_from_json(record_as_json(record).encode())
    assert again == (data, data, record.headers, 3, 7)


def test_small_fetches_find_everything(shell, ten, monkeypatch):
    monkeypatch.setattr(consumer, "PARTITION_BYTES_MAX", 1)
    monkeypatch.setattr(consumer, "FETCH_BYTES_MAX", 1)
    lines = shell("consume", ten, "-o", "beginning", "-e").lines
    assert sorted(lines) == sorted(EVERYTHING)


def test_several_topics_and_patterns(own_shell):
    for topic in ("orders-a", "orders-b", "prices"):
        own_shell("topics", "create", topic)
        own_shell("produce", topic, stdin=f"{topic}\n".encode())

    def read(*topics):
        return sorted(own_shell("consume", *topics, "-o", "beginning", "-e").lines)

    assert read("orders-a", "prices") == ["orders-a", "prices"]
    assert read("orders-?", "orders-a") == ["orders-a", "orders-b"]
    assert read("*") == ["orders-a", "orders-b", "prices"]
    assert own_shell("consume", "x*", "-e").error == "x*: no topic matches"
    assert own_shell("consume", "orders-a", "prices", "-p", "0", "-e").exit_code == 2


def test_json_values(own_shell):
    own_shell("topics", "create", "t")
    values = [{"a": [1, "ü"]}, 7, "text", None, {"base64": "no"}]
    lines = "".join(json.dumps({"key": "k", "value": value}) + "\n" for value in values)
    own_shell("produce", "t", "--input", "json", "-J", stdin=lines.encode())
    assert own_shell("consume", "t", "-o", "beginning", "-e").stdout.splitlines() == [
        '{"a":[1,"ü"]}', "7", '"text"', "", '{"base64":"no"}'
    ]  # fmt: skip
    found = own_shell("consume", "t", "-o", "beginning", "-e", "--format", "json", "-J").stdout
    assert [json.loads(line)["value"] for line in found.splitlines()] == values
    assert own_shell("consume", "t", "-J").exit_code == 2
    assert own_shell("produce", "t", "-J").exit_code == 2


# --------------------------------------------------------------------------- when things go wrong


def positions(topic, offset=0):
    return {(topic, 0): offset}


def values(records):
    return [record.value for record in records]


@pytest.fixture
def reader(own_broker, own_shell):
    """A consumer of a topic with three records."""
    own_shell("topics", "create", "three")
    own_shell("produce", "three", stdin=b"a\nb\nc\n")
    with Cluster(addresses(own_shell.address), 5) as cluster:
        yield Consumer(cluster, positions("three"), isolation="read_committed")


def test_retriable_fetch_error_is_retried(own_broker, reader):
    with own_broker.intercept(FETCH, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2):
        assert values(reader.poll()) == [b"a", b"b", b"c"]


def test_a_lost_connection_is_made_again(own_broker, reader):
    with own_broker.intercept(FETCH, drop=True, times=2):
        assert values(reader.poll()) == [b"a", b"b", b"c"]


def test_a_restart_repeats_nothing(own_broker, own_shell, reader):
    assert values(reader.poll()) == [b"a", b"b", b"c"]
    own_broker.crash()
    own_broker.restart()
    own_shell("produce", "three", stdin=b"d\n")
    assert values(reader.poll()) == [b"d"]


def test_reading_may_stop_within_a_batch(reader):
    for record in reader.poll():
        assert record.value == b"a"
        break
    assert values(reader.poll()) == [b"b", b"c"]


def test_final_fetch_error_is_raised_at_once(own_broker, reader):
    with own_broker.intercept(FETCH, fail=ErrorCode.TOPIC_AUTHORIZATION_FAILED) as caught:
        with pytest.raises(Rejected, match="TOPIC_AUTHORIZATION_FAILED"):
            list(reader.poll())
        assert caught.count == 1


def test_records_that_are_not_there_any_more(reader):
    reader.positions = positions("three", 7)
    with pytest.raises(CommandError, match="three-0: offset 7 is out of range"):
        list(reader.poll())


def test_deleted_topic_fails_the_reader(own_broker, own_shell, reader):
    assert values(reader.poll()) == [b"a", b"b", b"c"]
    own_shell("topics", "delete", "three")
    reader._cluster.timeout_seconds = 0.3
    with pytest.raises(Rejected, match="three"):
        list(reader.poll())


def test_offsets_are_asked_again_for(own_broker, own_shell, reader):
    with own_broker.intercept(LIST_OFFSETS, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2):
        ended = own_shell("consume", "three", "-o", "beginning", "-e")
    assert ended.lines == ["a", "b", "c"]


def test_damaged_records(own_broker, own_shell, monkeypatch):
    own_shell("topics", "create", "damaged")
    own_shell("produce", "damaged", stdin=b"a\n")
    real = consumer.verify_batch

    def verify(batch):
        damaged = bytearray(batch)
        damaged[-1] ^= 1
        return real(damaged)

    monkeypatch.setattr(consumer, "verify_batch", verify)
    ended = own_shell("consume", "damaged", "-o", "beginning", "-e")
    assert ended.error == "damaged-0 at offset 0: the checksum does not match"
