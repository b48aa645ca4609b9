"""Operations of members from what they write while they run."""

from __future__ import annotations

import json

from tests.groups.tools import CLOCK_NS, Console, Journalled, Tail, Verifiable
from tests.history.model import ASSIGNED, COMMIT, COMMITTED, OK, OffsetCommit, Read
from tests.workload.journal import file_journal

READ = Read("t", 0, 5, "v")


def test_a_journal_is_read_while_it_grows(tmp_path):
    path = tmp_path / "events"
    journal, tail = file_journal(str(path), "a"), Tail(path, Journalled("a", "g"))
    journal.moved([("t", 0)], ASSIGNED, "g")
    assert [each.moved for each in tail.operations()] == [(("t", 0),)]
    journal.poll([READ], COMMITTED, "g")
    number = journal.begin(COMMIT, metadata="a#1")
    journal.offsets(number, [OffsetCommit("g", "t", 0, 6)])
    assert tail.operations()[2].outcome != OK
    journal.finish(number, OK)
    with path.open("a") as file:
        file.write("[1, half a li")
    _, second, third = tail.operations()
    assert (second.reads, second.group) == ((READ,), "g")
    assert (third.commits, third.metadata) == ((OffsetCommit("g", "t", 0, 6),), "a#1")
    assert third.outcome == OK


def test_the_verifiable_consumer_is_understood():
    place = {"topic": "t", "partition": 0}
    said = [
        {"timestamp": 7, "name": "partitions_assigned", "partitions": [place]},
        {"timestamp": 8, "name": "record_data", "value": "v", "offset": 5, **place},
        {"timestamp": 9, "name": "offsets_committed", "offsets": [place | {"offset": 6}]},
    ]
    said[2]["success"] = True
    source = Verifiable("a", "g")
    for line in ["something else", *map(json.dumps, said)]:
        source.take(line)
    first, second, third = source.found
    assert (first.invoked_ns, first.moved) == (7_000_000 + CLOCK_NS, (("t", 0),))
    assert second.reads == (READ,)
    assert third.completed_ns == 10_000_000 + CLOCK_NS
    assert third.commits == (OffsetCommit("g", "t", 0, 6),)


def test_the_console_consumer_is_understood():
    source = Console("a", "g")
    source.take("Partition:3\tOffset:17\tt\tvalue 1")
    source.take("Processed a total of 5 messages")
    (operation,) = source.found
    assert operation.reads == (Read("t", 3, 17, "value 1"),)
