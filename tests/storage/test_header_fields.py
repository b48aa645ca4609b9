"""Each field of a client's batch header, as docs/batch-header.md describes it."""

from pathlib import Path

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import (
    BatchHeader,
    Record,
    control_batch,
    encode_batch,
    read_header,
    seal,
)
from barnabas.storage.batches.batch_contents import Inspection
from barnabas.storage.compaction.retention import apply_retention
from barnabas.storage.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    OutOfOrderSequence,
)
from barnabas.storage.log.batch_rules import FEW_RECORDS
from barnabas.storage.log.config import LOG_APPEND_TIME, LogConfig
from barnabas.storage.log.time_lookup import offset_for_timestamp, offset_of_max_timestamp, run
from tests.checkout import ROOT
from tests.storage.stores import NOW_MS, Host, from_producer, read_all

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
MANY = FEW_RECORDS + 1
HOUR_MS = 3_600_000


def booted(**config):
    host = Host(LogConfig(**config))
    host.boot()
    return host


def batch(count=3, *, first_ms=NOW_MS, step_ms=1000, codec=NONE, **fields):
    """A batch whose header has other ``fields``, under a checksum that fits."""
    records = [Record(at, first_ms + at * step_ms, None, b"v" * 20) for at in range(count)]
    good = encode_batch(records, compression=codec)
    header = read_header(good)
    return memoryview(bytearray(seal(header._replace(**fields), good[61:])))


def stored(host, data, contents=None):
    """Append a batch; return its header as a reader gets it, and its records."""
    host.log.append(data, contents=contents)
    host.step()
    header, found = read_all(host.log)[-1]
    return header, list(iterate_records(found, limit_bytes=1 << 20))


def rewritten(host, data):
    """Return the header of a batch that is stored in the codec of its topic."""
    inspection = Inspection(data, host.log.rules.encoding_of(data))
    while (found := inspection.step()) is None:
        pass
    host.log.append(found.encoded, stable=True, contents=found)
    host.step()
    return read_all(host.log)[-1][0]


def refused(data, error, **config):
    host = booted(**config)
    with pytest.raises(error):
        host.log.append(data)
    assert host.log.next_offset == 0


# ---------------------------------------------------------------------------------- each field


def base_offset():
    host = booted()
    host.append(batch())
    assert stored(host, batch(base_offset=77))[0].base_offset == 3


def batch_length():
    data = batch()
    refused(data[:-1], CorruptMessage)
    refused(memoryview(bytes(data) + bytes(data)), InvalidRecord)


def partition_leader_epoch():
    host = booted()
    assert stored(host, batch(partition_leader_epoch=77))[0].partition_leader_epoch == (
        host.log.leader_epoch
    )


def magic():
    data = batch()
    data[16] = 1
    refused(data, InvalidRecord)


def crc():
    data = batch()
    data[-1] ^= 1
    refused(data, CorruptMessage)


def attributes():
    refused(memoryview(bytearray(batch())), InvalidRecord, cleanup_policy=frozenset(("compact",)))
    refused(batch(attributes=5), InvalidRecord)  # no codec
    compressed = rewritten(booted(compression_type="lz4"), batch(attributes=0x08))
    assert compressed.attributes == LZ4
    refused(batch(attributes=0x10), InvalidRecord)  # transactional, without a producer
    refused(batch(attributes=0x40), InvalidRecord)  # a delete horizon
    marker = control_batch(7, 0, commit=True, coordinator_epoch=0, timestamp=NOW_MS)
    refused(memoryview(bytearray(marker)), InvalidRecord)
    # The timestamp type is the topic's.
    header, records = stored(booted(), batch(attributes=0x08, max_timestamp=5))
    assert header.attributes == 0
    assert [record.timestamp for record in records] == [NOW_MS, NOW_MS + 1000, NOW_MS + 2000]
    assert stored(booted(timestamp_type=LOG_APPEND_TIME), batch())[0].attributes == 0x08


def last_offset_delta():
    refused(batch(last_offset_delta=9), InvalidRecord)
    refused(batch(last_offset_delta=9, record_count=10), InvalidRecord)


def base_timestamp():
    _, records = stored(booted(), batch(base_timestamp=NOW_MS - 5000, max_timestamp=NOW_MS))
    assert records[0].timestamp == NOW_MS - 5000


def max_timestamp():
    for codec in CODECS:
        for count in (1, 3, MANY):
            for said in (-1, 0, NOW_MS - 1):
                header, _ = stored(booted(), batch(count, codec=codec, max_timestamp=said))
                assert header.max_timestamp == NOW_MS + (count - 1) * 1000, (codec, count, said)


def producer_id():
    refused(batch(producer_id=7, producer_epoch=0), InvalidRecord)  # without a sequence
    refused(batch(producer_id=7, base_sequence=0), InvalidRecord)  # without an epoch


def producer_epoch():
    host = booted()
    host.append(from_producer(7, 0, epoch=3))
    with pytest.raises(InvalidProducerEpoch):
        host.log.append(from_producer(7, 1, epoch=2))


def base_sequence():
    host = booted()
    host.append(from_producer(7, 0))
    with pytest.raises(OutOfOrderSequence):
        host.log.append(from_producer(7, 5))


def record_count():
    refused(batch(record_count=2), InvalidRecord)
    refused(batch(record_count=2, last_offset_delta=1), InvalidRecord)
    refused(batch(record_count=-1, last_offset_delta=-2), InvalidRecord)


FIELDS = {
    check.__name__: check
    for check in (
        base_offset,
        batch_length,
        partition_leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
}


@pytest.mark.parametrize("field", BatchHeader._fields)
def test_field_is_what_the_page_says(field):
    FIELDS[field]()


def test_page_has_a_row_for_each_field():
    page = Path(ROOT, "docs", "batch-header.md").read_text()
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"`{field}`" for field in BatchHeader._fields]


# ------------------------------------------------------------------------- what goes by the newest


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("said", [-1, 0, NOW_MS + 900_000])
def test_times_of_records_decide_about_look_ups(codec, said):
    host = booted()
    host.append(batch(3, codec=codec, max_timestamp=said))
    for at in range(3):
        assert run(offset_for_timestamp(host.log, NOW_MS + at * 1000)).offset == at
    assert run(offset_of_max_timestamp(host.log)).offset == 2


@pytest.mark.parametrize("said", [0, NOW_MS - 2 * HOUR_MS])
def test_times_of_records_decide_about_retention(said):
    host = booted(retention_ms=HOUR_MS, segment_bytes=300)
    for _ in range(5):
        host.append(batch(max_timestamp=said))
    assert apply_retention(host.log, host.store.journal, NOW_MS + 10_000) is None
    assert apply_retention(host.log, host.store.journal, NOW_MS + 2 * HOUR_MS) is not None


def test_times_of_records_decide_about_their_plausibility():
    day_ms = 86_400_000
    for codec in CODECS:
        ahead = batch(first_ms=NOW_MS + day_ms, codec=codec, max_timestamp=NOW_MS)
        refused(ahead, InvalidTimestamp, timestamp_after_max_ms=HOUR_MS)
        of_now = batch(codec=codec, max_timestamp=NOW_MS + day_ms)
        header, _ = stored(booted(timestamp_after_max_ms=HOUR_MS), of_now)
        assert header.max_timestamp == NOW_MS + 2000


def test_contents_that_were_found_before_correct_a_large_batch():
    data = batch(MANY, max_timestamp=NOW_MS + HOUR_MS)
    believed, _ = stored(booted(), data)
    assert believed.max_timestamp == NOW_MS + HOUR_MS
    host = booted()
    header, _ = stored(host, data, contents=host.log.rules.inspect(data, always=True))
    assert header.max_timestamp == NOW_MS + (MANY - 1) * 1000


def test_corrected_batch_survives_a_restart():
    host = booted()
    host.append(batch(max_timestamp=-1))
    host.kill()
    host.boot()
    ((header, found),) = read_all(host.log)
    assert header.max_timestamp == NOW_MS + 2000
    assert [record.timestamp for record in iterate_records(found, limit_bytes=1 << 20)] == [
        NOW_MS,
        NOW_MS + 1000,
        NOW_MS + 2000,
    ]
    assert run(offset_of_max_timestamp(host.log)).offset == 2


# ---------------------------------------------------------------- what Java's consumers cannot read


def linked_lz4(records):
    import lz4.frame

    frame = lz4.frame.compress(records, block_linked=True)
    assert not frame[4] & 0x20, "the frame has independent blocks"
    return frame


def cut_zstd(cut_bytes):
    def compressed(records):
        import zstandard

        return zstandard.ZstdCompressor(write_checksum=True).compress(records)[:-cut_bytes]

    return compressed


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [(LZ4, linked_lz4), *((ZSTD, cut_zstd(count)) for count in (1, 2, 4))],
    ids=["linked-lz4", "zstd-1", "zstd-2", "zstd-4"],
)
def test_frames_that_stop_java_consumers_are_refused(codec, compressed):
    good = bytes(batch(4000))
    header = read_header(good)._replace(attributes=codec)
    inspection = Inspection(seal(header, compressed(good[61:])))
    contents = None
    while contents is None:
        contents = inspection.step()
    assert contents.fault.startswith(("lz4: the frame has linked", "zstd: the data ends within"))
