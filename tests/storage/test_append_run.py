"""Batches appended together are stored, judged and read as if each had come alone."""

import random

import pytest

from barnabas.protocol.records import iterate_batches, read_producer
from barnabas.storage.errors import Rejected
from barnabas.storage.log.append_run import append_run
from barnabas.storage.log.config import LOG_APPEND_TIME, LogConfig
from barnabas.storage.log.memory_read import read_memory
from tests.seeds import SEED
from tests.storage.stores import NOW_MS, Host, batch, from_producer, read_all

RUNS = 40
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, max_message_bytes=600)


def random_batch(chosen):
    """Mostly what a producer sends next; sometimes anything else."""
    count = chosen.choice((1, 1, 2, 5))
    more = {
        "value": b"v" * chosen.choice((1, 20, 100)),
        "timestamp": NOW_MS + chosen.choice((-1, 0, 0, 1, 50)),
        "compression": chosen.choice((0, 0, 0, 4)),
    }
    if chosen.random() < 0.5:
        producer = chosen.randrange(2)
        sequence = chosen.choice((0, 0, 1, 2, 5))
        transactional = chosen.random() < 0.4
        data = from_producer(producer, sequence, count, transactional=transactional, **more)
    else:
        data = batch(count, **more)
    if chosen.random() < 0.05:
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    return bytes(data)


def append_alone(log, batches):
    """Return the results for a client: a base offset, or the refusal's name."""
    answers = []
    for each in batches:
        try:
            answers.append(log.append(memoryview(bytearray(each))).base_offset)
        except Rejected as refused:
            answers.append(type(refused).__name__)
    return answers


def append_together(log, batches):
    answers = []
    while len(answers) < len(batches):
        rest = batches[len(answers) :]
        offsets, group = append_run(log, rest, read_producer(rest[0])[0])
        assert bool(offsets) == (group is not None)
        answers += offsets or append_alone(log, rest[:1])
    return answers


def state(host):
    log = host.log
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [path for suffix in suffixes for path in host.files(suffix, "topic-0")]
    contents = {path: host.disk.read_file(path) for path in files}
    return read_all(log), log.producers.producers(), log.next_offset, contents


@pytest.mark.parametrize("number", range(RUNS))
def test_together_is_like_alone(number):
    chosen = random.Random(SEED + number)
    alone, together = Host(CONFIG), Host(CONFIG)
    for host in (alone, together):
        host.boot()
    for _ in range(20):
        batches = [random_batch(chosen) for _ in range(chosen.choice((1, 2, 5, 12)))]
        assert append_alone(alone.log, batches) == append_together(together.log, batches)
        if chosen.random() < 0.5:
            for host in (alone, together):
                host.step()
        if chosen.random() < 0.3:
            producer, commit = chosen.randrange(2), chosen.random() < 0.5
            for host in (alone, together):
                host.marker(producer, commit=commit)
        if chosen.random() < 0.1:
            for host in (alone, together):
                host.step()
                host.kill()
                host.boot()
    for host in (alone, together):
        host.step()
        host.checkpoint()
    assert state(alone) == state(together), f"seed {SEED}"


def test_append_run_takes_only_batches_of_the_open_transaction():
    host = Host()
    host.boot()
    host.append(batch())
    log = host.log
    run = [bytes(from_producer(7, number, transactional=True)) for number in range(1, 4)]
    assert append_run(log, run, 7) == ([], None)
    host.append(from_producer(7, 0, transactional=True))
    assert append_run(log, run) == ([], None), "the request names no transactional id"
    assert append_run(log, run, 8) == ([], None), "it names another one"
    offsets, _ = append_run(log, [*run[:2], bytes(from_producer(7, 3))], 7)
    assert offsets == [2, 3], "a plain batch beside the open transaction is not taken (P4)"
    host.marker(7, commit=True)
    assert append_run(log, run[2:], 7) == ([], None)


def test_outside_of_transactions_one_producer_may_be_the_only_one():
    host = Host()
    host.boot()
    host.append(batch(), batch())  # The first batches of a segment get extra checks.
    log = host.log
    mine = [bytes(from_producer(7, number)) for number in range(3)]
    foreign = bytes(from_producer(8, 0))
    assert append_run(log, [foreign], plain_producer_id=7) == ([], None)
    assert append_run(log, [foreign], plain_producer_id=-1) == ([], None)
    assert append_run(log, [*mine, foreign, bytes(batch())], plain_producer_id=7)[0] == [2, 3, 4]
    assert append_run(log, [bytes(batch()), foreign], plain_producer_id=7)[0] == [5]
    assert append_run(log, [foreign, bytes(from_producer(9, 0))])[0] == [6, 7]


def test_a_topic_that_stamps_takes_them_one_by_one():
    host = Host(LogConfig(timestamp_type=LOG_APPEND_TIME))
    host.boot()
    host.append(batch())
    assert append_run(host.log, [bytes(batch())]) == ([], None)


def test_a_run_is_read_from_any_of_its_batches():
    host = Host()
    host.boot()
    host.append(batch(), batch())  # The first batches of a segment get extra checks.
    run = [bytes(batch(chosen, value=b"v" * 10 * chosen)) for chosen in (1, 3, 2, 5)]
    append_run(host.log, run)
    host.log.append(batch(2))
    append_run(host.log, run)
    log = host.log
    whole = read_memory(log.unflushed, 2, log.next_offset, 1 << 20)
    batches = [
        (header, bytes(chunk[at : at + header.size]))
        for chunk in whole.chunks
        for at, header in iterate_batches(chunk)
    ]
    assert [header.base_offset for header, _ in batches] == [2, 3, 6, 8, 13, 15, 16, 19, 21]
    for offset in range(2, log.next_offset):
        following = [data for header, data in batches if header.next_offset > offset]
        for max_bytes in (1, 80, 200, 300, 500, 1 << 20):
            wanted, end = following[:1], 1
            while end < len(following) and len(b"".join(following[: end + 1])) <= max_bytes:
                end += 1
            wanted = following[:end]
            found = read_memory(log.unflushed, offset, log.next_offset, max_bytes)
            assert b"".join(found.chunks) == b"".join(wanted)
            assert found.size_bytes == len(b"".join(wanted))
            last = [header for header, data in batches if header.next_offset > offset][end - 1]
            assert found.upper_offset == last.next_offset
