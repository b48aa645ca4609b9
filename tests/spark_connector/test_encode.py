"""The encoder, against rows that Hypothesis makes up and a decoder that knows nothing of it."""

import datetime as dt
import itertools
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons
from kafka.record import MemoryRecords

from barnabas.protocol import compression, record_decoding, records
from barnabas.spark_connector.errors import WrongRows
from barnabas.spark_connector.rows import encode
from barnabas.spark_connector.rows.encode import BatchEncoder
from barnabas.spark_connector.rows.encoded import stamp

NOW_MS = 1_790_000_000_000
COUNTS = {"orders": 3, "payments": 7, "given": 4}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIMESTAMP = pa.timestamp("us", tz="UTC")
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "headers": HEADERS,
    "timestamp": TIMESTAMP,
}


def encoder(schema, **settings):
    settings = {"topic": "given", "batch_max_bytes": 10_000, **settings}
    return BatchEncoder(
        schema, partition_counts=COUNTS.__getitem__, now_ms=lambda: NOW_MS, **settings
    )


def encode_all(*batches, **settings):
    each = encoder(batches[0].schema, **settings)
    encoded = [one for batch in batches for one in each.add(batch)]
    return [*encoded, *each.finish()]


def read_back(encoded, limit_bytes=1_000_000):
    """Return the written rows, by topic and partition, in their order; check every batch."""
    written = defaultdict(list)
    sequences = defaultdict(int)
    for batch in encoded:
        place = batch.topic, batch.partition
        stamp(batch, 1, 1, sequences[place])
        sequences[place] += batch.record_count
        header = records.check_batch(batch.records)
        assert header.record_count == batch.record_count
        found = list(record_decoding.iterate_records(batch.records, limit_bytes=limit_bytes))
        assert [record.offset for record in found] == list(range(batch.record_count))
        assert header.max_timestamp == max(record.timestamp for record in found)
        written[place] += [
            (record.key, record.value, tuple(record.headers), record.timestamp) for record in found
        ]
    return dict(written)


def table(rows, names, types=None):
    types = {**TYPES, **(types or {})}
    columns = [pa.array([row[name] for row in rows], types[name]) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def milliseconds(moment):
    if moment is None:
        return NOW_MS
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since // dt.timedelta(milliseconds=1)


def expected_record(row):
    headers = row.get("headers") or []
    return (
        row.get("key"),
        row["value"],
        tuple((header["key"], header["value"]) for header in headers),
        milliseconds(row.get("timestamp")),
    )


def header_lists():
    header = st.fixed_dictionaries(
        {"key": st.text(max_size=5), "value": st.none() | st.binary(max_size=200)}
    )
    return st.none() | st.lists(header, max_size=3)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.none() | st.binary(max_size=20),
            "value": st.none() | st.binary(max_size=300),
            "topic": st.sampled_from(["orders", "payments"]),
            "partition": st.none() | st.integers(0, 2),
            "headers": header_lists(),
            "timestamp": st.none()
            | st.datetimes(
                dt.datetime(1970, 1, 1),  # noqa: DTZ001 - the strategy wants it so
                dt.datetime(2200, 1, 1),  # noqa: DTZ001
                timezones=st.just(dt.UTC),
            ),
        }
    ),
    min_size=1,
    max_size=60,
)
OPTIONAL = st.sets(st.sampled_from(["key", "topic", "partition", "headers", "timestamp"]))


@given(
    ROWS,
    OPTIONAL,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(200, 3000),
    st.sampled_from(range(5)),
    st.integers(1, 5),
)
def test_every_row_arrives_once_and_in_order(
    rows, optional, cut_head, cut_tail, batch_max_bytes, codec, pieces
):
    names = ["value", *sorted(optional)]
    whole = table(rows, names)
    chosen = whole.slice(cut_head, max(0, len(rows) - cut_head - cut_tail))
    remaining = rows[cut_head : cut_head + chosen.num_rows]
    size = -(-chosen.num_rows // pieces) or 1
    batches = [chosen.slice(at, size) for at in range(0, chosen.num_rows, size)] or [chosen]
    encoded = encode_all(
        *batches,
        topic=None if "topic" in names else "given",
        batch_max_bytes=batch_max_bytes,
        compression=codec,
    )
    written = read_back(encoded)
    for batch in encoded:
        if codec == compression.NONE and batch.record_count > 1:
            assert len(batch.records) <= batch_max_bytes
    free = []
    places = defaultdict(list)
    for row in ({name: row[name] for name in names} for row in remaining):
        topic = row.get("topic", "given")
        if row.get("partition") is not None:
            places[topic, row["partition"]].append(expected_record(row))
        elif row.get("key") is not None:
            partition = (kafka_pythons(row["key"]) & 0x7FFFFFFF) % COUNTS[topic]
            places[topic, partition].append(expected_record(row))
        else:
            free.append((topic, expected_record(row)))
    # A row without a fixed partition is removed from the partition that has it; the others are
    # present, in order.
    for place, found in written.items():
        left = list(found)
        for record in places[place]:
            before = left.index(record)
            for other in left[:before]:
                free.remove((place[0], other))
            left = left[before + 1 :]
        for other in left:
            free.remove((place[0], other))
    assert free == []
    assert {place for place, expected in places.items() if expected} <= set(written)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafka_python_reads_it(codec):
    rows = [
        {
            "key": None if n % 7 == 0 else b"key-%d" % n,
            "value": None if n % 5 == 0 else b"value" * n,
            "partition": 2,
            "headers": [{"key": "ä", "value": b"%d" % n}, {"key": "ä", "value": None}] * (n % 3),
            "timestamp": dt.datetime.fromtimestamp(1_790_000_000 - n, dt.UTC),
        }
        for n in range(100)
    ]
    batch = table(rows, ["key", "value", "partition", "headers", "timestamp"])
    (encoded,) = encode_all(
        batch, compression=compression.NAMES.index(codec), batch_max_bytes=10**6
    )
    stamp(encoded, 9, 0, 0)
    read = MemoryRecords(bytes(encoded.records)).next_batch()
    assert read.validate_crc()
    assert read.is_transactional
    found = [(r.key, r.value, tuple(r.headers), r.timestamp) for r in read]
    assert found == [expected_record(row) for row in rows]


KINDS = {
    "string": (pa.string(), str),
    "large-string": (pa.large_string(), str),
    "large-binary": (pa.large_binary(), str.encode),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), str),
    "dictionary-binary": (pa.dictionary(pa.int8(), pa.binary()), str.encode),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_of_bytes_gives_the_same_batch(kind):
    texts = ["", "a", "ünï", "z" * 200, None, "a"] * 10
    arrow_type, convert = KINDS[kind]
    plain = [text.encode() if text is not None else None for text in texts]
    other = [convert(text) if text is not None else None for text in texts]
    names = ["key", "value", "partition"]
    partition = pa.array([0, 1] * 30, pa.int32())

    def batch(values, value_type):
        column = pa.array(values, value_type)
        return pa.RecordBatch.from_arrays([column, column, partition], names=names).slice(3, 50)

    expected = read_back(encode_all(batch(plain, pa.binary())))
    assert read_back(encode_all(batch(other, arrow_type))) == expected
    assert sum(map(len, expected.values())) == 50


def test_small_arrow_batches_make_few_kafka_batches():
    one = table([{"key": b"k", "value": b"v" * 90}] * 100, ["key", "value"])
    assert len(encode_all(*[one] * 90, batch_max_bytes=2 * 10**6)) == 1


def test_dictionaries_may_differ_from_batch_to_batch():
    dictionary = pa.dictionary(pa.int32(), pa.string())
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array([f"v{n}", f"v{n}"], dictionary), pa.array([0, 0], pa.int32())],
            names=["value", "partition"],
        )
        for n in range(3)
    ]
    written = read_back(encode_all(*batches))
    assert [record[1] for record in written["given", 0]] == [
        b"v0", b"v0", b"v1", b"v1", b"v2", b"v2",
    ]  # fmt: skip


def test_large_input_is_encoded_in_chunks(monkeypatch):
    monkeypatch.setattr(encode, "CHUNK_BYTES", 2_000)
    rows = [{"key": b"%d" % n, "value": b"v" * (n % 50)} for n in range(1000)]
    written = read_back(encode_all(table(rows, ["key", "value"])))
    for (_, partition), found in written.items():
        expected = [
            expected_record(row)
            for row in rows
            if (kafka_pythons(row["key"]) & 0x7FFFFFFF) % 4 == partition
        ]
        assert found == expected


def test_a_row_larger_than_a_batch_is_a_batch_of_its_own():
    rows = [{"value": b"a"}, {"value": b"b" * 50_000}, {"value": b"c"}]
    rows = [{**row, "partition": 1} for row in rows]
    encoded = encode_all(table(rows, ["value", "partition"]), batch_max_bytes=10_000)
    assert [batch.record_count for batch in encoded] == [1, 1, 1]
    assert [len(r[1]) for r in read_back(encoded)["given", 1]] == [1, 50_000, 1]


def test_a_row_that_no_broker_takes_is_refused(monkeypatch):
    monkeypatch.setattr(encode, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(encode, "LARGEST_ROW_BYTES", 2_000)
    with pytest.raises(WrongRows, match="too much for one record"):
        encode_all(table([{"value": b"a"}, {"value": b"b" * 3_000}], ["value"]))


def test_rows_without_a_key_use_all_partitions_in_long_runs():
    rows = [{"value": b"%07d" % n + b"v" * 993} for n in range(1000)]
    written = read_back(encode_all(table(rows, ["value"]), batch_max_bytes=10**6))
    assert len(written) == 4
    turns = [int(record[1][:7]) for record in written["given", 0]]
    # A run is 64 KiB; a new one begins where the numbers jump.
    jumps = sum(b != a + 1 for a, b in itertools.pairwise(turns))
    assert jumps < 6
    small = encode_all(table(rows[:20], ["value"]))
    assert len({batch.partition for batch in small}) == 1


def test_the_option_wins_over_the_column():
    rows = [{"value": b"v", "topic": "orders"}]
    assert {b.topic for b in encode_all(table(rows, ["value", "topic"]))} == {"given"}
    assert {b.topic for b in encode_all(table(rows, ["value", "topic"]), topic=None)} == {"orders"}


def test_other_columns_are_not_looked_at():
    rows = [{"value": b"v", "offset": 5}]
    batch = table(rows, ["value", "offset"], {"offset": pa.int64()})
    assert len(encode_all(batch)) == 1


def test_a_wide_range_of_times_and_units():
    times = [0, 1, 2**40, 5, NOW_MS]
    for unit, factor in (("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)):
        ticks = [int(time * factor) for time in times]
        column = pa.array(ticks, pa.timestamp(unit, tz="Europe/Berlin"))
        batch = pa.RecordBatch.from_arrays(
            [pa.array([b"v"] * 5), column, pa.array([0] * 5, pa.int32())],
            names=["value", "timestamp", "partition"],
        )
        found = [record[3] for record in read_back(encode_all(batch))["given", 0]]
        assert found == [int(tick / factor) for tick in ticks]


REFUSED = {
    "no-value": ({"key": pa.binary()}, "Required attribute 'value' not found"),
    "value-type": ({"value": pa.int64()}, "value attribute unsupported type int64"),
    "key-type": ({"value": pa.binary(), "key": pa.float64()}, "key attribute unsupported type"),
    "partition-type": (
        {"value": pa.binary(), "partition": pa.int64()},
        "partition must be an int",
    ),
    "topic-type": ({"value": pa.binary(), "topic": pa.binary()}, "topic must be a string"),
    "headers-type": (
        {"value": pa.binary(), "headers": pa.map_(pa.string(), pa.binary())},
        "headers must be an array<struct<key: string, value: binary>>",
    ),
    "header-fields": (
        {"value": pa.binary(), "headers": pa.list_(pa.struct([("key", pa.string())]))},
        "headers must be",
    ),
    "header-values": (
        {
            "value": pa.binary(),
            "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])),
        },
        "headers must be",
    ),
    "local-time": ({"value": pa.binary(), "timestamp": pa.timestamp("us")}, "a timestamp"),
    "number-as-time": ({"value": pa.binary(), "timestamp": pa.int64()}, "a timestamp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_that_cannot_be_records_is_refused(name):
    columns, sentence = REFUSED[name]
    with pytest.raises(WrongRows, match=sentence):
        encoder(pa.schema(list(columns.items())))


def test_two_columns_of_one_name_are_refused():
    schema = pa.schema([("value", pa.binary()), ("value", pa.binary())])
    with pytest.raises(WrongRows, match="Several columns are named 'value'"):
        encoder(schema)


def test_a_topic_must_come_from_somewhere():
    with pytest.raises(WrongRows, match="topic option required"):
        encoder(pa.schema([("value", pa.binary())]), topic=None)


def refuse_row(row, sentence, **settings):
    good = {**row, **{name: None for name in row if name != "topic"}, "value": b"v"}
    if "topic" in row:
        good["topic"] = "orders"
    with pytest.raises(WrongRows, match=sentence):
        encode_all(table([good, row], list(row)), **settings)


def test_rows_that_cannot_be_records_are_refused():
    base = {"value": b"v"}
    refuse_row({**base, "topic": None}, "a null topic", topic=None)
    refuse_row({**base, "partition": 4}, "says 4, but topic 'given' has the partitions 0 to 3")
    refuse_row({**base, "partition": -1}, "says -1, but topic")
    early = dt.datetime(1969, 12, 31, tzinfo=dt.UTC)
    refuse_row({**base, "timestamp": early}, "lies before 1970")
    refuse_row({**base, "headers": [{"key": None, "value": b"v"}]}, "a header without a key")
    refuse_row({**base, "headers": [None]}, "a header without a key")


def test_an_unknown_topic_is_reported_as_the_cluster_reports_it():
    with pytest.raises(KeyError, match="unknown"):
        encode_all(table([{"value": b"v", "topic": "unknown"}], ["value", "topic"]), topic=None)


def test_nothing_gives_nothing():
    empty = table([], ["key", "value", "headers"])
    assert encode_all(empty) == []
    assert encode_all(empty, empty) == []


def test_a_key_that_lies_under_a_null_is_not_used():
    offsets = pa.py_buffer(np.array([0, 3, 7], dtype=np.int32))
    bits = pa.py_buffer(b"\x02")
    keys = pa.Array.from_buffers(pa.binary(), 2, [bits, offsets, pa.py_buffer(b"abckeys")])
    batch = pa.RecordBatch.from_arrays(
        [keys, keys, pa.array([0, 0], pa.int32())], names=["key", "value", "partition"]
    )
    assert [r[:2] for r in read_back(encode_all(batch))["given", 0]] == [
        (None, None),
        (b"keys", b"keys"),
    ]
