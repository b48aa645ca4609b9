"""Expressions of clients cost little to compile, and keep little memory."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest
import re2

from barnabas.protocol.patterns import (
    PATTERN_MAX_CHARACTERS,
    WEIGHT_MAX,
    InvalidPattern,
    bytes_of,
    compile_pattern,
    match_work,
    weight_of,
)
from tests.products import case
from tests.seeds import SEED

COMPILE_SECONDS_MAX = 0.2
"""Processor time. 0.03 s were seen; RE2's default memory allows 9 s and more."""
WORK_SECONDS_MAX = 0.1
"""Processor time of a million steps. 4 ms were seen."""

UNITS = (
    "x{0,1000}",
    "x{0,100}",
    "x{0,10}",
    "[a-z]{0,1000}",
    "[a-z]{0,100}",
    ".{0,1000}",
    "(?:x*){1000}",
    "(?:(?:x?)*){1000}",
    "(?:x{0,31}){0,31}",
    "(?:(?:x{0,10}){0,10}){0,10}",
    "(?:x|y){1000}",
    r"\pL",
    r"\PL",
    r"[^\pL]",
    r"(?i:\PL)",
    r"[\pL\pN\pS]",
    r"\pL{0,1000}",
    "(?i:[a-\U0010ffff])",
    "(?i:k)",
    r"\w",
    "[^a]",
    "(a?)",
    "a|",
)
HEAVY = tuple(
    unit * count for unit in ("(?:(?:x?)*){1000}", "(?:a{0,31}){0,31}") for count in (3, 5)
)
"""RE2 has no room for the fast automaton of these."""


def of_most(unit, before="", after=""):
    """Repeat a unit as often as an expression may."""
    count = 1
    while True:
        longer = before + unit * (count + 1) + after
        if len(longer) > PATTERN_MAX_CHARACTERS or weight_of(longer) > WEIGHT_MAX:
            return before + unit * count + after
        count += 1


def largest_that_compiles(unit):
    """Repeat a unit as often as RE2 has memory for; halve the distance each time."""
    least, most = 0, of_most(unit).count(unit)
    while least < most:
        middle = (least + most + 1) // 2
        try:
            compile_pattern(unit * middle)
        except InvalidPattern:
            most = middle - 1
        else:
            least = middle
    return unit * least


def seconds_to_compile(pattern):
    """Return the processor time that an expression takes, whether it is taken or not."""
    begun = time.thread_time()
    with suppress(InvalidPattern):
        compile_pattern(pattern)
    return time.thread_time() - begun


DRAWN = random.Random(SEED).sample(UNITS, len(UNITS) // 3)


@pytest.mark.parametrize("unit", [case(each, in_test=each in DRAWN) for each in UNITS])
def test_no_expression_takes_long_to_compile(unit):
    patterns = (
        of_most(unit),
        unit * (PATTERN_MAX_CHARACTERS // len(unit)),
        of_most(unit, "(?:", "){0}"),
        of_most(unit, "(?i)(?:", "){0}"),
        largest_that_compiles(unit),
    )
    for pattern in patterns:
        assert seconds_to_compile(pattern) < COMPILE_SECONDS_MAX


def test_the_expression_of_722_characters_is_refused():
    with pytest.raises(InvalidPattern, match="too many repetitions"):
        compile_pattern("x{0,1000}" * 80)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("x" * (PATTERN_MAX_CHARACTERS + 1), "longer than 8192 characters"),
        (r"\pL" * 300, "too many repetitions and Unicode classes"),
        ("x{1000}" * 900, "too many repetitions and Unicode classes"),
        ("(?:" + r"\pL" * 2_700 + "){0}", "too many repetitions and Unicode classes"),
        ("\ud800", "not valid Unicode text"),
        ("(", "missing \\): \\("),
    ],
)
def test_expressions_that_are_refused(pattern, reason):
    with pytest.raises(InvalidPattern, match=reason):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "orders-.*",
        "(?i)(orders|payments)[-_.](eu|us)[-_.][0-9]{1,4}",
        "|".join(f"a-topic-with-quite-a-long-name-{number}" for number in range(220)),
        "|".join(f"tenant-{number}-.*" for number in range(400)),
        r"[\p{L}\p{N}._-]+",
        r".{1,249}",
        r"\w{0,100}-\d{1,10}",
    ],
)
def test_expressions_that_people_write_are_taken(pattern):
    assert compile_pattern(pattern).programsize > 0


@pytest.mark.parametrize("pattern", HEAVY)
def test_work_of_a_match_is_no_less_than_it_takes(pattern):
    compiled, text = compile_pattern(pattern), b"x" * 2_000
    begun = time.thread_time()
    compiled.fullmatch(text)
    took = time.thread_time() - begun
    assert took < WORK_SECONDS_MAX * match_work(compiled, len(text)) / 1_000_000


def test_memory_counts_what_is_parsed_and_not_only_the_program():
    assert bytes_of(r"(?:\pL){0}" * 200) > bytes_of("x" * 2_000)


def test_re2_keeps_no_expression_of_a_client():
    """RE2 keeps 128 expressions of any size by default."""
    compile_pattern("orders-.*")
    assert not re2._Regexp._make.cache_info().currsize
