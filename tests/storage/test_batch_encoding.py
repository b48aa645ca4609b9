"""A batch in the codec of its topic: the same records under the header that Kafka would write."""

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, decompress
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import (
    HEADER_BYTES,
    Record,
    encode_batch,
    read_header,
    seal,
    verify_batch,
)
from barnabas.storage.batches.batch_contents import Inspection, TooMuchToLookHere
from barnabas.storage.batches.batch_encoding import Allowance, Encoding
from barnabas.storage.errors import CorruptMessage, InvalidRecord, RecordTooLarge
from barnabas.storage.log.batch_rules import BatchRules
from barnabas.storage.log.config import COMPACT, LogConfig

NOW_MS = 1_000_000
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
NAMES = ["uncompressed", "gzip", "snappy", "lz4", "zstd"]
LIMIT_BYTES = 1 << 20


def rules(**config):
    return BatchRules("t-0", LogConfig(**config), lambda: NOW_MS)


def batch(count=50, *, codec=NONE, key=b"key", **fields):
    records = [
        Record(at, NOW_MS + at, key, b"value %d" % (at % 7) * 9, (("h", b"x"),))
        for at in range(count)
    ]
    return encode_batch(records, compression=codec, **fields)


def contents_of(found, encoding, allowance=None):
    inspection = Inspection(found, encoding, allowance)
    while True:
        contents = inspection.step()
        if contents is not None:
            return contents


def records_of(found):
    header = read_header(found)
    return decompress(header.compression, found[HEADER_BYTES:], LIMIT_BYTES)


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", CODECS)
def test_a_batch_changes_its_codec_and_nothing_else(source, target):
    fields = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 90, "transactional": True}
    sent = batch(codec=source, **fields)
    asked = rules(compression_type=NAMES[target])
    encoding = asked.encoding_of(sent)
    if source == target:
        assert encoding is None
        asked.check(sent)
        return
    with pytest.raises(TooMuchToLookHere):
        asked.check(sent)
    with pytest.raises(TooMuchToLookHere):
        asked.inspect(sent)
    contents = contents_of(sent, encoding)
    stored = contents.encoded
    before, after = read_header(sent), verify_batch(stored)
    assert asked.check(stored, contents) == after
    assert after.compression == target
    assert bytes(records_of(stored)) == bytes(records_of(sent))
    assert after == before._replace(
        attributes=before.attributes ^ source ^ target,
        batch_length=len(stored) - 12,
        crc=after.crc,
    )


def test_batches_stay_as_they_are_where_producers_choose():
    for codec in CODECS:
        assert rules().encoding_of(batch(codec=codec)) is None


def test_computed_fields_are_in_the_new_header():
    sent = batch(3)
    claimed = read_header(sent)._replace(max_timestamp=5, attributes=0x08)
    contents = contents_of(seal(claimed, sent[HEADER_BYTES:]), Encoding(LZ4, 9, LIMIT_BYTES))
    header = read_header(contents.encoded)
    assert (header.max_timestamp, header.attributes) == (NOW_MS + 2, LZ4)
    assert list(iterate_records(contents.encoded, limit_bytes=LIMIT_BYTES)) == list(
        iterate_records(sent, limit_bytes=LIMIT_BYTES)
    )


@pytest.mark.parametrize("codec", CODECS)
def test_batch_too_large_in_its_new_codec_is_refused(codec):
    sent = batch(2000, codec=ZSTD if codec == NONE else NONE)
    asked = rules(compression_type=NAMES[codec])
    size = len(contents_of(sent, asked.encoding_of(sent)).encoded)
    fits = contents_of(sent, Encoding(codec, asked.encoding.level, size))
    assert len(fits.encoded) == size
    refused = contents_of(sent, Encoding(codec, asked.encoding.level, size - 1))
    assert refused.encoded is None
    assert not refused.fault
    with pytest.raises(RecordTooLarge, match=f"{NAMES[codec]} the batch is larger than max.mess"):
        asked.check(sent, refused)


def test_the_batches_of_a_request_share_one_allowance():
    sent = batch(codec=GZIP)
    encoding = Encoding(NONE, 0, LIMIT_BYTES)
    size = len(contents_of(sent, encoding).encoded) - HEADER_BYTES
    allowance = Allowance(size * 2)
    contents = [contents_of(sent, encoding, allowance) for _ in range(3)]
    assert [each.encoded is None for each in contents] == [False, False, True]
    assert "send fewer in one request" in contents[2].too_large


def test_a_batch_that_breaks_a_rule_is_refused_in_any_codec():
    keyless = batch(codec=GZIP, key=None)
    asked = rules(compression_type="lz4", cleanup_policy=frozenset((COMPACT,)))
    contents = contents_of(keyless, asked.encoding_of(keyless))
    with pytest.raises(InvalidRecord, match="without a key"):
        asked.check(contents.encoded, contents)
    sent = batch(3)
    garbage = seal(read_header(sent), sent[HEADER_BYTES:] + b"\2")
    contents = contents_of(garbage, asked.encoding)
    assert contents.encoded is None
    with pytest.raises(InvalidRecord):
        asked.check(garbage, contents)


def test_damage_is_not_sealed_under_a_new_checksum():
    damaged = bytearray(batch(30))
    damaged[-1] ^= 1
    asked = rules(compression_type="gzip")
    contents = contents_of(bytes(damaged), asked.encoding_of(damaged))
    assert contents.encoded is None
    with pytest.raises(CorruptMessage):
        asked.check(bytes(damaged), contents)


def test_a_header_that_lies_is_not_mended():
    asked = rules(compression_type="gzip", max_message_bytes=10_000)
    header = read_header(batch(3))
    for field, value in {"magic": 1, "batch_length": header.batch_length - 1}.items():
        lies = bytearray(batch(3))
        lies[:HEADER_BYTES] = seal(header._replace(**{field: value}), b"")[:HEADER_BYTES]
        if field == "magic":
            lies[16] = value
        else:
            lies[8:12] = value.to_bytes(4, "big")
        assert asked.encoding_of(lies) is None
    assert asked.encoding_of(batch(3)) == asked.encoding
    assert asked.encoding_of(batch(1000)) is None  # Larger than the limit as it came.
