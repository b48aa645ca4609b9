import json

import pytest

from barnabas.spark_connector.cluster.incarnation import UNKNOWN, Home, Incarnation
from barnabas.spark_connector.errors import CheckpointMismatch, SinkError
from barnabas.spark_connector.ledger.entries import (
    HISTORY_MAX,
    NO_ENTRY,
    Begun,
    Entry,
    Listed,
    decode,
    encode,
    key_of,
    query_of,
)
from barnabas.spark_connector.ledger.prepared import (
    Prepared,
    query_tag,
    read_task_transactional_id,
    task_transactional_id,
)
from barnabas.spark_connector.sinks.two_phase import written


def after(batches):
    entry = NO_ENTRY
    for batch_id in range(batches):
        entry = entry.followed_by(
            batch_id, f"f{batch_id}", (), is_pinned=False, record_count=10 * batch_id
        )
    return entry


def test_an_entry_comes_back_as_it_was_written():
    entry = Entry(7, "f", (Listed("spark.s.7.0.1.n", 5, 3),), True, ("e", "d"))
    assert decode(encode(entry)) == entry
    assert decode(encode(NO_ENTRY)) == NO_ENTRY
    home = Home("cluster", {"in": "id-1"})
    entry = entry._replace(incarnation=Incarnation(home, Home("other", {"out": "id-2"})))
    assert decode(encode(entry)) == entry
    entry = entry._replace(begun=Begun(8, "g"))
    assert decode(encode(entry)) == entry
    following = entry.followed_by(8, "g", (), is_pinned=True, record_count=3)
    assert following.incarnation == entry.incarnation
    assert following.begun == Begun()
    assert decode(encode(following)) == following
    assert entry.before().incarnation == entry.incarnation
    assert json.loads(encode(entry))["version"] == 2


def test_a_later_version_is_not_guessed_at():
    value = encode(NO_ENTRY).replace(b'"version":2', b'"version":3')
    with pytest.raises(SinkError, match="version 3"):
        decode(value)


def test_an_entry_of_the_version_before_does_not_say_which_topics_it_is_about():
    value = (
        b'{"version":1,"batchId":7,"fingerprint":"f","transactions":[["t",5,3]],"pinned":true,'
        b'"history":["e"]}'
    )
    assert decode(value) == Entry(7, "f", (Listed("t", 5, 3),), True, ("e",), UNKNOWN)


def test_entries_say_how_many_records_a_batch_has_and_the_ones_before():
    entry = after(5)
    assert [entry.records_of(each) for each in (-1, 0, 3, 4, 5)] == [None, 0, 30, 40, None]
    long = after(HISTORY_MAX + 50)
    assert len(long.record_counts) == HISTORY_MAX + 1
    assert (long.records_of(49), long.records_of(48)) == (490, None)
    gap = after(3).followed_by(5, "f", (), is_pinned=False, record_count=7)
    assert [gap.records_of(each) for each in range(6)] == [0, 10, 20, None, None, 7]


def test_an_entry_without_counts_is_read_and_followed_by_one_with_them():
    """Versions of the sink before wrote such entries, and ignore the counts of later ones."""
    fields = json.loads(encode(after(2)))
    del fields["recordCounts"]
    entry = decode(json.dumps(fields).encode())
    assert (entry.batch_id, entry.knows(0), entry.records_of(1)) == (1, "f0", None)
    following = entry.followed_by(2, "f2", (), is_pinned=False, record_count=0)
    assert following.record_counts == (0,)


TOO_DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"version":1}',
        b'{"version":2}',
        b"\xff",
        pytest.param(TOO_DEEP, id="too-deep"),
    ],
)
def test_rubbish_in_the_ledger_is_an_error_in_words(value):
    with pytest.raises(SinkError, match="cannot be read"):
        decode(value)


def test_keys():
    assert query_of(key_of("sink", "query")) == ("sink", "query")
    for other in (None, b"", b"x", b"[1]", b"{}", b"5", b"\xff", TOO_DEEP):
        assert query_of(other) == ("", "")


def test_a_batch_must_be_the_one_that_was_decided():
    entry = after(5)
    for batch_id in range(5):
        entry.check(batch_id, f"f{batch_id}")
        with pytest.raises(CheckpointMismatch, match=f"Batch {batch_id} ends at other offsets"):
            entry.check(batch_id, "another")
    entry.check(3, "")  # The end of the batch is unknown.
    entry.check(9, "f9")


def test_history_of_batches_is_bounded():
    entry = after(HISTORY_MAX + 50)
    assert len(entry.history) == HISTORY_MAX
    assert entry.knows(49) == "f49"
    assert not entry.knows(48)
    assert not entry.knows(HISTORY_MAX + 50)


def test_a_batch_of_long_ago_is_not_taken_for_the_one_that_was_written_then():
    entry = after(HISTORY_MAX + 50)
    entry.check(49, "f49")
    with pytest.raises(CheckpointMismatch, match="Batch 48 is too far behind batch 149"):
        entry.check(48, "f48")
    entry.check(48, "")  # The end is unknown, with or without the forgotten batches.


def test_gaps_and_unknown_fingerprints_are_not_compared():
    entry = after(3).followed_by(10, "f10", (), is_pinned=False, record_count=5)
    assert [entry.knows(each) for each in (10, 9, 3, 2, 0)] == ["f10", "", "", "f2", "f0"]


def test_the_entry_before_is_as_it_was():
    assert after(5).before() == after(4)
    assert after(1).before() == NO_ENTRY


def test_the_id_of_a_tasks_transaction_says_whose_it_is():
    key = task_transactional_id("my-sink", "query", 12, 3, 44, "abc")
    assert key == f"spark.my-sink.12.3.44.{query_tag('query')}abc"
    task = read_task_transactional_id("my-sink", key)
    assert task is not None
    assert (task.batch_id, task.query_tag) == (12, query_tag("query"))


@pytest.mark.parametrize(
    "other", ["spark.my-sink", "spark.my-sink2.1.2.3.n", "spark.my-sink.x.2.3.n", "spark.my-sink.1"]
)
def test_other_ids_are_nobodys_task(other):
    assert read_task_transactional_id("my-sink", other) is None


def test_tasks_without_rows_have_no_transaction():
    message = Prepared("id", 5, 0, 10, 1, "q")
    assert written([None, message, Prepared("none", -1, -1, 0, 1, "q")]) == [message]
