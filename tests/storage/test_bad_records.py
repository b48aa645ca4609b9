"""The bad records of a refused batch: all that a look at each record finds, and no others."""

from random import Random

import pytest

from barnabas.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import HEADER_BYTES, Record, encode_batch, read_header, seal
from barnabas.storage.batches import bad_records
from barnabas.storage.batches.bad_records import BadRecords, NamingRoom
from barnabas.storage.errors import InvalidRecord, InvalidTimestamp
from barnabas.storage.log.batch_rules import BatchRules
from barnabas.storage.log.config import COMPACT, LOG_APPEND_TIME, LogConfig
from barnabas.storage.record_rule import RecordRule

NOW_MS = 1_000_000
HOUR_MS = 3_600_000
LIMIT_BYTES = 1 << 24
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
RULE = RecordRule("t-0", needs_key=True, earliest_ms=500, latest_ms=2000, is_stamped=False)


def walked(batch, rule=RULE, room=None):
    task = BadRecords(batch, rule, room or NamingRoom())
    steps = 0
    while (found := task.step()) is None:
        steps += 1
    return found, steps


def expected(batch, rule=RULE):
    """Return the same from whole records: index, and whether its time is the reason."""
    found = []
    for at, record in enumerate(iterate_records(batch, limit_bytes=LIMIT_BYTES)):
        if record.key is None:
            found.append((at, False))
        elif record.timestamp != -1 and not rule.earliest_ms <= record.timestamp <= rule.latest_ms:
            found.append((at, True))
    return found


def random_batch(chance, codec):
    records = []
    for at in range(chance.choice((1, 3, 300))):
        key = chance.choice((None, b"", b"k", chance.randbytes(chance.choice((60, 9000)))))
        value = chance.choice((None, b"", b"v" * 100, chance.randbytes(chance.choice((1, 20_000)))))
        time_ms = chance.choice((-1, -5, 0, 499, 500, 1000, 2000, 2001, 1 << 60))
        headers = (("h", b"x" * chance.choice((1, 9000))),) * chance.choice((0, 0, 1))
        records.append(Record(at, time_ms, key, value, headers))
    return encode_batch(records, compression=codec)


@pytest.mark.parametrize("codec", CODECS)
def test_walk_finds_what_whole_records_show(codec):
    chance = Random(codec)
    found = 0
    for _ in range(12):
        batch = random_batch(chance, codec)
        named = walked(batch)[0]
        assert [(each.batch_index, each.is_out_of_time) for each in named] == expected(batch)
        found += len(expected(batch))
    assert found > 100


def test_times_do_not_matter_where_the_broker_gives_them():
    batch = random_batch(Random(3), NONE)
    rule = RULE._replace(is_stamped=True, needs_key=False)
    assert walked(batch, rule)[0] == []


def keyless(count, codec=NONE):
    return encode_batch([Record(at, 1000, None, b"v") for at in range(count)], compression=codec)


def test_a_large_batch_takes_many_short_steps():
    batch = keyless(20_000, ZSTD)
    rule = RULE._replace(needs_key=False)
    found, steps = walked(batch, rule)
    assert found == []
    assert steps > 20_000 * 8 // bad_records.STEP_BYTES


def test_all_batches_of_a_request_share_the_records_that_are_named(monkeypatch):
    monkeypatch.setattr(bad_records, "LISTED_RECORDS_MAX", 5)
    room = NamingRoom()
    counts = [len(walked(keyless(count), room=room)[0]) for count in (3, 4, 2)]
    assert counts == [3, 2, 0]


def test_the_walk_ends_at_its_limit(monkeypatch):
    monkeypatch.setattr(bad_records, "WALKED_RECORDS_MAX", 1500)
    records = [Record(at, 1000, b"k" if at < 5000 else None, b"v") for at in range(9000)]
    found, steps = walked(encode_batch(records))
    assert (found, steps) == ([], 1)


@pytest.mark.parametrize("codec", CODECS)
def test_nothing_is_named_of_what_does_not_add_up(codec):
    header = read_header(keyless(3, codec))
    for body in (b"\xff" * 200, b"\1" * 30):
        assert walked(seal(header, compress(codec, body)))[0] == []
    if codec:
        assert walked(seal(header, b"no such thing"))[0] == []
    cut = keyless(3)
    walked(seal(read_header(cut), cut[HEADER_BYTES:-3]))


@pytest.mark.parametrize(
    ("config", "times", "error", "wanted"),
    [
        ({"cleanup_policy": frozenset((COMPACT,))}, [NOW_MS] * 3, InvalidRecord, [0, 1, 2]),
        ({"timestamp_before_max_ms": 10}, [NOW_MS, NOW_MS - 11, -1], InvalidTimestamp, [1]),
        ({"timestamp_before_max_ms": 10}, [NOW_MS, -5, -1], InvalidTimestamp, [1]),
        ({}, [NOW_MS + HOUR_MS, NOW_MS + HOUR_MS + 1, 0], InvalidTimestamp, [1]),
    ],
)
def test_a_refusal_has_the_rule_by_which_records_are_named(config, times, error, wanted):
    records = [Record(at, time_ms, None, b"v") for at, time_ms in enumerate(times)]
    batch = encode_batch(records, compression=LZ4)
    with pytest.raises(error) as caught:
        BatchRules("t-0", LogConfig(**config), lambda: NOW_MS).check(batch)
    assert [each.batch_index for each in walked(batch, caught.value.rule)[0]] == wanted
    assert caught.value.keyless == (3 if error is InvalidRecord else 0)


def test_other_refusals_have_no_rule():
    rules = BatchRules("t-0", LogConfig(timestamp_type=LOG_APPEND_TIME), lambda: NOW_MS)
    good = encode_batch([Record(0, 0, None, b"v")])
    with pytest.raises(InvalidRecord) as caught:
        rules.check(seal(read_header(good), good[HEADER_BYTES:] + b"\0"))
    assert caught.value.rule is None
