"""Regular expressions of topics are RE2's: whole names, in steps, kept by bytes."""

from __future__ import annotations

import pytest

from barnabas.coordinator.decision import Decision, Timer
from barnabas.coordinator.groups.commands import TimerExpired
from barnabas.coordinator.groups.consumer import patterns, timers
from barnabas.coordinator.groups.consumer.patterns import (
    WORK_PER_STEP,
    CompiledPatterns,
    WholeMatch,
    matching_in_steps,
    problem_of,
)
from barnabas.protocol.patterns import MEMORY_MAX_BYTES, PATTERN_MAX_CHARACTERS, InvalidPattern
from tests.coordinator.groups.consumer_run import GROUP, Run
from tests.protocol.test_patterns import HEAVY


def in_steps(regexes, names):
    """Return the names that match, and the number of pauses."""
    steps = matching_in_steps(regexes, names)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, pauses
        pauses += 1


@pytest.mark.parametrize(
    ("regex", "names"),
    [
        ("a", {"a"}),
        ("a.*", {"a", "ab", "a.c"}),
        (r"a\.c", {"a.c"}),
        ("a|ab", {"a", "ab"}),
        ("^ab$", {"ab"}),
        ("(?i)AB", {"ab"}),
        ("[^a].*", {"b", "__consumer_offsets"}),
        ("", set()),
        (".*", {"a", "ab", "a.c", "b", "__consumer_offsets"}),
    ],
)
def test_whole_names_match(regex, names):
    assert problem_of(regex) is None
    everything = ["a", "ab", "a.c", "b", "__consumer_offsets"]
    assert in_steps([regex], everything) == ({regex: frozenset(names)}, 0)


@pytest.mark.parametrize(
    "regex",
    ["(", "*", "[", "a{2,1}", r"\1", "(?=a)", "(?<n>a)\\k<n>", "a{99999}", "\ud800"],
)
def test_text_that_is_no_expression_of_re2_matches_nothing(regex):
    assert problem_of(regex)
    assert in_steps([regex], ["a"]) == ({regex: frozenset()}, 0)


def test_the_length_is_limited():
    assert problem_of("a" * PATTERN_MAX_CHARACTERS) is None
    assert problem_of("a" * (PATTERN_MAX_CHARACTERS + 1)) is not None


def test_an_expression_too_big_for_the_memory_given_is_none():
    assert problem_of("((a{1000}){1000}){1000}")


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|a)*b", "(.*)*b", "(a|aa)+b", *HEAVY])
def test_heavy_expression_is_compared_a_few_names_at_a_time(regex):
    """Each of the first four takes Python's own ``re`` longer than the universe is old."""
    names = [f"{'a' * 240}{number:09}" for number in range(50)]
    found, pauses = in_steps([regex], names)
    assert found.keys() == {regex}
    if problem_of(regex) is None and regex in HEAVY:
        assert pauses >= 10


def test_many_topics_pause_even_with_an_expression_that_costs_little():
    names = [f"topic-{number}" for number in range(20_000)]
    found, pauses = in_steps(["topic-1.*"], names)
    assert len(found["topic-1.*"]) == 11_111
    assert pauses >= len(names) * 500 // WORK_PER_STEP


def test_compiled_expressions_are_kept_by_bytes():
    kept = CompiledPatterns(8 * MEMORY_MAX_BYTES)
    for number in range(100):
        kept.get(f"topic-{number}-.*")
        assert kept.size_bytes <= 8 * MEMORY_MAX_BYTES
    assert 1 < len(kept) < 8
    assert "topic-99-.*" in kept
    assert "topic-0-.*" not in kept
    kept.get("topic-98-.*")
    kept.get("(?:" + r"\pL" * 200 + "){0}")  # Far more to keep than its program.
    assert len(kept) == 1


def test_refused_expressions_are_not_kept():
    kept = CompiledPatterns(MEMORY_MAX_BYTES)
    with pytest.raises(InvalidPattern):
        kept.get("(")
    assert not len(kept)
    assert not kept.size_bytes


def test_whole_match_checks_texts_and_returns_the_work():
    matches = WholeMatch("a.*")
    assert matches("ab")
    assert not matches("ba")
    assert matches.work("a" * 1_000) > matches.work("a")


def test_topics_that_change_between_two_steps_are_compared_again(monkeypatch):
    run = Run()
    run.do(run.join("m", None, subscribed_topic_regex="t|x.*"))
    expired = TimerExpired(Timer(GROUP, timers.REGEX), run.topics)
    at_once = run.shard.decide(expired, run.now)
    assert at_once.steps is None
    monkeypatch.setattr(patterns, "WORK_PER_STEP", 1)
    steps = run.shard.decide(expired, run.now).steps
    run.topics.create("x1", 1)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        decision = done.value
    assert Decision(None, decision.records, decision.changes).records[0] == at_once.records[0]
    (matched,) = decision.changes
    assert matched.version < run.topics.version()
    for change in decision.changes:
        run.shard.change(change)
    effects = run.do(run.obedient("m")).effects
    assert any(getattr(each, "timer", None) == expired.timer for each in effects)
