import json
import random

import pytest

from barnabas.broker.cli.arguments import addresses
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.commands import produce
from barnabas.broker.cli.commands.produce import read_lines
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.records import producer
from barnabas.broker.cli.records.producer import Producer, ProducerOptions
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.errors import Unreachable
from barnabas.broker.client.topic_reader import read_topic
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.metadata import METADATA
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.partitioning import murmur2
from tests.seeds import SEED


def read(shell, topic):
    (address,) = addresses(shell.address)
    with WireClient(address) as client:
        return read_topic(client, topic)


def values(shell, topic):
    return [record.value for record in read(shell, topic)]


def test_lines_become_records(shell):
    shell("topics", "create", "lines")
    ended = shell("produce", "lines", stdin=b"one\n\ntwo \r\nno end")
    assert ended.lines == ["lines-0: 4 records, offsets 0 to 3"]
    records = read(shell, "lines")
    assert [record.value for record in records] == [b"one", b"", b"two \r", b"no end"]
    assert {(record.key, record.headers) for record in records} == {(None, ())}


def test_no_lines(shell):
    shell("topics", "create", "no-lines")
    assert shell("produce", "no-lines").lines == ["nothing to write"]
    assert values(shell, "no-lines") == []


def test_keys_and_headers(shell):
    shell("topics", "create", "keys")
    shell(
        "produce", "keys", "-K", "\\t", "-H", "a=1", "--header", "b= c ",
        stdin=b"k\tv\tw\n\tempty key\n",
    )  # fmt: skip
    first, second = read(shell, "keys")
    assert (first.key, first.value, first.headers) == (b"k", b"v\tw", (("a", b"1"), ("b", b" c ")))
    assert (second.key, second.value) == (b"", b"empty key")


def test_empty_is_null(shell):
    shell("topics", "create", "nulls")
    shell("produce", "nulls", "-K", ":", "-Z", stdin=b"k:\n:v\n:\n")
    assert [(each.key, each.value) for each in read(shell, "nulls")] == [
        (b"k", None),
        (None, b"v"),
        (None, None),
    ]


def test_a_line_without_a_key(shell):
    shell("topics", "create", "keyless")
    ended = shell("produce", "keyless", "-K", ":", stdin=b"a:1\nb:2\nc\nd:4\n")
    assert ended.error == "line 3: no key separator ':'; 2 records written before"
    assert values(shell, "keyless") == [b"1", b"2"]


def test_json_in_and_out(shell):
    shell("topics", "create", "json", "-p", "2")
    lines = [
        {"key": "k", "value": "ü", "headers": [{"key": "h", "value": None}], "partition": 1},
        {
            "value": {"base64": "AP8="},
            "timestamp": 1_000,
            "partition": 1,
            "offset": 9,
            "topic": "x",
        },
        {},
    ]
    ended = shell(
        "produce", "json", "--input", "json", "-H", "all=1", "-p", "0", "--format", "json",
        stdin="\n".join(map(json.dumps, lines)).encode(),
    )  # fmt: skip
    assert ended.json == {
        "topic": "json",
        "records": 3,
        "partitions": [{"partition": 0, "records": 3, "first_offset": 0, "last_offset": 2}],
    }
    first, second, third = read(shell, "json")
    assert (first.key, first.value) == (b"k", "ü".encode())
    assert first.headers == (("h", None), ("all", b"1"))
    assert (second.value, second.timestamp) == (b"\x00\xff", 1_000)
    assert (third.key, third.value) == (None, None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "the line is not valid JSON"),
        ("[" * 100_000, "the line is not valid JSON"),
        ("[]", "the line is not a JSON object"),
        ('{"valeu": "x"}', "unknown field valeu"),
        ('{"value": 1}', 'value must be text, null or {"base64": "..."}'),
        ('{"value": {"base64": "?"}}', "value is not base64"),
        ('{"key": "\\ud800"}', "key is not text"),
        ('{"headers": {}}', "headers must be a list"),
        ('{"headers": [{"value": "x"}]}', 'a header must be {"key": "...", "value": ...}'),
        ('{"headers": [{"key": "x", "value": 1}]}', "a header's value must be text, null or"),
        ('{"partition": "0"}', "partition must be a whole number"),
        ('{"partition": -1}', "partition must be a whole number"),
        ('{"timestamp": true}', "timestamp must be a whole number"),
        ('{"timestamp": 9223372036854775808}', "timestamp must be a whole number"),
    ],
    ids=lambda value: value if value.startswith("{") else None,
)
def test_json_that_is_no_record(shell, line, expected):
    shell("topics", "create", "bad-json", "--if-not-exists")
    error = shell("produce", "bad-json", "--input", "json", stdin=f"{{}}\n{line}\n".encode()).error
    assert error.startswith("line 2: ")
    assert expected in error


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("options", [(), ("--acks", "1"), ("--acks", "0"), ("--no-idempotence",)])
def test_acks_and_compression(shell, codec, options):
    topic = f"codec-{codec}-{'-'.join(options).replace('--', '')}"
    shell("topics", "create", topic)
    lines = [b"%d " % number * 20 for number in range(100)]
    ended = shell("produce", topic, "-z", codec, *options, stdin=b"\n".join(lines))
    if "0" in options:  # Without acknowledgements, no offset and no time is known.
        assert ended.lines == [f"{topic}-0: 100 records"]
        ended = shell("consume", topic, "-o", "beginning", "-n", "100")
        assert ended.stdout.encode() == b"\n".join(lines) + b"\n"
    else:
        assert ended.lines == [f"{topic}-0: 100 records, offsets 0 to 99"]
        assert values(shell, topic) == lines


def test_a_key_has_one_partition(shell):
    shell("topics", "create", "by-key", "-p", "4")
    stdin = b"".join(b"%d:%d\n" % (number % 10, number) for number in range(50))
    shell("produce", "by-key", "-K", ":", stdin=stdin)
    records = read(shell, "by-key")
    assert len(records) == 50
    for record in records:
        assert record.partition == (murmur2(record.key) & 0x7FFF_FFFF) % 4
    for key in {record.key for record in records}:
        of_key = [int(record.value) for record in records if record.key == key]
        assert of_key == sorted(of_key)


# What Kafka's own tests of Utils.murmur2 expect.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_kafka_does(key, expected):
    assert murmur2(key) == expected & 0xFFFF_FFFF


def test_a_batch_that_is_too_large_is_cut(shell):
    shell("topics", "create", "small", "-X", "max.message.bytes=1000")
    lines = [b"%d" % number * 100 for number in range(40)]
    ended = shell("produce", "small", stdin=b"\n".join(lines))
    assert ended.lines == ["small-0: 40 records, offsets 0 to 39"]
    assert values(shell, "small") == lines


def test_a_record_that_is_too_large(shell):
    shell("topics", "create", "tiny", "-X", "max.message.bytes=1000")
    ended = shell("produce", "tiny", stdin=b"first\n" + b"x" * 2000 + b"\nlast\n")
    assert "tiny-0: " in ended.error
    assert "(MESSAGE_TOO_LARGE); 1 record written before" in ended.error


def test_much_goes_in_several_batches(shell, monkeypatch):
    monkeypatch.setattr(producer, "_BATCH_RECORDS_MAX", 7)
    monkeypatch.setattr(produce, "_READ_BYTES", 64)
    shell("topics", "create", "much", "-p", "3")
    lines = [b"%d" % number for number in range(500)]
    stdin = b"".join(b"%s:%s\n" % (line[:1], line) for line in lines)
    ended = shell("produce", "much", "-K", ":", "--format", "json", stdin=stdin)
    assert ended.json["records"] == 500
    found = values(shell, "much")
    assert sorted(found, key=int) == lines
    for digit in b"123456789":
        assert [v for v in found if v[0] == digit] == [v for v in lines if v[0] == digit]


def test_records_without_keys_are_spread(own_broker, own_shell):
    own_shell("topics", "create", "spread", "-p", "3")
    (address,) = addresses(own_shell.address)
    with Cluster([address], 10) as cluster:
        writer = Producer(cluster, "spread", ProducerOptions())
        for _ in range(6):
            writer.write([NewRecord(None, b"x"), NewRecord(None, b"y")])
    assert {number: each.records for number, each in writer.written.items()} == {0: 4, 1: 4, 2: 4}


# --------------------------------------------------------------------------- when things go wrong


def test_a_topic_that_is_not_there(shell):
    error = shell("produce", "nowhere", stdin=b"x").error
    assert error == "nowhere: no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)"
    assert "nowhere" not in shell("topics", "list").stdout


def test_a_partition_that_is_not_there(shell):
    shell("topics", "create", "two", "-p", "2")
    assert shell("produce", "two", "-p", "2", stdin=b"x").error == (
        "two-2: the topic has only 2 partitions; 0 records written before"
    )


def test_a_lost_answer_writes_nothing_twice(own_broker, own_shell):
    own_shell("topics", "create", "once")
    with own_broker.intercept(PRODUCE, lose_answer=True, times=2) as caught:
        ended = own_shell("produce", "once", stdin=b"a\nb\n")
        assert caught.count >= 2
    assert ended.lines == ["once-0: 2 records, offsets 0 to 1"]
    assert values(own_shell, "once") == [b"a", b"b"]


def test_a_lost_answer_without_idempotence(own_broker, own_shell):
    own_shell("topics", "create", "unknown")
    with own_broker.intercept(PRODUCE, lose_answer=True):
        error = own_shell("produce", "unknown", "--acks", "1", stdin=b"a\nb\n").error
    assert error.endswith(
        "it is not known whether 2 records were written; 0 records written before"
    )


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR])
def test_retriable_error_is_retried(own_broker, own_shell, code):
    own_shell("topics", "create", "again")
    with own_broker.intercept(PRODUCE, fail=code, times=2):
        ended = own_shell("produce", "again", stdin=b"a\n")
    assert ended.lines == ["again-0: 1 record, offsets 0 to 0"]


def test_persistent_retriable_error_fails_after_the_timeout(own_broker, own_shell):
    own_shell("topics", "create", "never")
    with own_broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER):
        error = own_shell("produce", "never", "--timeout", "0.5", stdin=b"a\n").error
    assert error.startswith("never-0: ")
    assert error.endswith("(NOT_LEADER_OR_FOLLOWER); 0 records written before")


def test_final_error_fails_at_once(own_broker, own_shell):
    own_shell("topics", "create", "final")
    with own_broker.intercept(PRODUCE, fail=ErrorCode.TOPIC_AUTHORIZATION_FAILED) as caught:
        error = own_shell("produce", "final", stdin=b"a\n").error
    assert "(TOPIC_AUTHORIZATION_FAILED)" in error
    assert caught.count == 1


def test_a_denied_producer_id_names_the_right_that_is_missing(own_broker, own_shell):
    own_shell("topics", "create", "orders")
    fail = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with own_broker.intercept(INIT_PRODUCER_ID, fail=fail):
        error = own_shell("produce", "orders", stdin=b"a\n").error
    assert error == "topic orders: WRITE is denied (TOPIC_AUTHORIZATION_FAILED)"


def test_a_producer_id_that_takes_a_while(own_broker, own_shell):
    own_shell("topics", "create", "slow-id")
    fail = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with own_broker.intercept(INIT_PRODUCER_ID, fail=fail, times=2):
        assert own_shell("produce", "slow-id", stdin=b"a\n").exit_code == 0


def test_a_broker_that_restarts(own_broker, own_shell, monkeypatch):
    own_shell("topics", "create", "restarted")
    lines = [b"%d" % number for number in range(30)]
    (address,) = addresses(own_shell.address)
    with Cluster([address], 10) as cluster:
        writer = Producer(cluster, "restarted", ProducerOptions())
        for number, line in enumerate(lines):
            writer.write([NewRecord(None, line)])
            if number in {3, 17}:
                own_broker.crash()
                own_broker.restart()
    assert values(own_shell, "restarted") == lines


def test_a_broker_that_leaves(own_broker, own_shell):
    own_shell("topics", "create", "left")
    (address,) = addresses(own_shell.address)
    with Cluster([address], 10) as cluster:
        writer = Producer(cluster, "left", ProducerOptions())
        writer.write([NewRecord(None, b"x")])
        own_broker.crash()
        cluster.timeout_seconds = 0.5
        try:
            with pytest.raises(Unreachable) as problem:
                writer.write([NewRecord(None, b"y")])
        finally:
            own_broker.restart()
    assert own_shell.address in str(problem.value)
    assert writer.records == 1


def test_topic_gets_partitions_while_producing(own_broker, own_shell):
    own_shell("topics", "create", "grows")
    (address,) = addresses(own_shell.address)
    with Cluster([address], 10) as cluster:
        writer = Producer(cluster, "grows", ProducerOptions())
        own_shell("topics", "alter", "grows", "-p", "2")
        with own_broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=1):
            writer.write([NewRecord(None, b"x")])
        writer.write([NewRecord(None, b"y", partition=1)])
    assert values(own_shell, "grows") == [b"x", b"y"]


def test_metadata_is_not_asked_for_every_batch(own_broker, own_shell):
    own_shell("topics", "create", "calm")
    (address,) = addresses(own_shell.address)
    with own_broker.intercept(METADATA) as caught, Cluster([address], 10) as cluster:
        writer = Producer(cluster, "calm", ProducerOptions())
        for _ in range(5):
            writer.write([NewRecord(None, b"x")])
    assert caught.count == 1


# -------------------------------------------------------------------------------------------- lines


class Pieces:
    """A stream that comes in pieces."""

    def __init__(self, *pieces):
        self._pieces = list(pieces)

    def read1(self, _size):
        return self._pieces.pop(0) if self._pieces else b""


def test_lines_come_as_soon_as_they_are_whole():
    stream = Pieces(b"a\nb", b"c", b"d\n", b"\n", b"e")
    assert list(read_lines(stream)) == [[b"a"], [b"bcd"], [b""], [b"e"]]


def test_lines_in_random_pieces():
    dice = random.Random(SEED)
    for _ in range(200):
        data = bytes(dice.choices(b"ab\n", k=dice.randrange(40)))
        cuts = sorted(dice.choices(range(len(data) + 1), k=5))
        pieces = [data[i:j] for i, j in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        found = [line for lines in read_lines(Pieces(*filter(None, pieces))) for line in lines]
        expected = data.split(b"\n")
        assert found == (expected if expected[-1] else expected[:-1])


def test_a_line_without_end(monkeypatch):
    monkeypatch.setattr(produce, "LINE_BYTES_MAX", 10)
    with pytest.raises(CommandError, match="a line is longer than 10 bytes"):
        list(read_lines(Pieces(b"x" * 6, b"x" * 6)))
