"""Regular expressions of topics are RE2's: whole names, linear time, no surprises."""

from __future__ import annotations

import time

import pytest

from barnabas.coordinator.groups.consumer.patterns import (
    PATTERN_MAX_CHARACTERS,
    matching,
    problem_of,
)


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
    assert matching([regex], everything) == {regex: frozenset(names)}


@pytest.mark.parametrize(
    "regex",
    ["(", "*", "[", "a{2,1}", r"\1", "(?=a)", "(?<n>a)\\k<n>", "a{99999}", "\ud800"],
)
def test_what_is_no_expression_of_re2(regex):
    assert problem_of(regex)
    assert matching([regex], ["a"]) == {regex: frozenset()}


def test_the_length_is_limited():
    assert problem_of("a" * PATTERN_MAX_CHARACTERS) is None
    assert problem_of("a" * (PATTERN_MAX_CHARACTERS + 1)) is not None


def test_an_expression_too_big_for_the_memory_given_is_none():
    assert problem_of("((a{1000}){1000}){1000}")


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|a)*b", "(.*)*b", "(a|aa)+b"])
def test_no_expression_takes_more_than_linear_time(regex):
    """With Python's own ``re`` each of these takes longer than the universe is old."""
    started = time.thread_time()
    assert matching([regex], ["a" * 249]) == {regex: frozenset()}
    assert time.thread_time() - started < 5
