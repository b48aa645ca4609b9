"""Stories of findings and their usual causes, by requests that a wiretap would have seen."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.proving import calls as names
from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.calls import Call
from barnabas.broker.cli.proving.causes import causes_of
from barnabas.broker.cli.proving.judge import Finding, Input, Output
from barnabas.broker.cli.proving.story import LINES_MAX, story_of
from barnabas.broker.cli.proving.timeline import Event

SOURCE = Input("a", 0, 5, b"k")


def read(at_s: float, process: str = "1", isolation: int = 1) -> Call:
    return Call(names.FETCH, process, at_s, is_answered=True, isolation=isolation, read={0: (0, 9)})


def write(at_s: float, offset: int, process: str = "1", identity: str = "t-1", **more) -> Call:
    done = {"is_answered": True, "written": {0: (offset, offset)}} | more
    return Call(
        names.PRODUCE, process, at_s, transactional_id=identity, is_idempotent=bool(identity),
        acks=-1 if identity else 1, counts={0: 1}, **done,
    )  # fmt: skip


def end(at_s: float, process: str = "1", identity: str = "t-1") -> Call:
    return Call(names.END, process, at_s, is_answered=True, transactional_id=identity, commits=True)


def begin(at_s: float, process: str = "1", identity: str = "t-1") -> Call:
    return Call(names.INIT, process, at_s, is_answered=True, transactional_id=identity)


def commit(at_s: float, process: str = "1", api: str = names.COMMIT, generation: int = 3) -> Call:
    return Call(api, process, at_s, is_answered=True, generation=generation, offsets={0: 10})


def names_of(kind: str, *calls: Call) -> list[str]:
    return [each.name for each in causes_of(kind, calls)]


def test_right_program_has_no_cause():
    in_transaction = names.COMMIT_IN_TRANSACTION
    calls = [begin(0), read(1), write(2, 0), commit(3, api=in_transaction), end(4), begin(5, "1b")]
    for kind in judge.MEANINGS:
        assert names_of(kind, *calls) == []


def test_program_with_an_id_for_each_partition_has_no_cause():
    """The partition of t-2 has moved from one instance to the other; both use no generation."""
    in_transaction = names.COMMIT_IN_TRANSACTION
    calls = [begin(0), begin(1, "1", "t-2"), begin(2, "2", "t-2"), write(3, 0, "2", "t-2")]
    calls += [commit(4, "2", in_transaction, generation=-1), begin(5, "1b")]
    for kind in judge.MEANINGS:
        assert names_of(kind, *calls) == []


@pytest.mark.parametrize(
    ("calls", "kind", "expected"),
    [
        ([read(1, isolation=0)], judge.ABORTED, "read-uncommitted"),
        ([read(1), write(2, 0), end(3), commit(4)], judge.TWICE, "offsets-outside"),
        (
            [*[read(n) for n in range(4)], *[end(n) for n in range(4)], commit(4)],
            judge.LOST,
            "auto-commit",
        ),
        ([read(1), write(2, 0, identity=""), commit(3)], judge.TWICE, "acks-without-idempotence"),
        ([begin(0), begin(1, "1b", "t-2")], judge.TWICE, "no-fencing"),
        (
            [begin(0), commit(1, api=names.COMMIT_IN_TRANSACTION, generation=-1)],
            judge.TWICE,
            "no-fencing",
        ),
        ([begin(0), begin(1, "2")], judge.LOST, "shared-transactional-id"),
        (
            [write(1, 0, is_answered=True, errors=("KAFKA_STORAGE_ERROR",), written={}), end(2)],
            judge.LOST,
            "unchecked-send",
        ),
        (
            [write(1, 0, identity="")],
            judge.LOST,
            "acks-without-idempotence",
        ),
    ],
)
def test_usual_cause_comes_first(calls, kind, expected):
    assert names_of(kind, *calls)[0] == expected


def test_first_inputs_that_were_never_read_are_a_cause_of_lost_ones():
    late = Call(names.FETCH, "1", 1, is_answered=True, read={0: (4, 9)})
    assert names_of(judge.LOST, late) == ["late-start"]
    assert names_of(judge.TWICE, late) == []
    assert names_of(judge.LOST, late, read(2)) == []


def test_story_leaves_out_later_commits_of_processes_without_a_part_in_it():
    finding = Finding(judge.TWICE, "", SOURCE, (Output(0, 7, ("a",), ""),))
    calls = [read(1), commit(2, "2"), write(3, 7), commit(4), commit(5, "2"), commit(60, "3")]
    story = story_of(finding, calls, [], "orders", "invoices")
    told = [(each.at_s, each.subject) for each in story.events]
    assert told == [(1, "1"), (2, "2"), (3, "1"), (4, "1")]


def test_requests_of_the_command_itself_count_for_nothing():
    assert names_of(judge.TWICE, read(1, ""), write(2, 0, ""), commit(3, "")) == []


def test_story_of_two_outputs_is_in_the_order_of_time():
    calls = [
        Call(names.JOIN, "1", 0.5, is_answered=True, group="g", generation=1),
        read(1.0),
        write(1.1, 7),
        end(1.2),
        Call(names.JOIN, "1b", 1.6, is_answered=True, group="g", generation=2),
        read(2.0, "1b"),
        write(2.1, 8, "1b", producer_id=4, epoch=2),
        end(2.2, "1b"),
        commit(2.3, "1b"),
    ]
    events = [
        Event(1.25, "1", "killed"),
        Event(1.5, "1b", "started"),
        Event(1.3, "2", "paused"),
        Event(1.4, "", "the broker was killed"),
        Event(90.0, "1b", "killed"),
    ]
    finding = Finding(judge.TWICE, "twice", SOURCE, (Output(0, 7, ("a",)), Output(0, 8, ("a",))))
    story = story_of(finding, calls, events, "orders", "invoices")
    assert [f"{each.subject}: {each.text}" for each in story.events] == [
        "1: joined group g, generation 1",
        "1: read the input at orders-0 offset 5",
        (
            "1: wrote the output at invoices-0 offset 7, in the transaction of t-1 "
            "(producer -1 epoch -1)"
        ),
        "1: requested to commit the transaction of t-1: done",
        "1: killed",
        ": the broker was killed",
        "1b: started",
        "1b: joined group g, generation 2",
        "1b: read the input at orders-0 offset 5",
        (
            "1b: wrote the output at invoices-0 offset 8, in the transaction of t-1 "
            "(producer 4 epoch 2)"
        ),
        "1b: requested to commit the transaction of t-1: done",
        (
            "1b: committed offset 10 of orders-0 by OffsetCommit, outside of a transaction, "
            "generation 3: done"
        ),
    ]
    assert story.causes[0].name == "offsets-outside"


def test_story_has_writes_without_a_response_and_errors():
    calls = [
        read(1.0),
        write(1.1, 7, identity=""),
        Call(names.END, "1", 1.2, is_answered=True, errors=("PRODUCER_FENCED",)),
    ]
    finding = Finding(judge.TWICE, "twice", SOURCE, (Output(0, 7, ("a",)),))
    texts = [each.text for each in story_of(finding, calls, [], "orders", "invoices").events]
    assert texts == [
        "read the input at orders-0 offset 5",
        "wrote the output at invoices-0 offset 7, outside of a transaction, acks=1, not idempotent",
        "EndTxn got PRODUCER_FENCED",
    ]


def test_long_story_keeps_the_decisive_requests_and_what_is_near():
    later = [read(float(number), "1b") for number in range(100, 100 + 3 * LINES_MAX)]
    before = [read(float(number)) for number in range(3 * LINES_MAX)]
    calls = [
        *before,
        write(60.1, 7),
        Call(names.END, "1", 60.2, transactional_id="t-1", commits=True),
        *later,
        write(300.0, 8, "1b"),
        commit(300.1, "1b"),
    ]
    events = [Event(60.3, "1", "killed"), Event(4.0, "1", "paused"), Event(9.0, "", "broker")]
    finding = Finding(judge.TWICE, "twice", SOURCE, (Output(0, 7, ("a",)), Output(0, 8, ("a",))))
    told = story_of(finding, calls, events, "orders", "invoices").events
    assert len(told) == LINES_MAX + 1
    texts = {round(each.at_s, 1): each.text for each in told}
    assert texts[60.1].startswith("wrote the output at invoices-0 offset 7")
    assert texts[60.2] == "requested to commit the transaction of t-1: no response"
    assert texts[60.3] == "killed"
    assert texts[300.0].startswith("wrote the output at invoices-0 offset 8")
    assert told[-2].text.startswith("committed offset 10 of orders-0")
    assert texts[60.0] == "read the input at orders-0 offset 5"
    assert 4.0 not in texts
    assert told[-1].text == f"{6 * LINES_MAX + 7 - LINES_MAX} less decisive events are left out"


def test_story_of_a_lost_input_has_the_kill_after_its_commit():
    calls = [read(1.0), commit(2.0)]
    events = [Event(0.1, "1", "started"), Event(6.0, "1", "killed"), Event(7.0, "1", "late")]
    found = story_of(Finding(judge.LOST, "lost", SOURCE), calls, events, "orders", "invoices")
    assert [each.text for each in found.events][-1] == "killed"
    assert len(found.events) == 3


def test_story_leaves_out_later_commits_of_processes_that_never_read_the_input():
    calls = [read(1.0), read(1.5, "2"), commit(2.0), commit(3.0, "2"), commit(4.0, "3")]
    found = story_of(Finding(judge.LOST, "lost", SOURCE), calls, [], "orders", "invoices")
    commits = [each.subject for each in found.events if each.text.startswith("committed")]
    assert commits == ["1", "2"]


def test_story_has_the_errors_nearest_to_the_decisive_request():
    errors = [
        Call(names.END, "1", 10 + number / 100, is_answered=True, errors=(f"ERROR_{number}",))
        for number in range(30)
    ]
    calls = [read(9.9), *errors[:20], write(10.2, 7, identity=""), *errors[20:]]
    finding = Finding(judge.TWICE, "twice", SOURCE, (Output(0, 7, ("a",)),))
    told = [each.text for each in story_of(finding, calls, [], "orders", "invoices").events]
    assert [each for each in told if "ERROR" in each] == [
        f"EndTxn got ERROR_{number}" for number in range(17, 23)
    ]


def test_finding_without_an_input_has_no_timeline():
    finding = Finding(judge.UNEXPLAINED, "what?", None, (Output(3, 1, ()),))
    assert story_of(finding, [read(1.0)], [Event(1, "", "x")], "orders", "invoices").events == []
