"""The table of mutants fits the sources, names existing tests, and omits no rule or guard."""

from __future__ import annotations

import ast
import re

import pytest

from tests.mutants.__main__ import chosen, part_of
from tests.mutants.running import Outcome, outcome_of
from tests.mutants.table import Mutant, groups, guards, mutants
from tests.tidy.source import ROOT, parsed
from tests.tidy.test_invariants import is_defined, rows

LINES_MAX = 6
"""Maximum of lines in a text: those around a change make it unique."""
MIGRATIONS = ROOT / "storage" / "postgresql" / "migrations"
FUNCTION = re.compile(r"CREATE FUNCTION barnabas\.(\w+).*?(?:END \$\$;|\n\$\$;)", re.DOTALL)
DEFINES = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION barnabas\.(\w+)")
REPLACES = re.compile(r"(?:CREATE OR REPLACE|DROP) FUNCTION barnabas\.(\w+)")
"""A function that is only created may have the name of another one, with other parameters."""
DECIDES = re.compile(r"\bstate\b|leader_session =|leader_session IS|is_done|lease_until")
"""Columns by which functions of the store refuse something."""

WITHOUT_GUARD = {
    "drain": "a repetition changes nothing",
    "fence": "a repetition changes nothing",
    "is_in_use": "begin_import and begin_export refuse by it, and have the mutants",
    "live_controller": "control refuses by it, and has the mutant",
    "read_gained": "only reads; the broker compares when it opens the log",
    "read_picture": "only reads; the store compares when a broker acts on it",
    "remove_partitions": "no partition of a deleted topic is led again, whatever its session",
}
"""Functions of the store that refuse nothing by what they look at, with the reason."""


def problem_of(mutant: Mutant) -> str:
    """Return the reason why a mutant does not fit its file, or an empty string."""
    if max(mutant.before.count("\n"), mutant.after.count("\n")) >= LINES_MAX:
        return f"more than {LINES_MAX} lines"
    text = mutant.path.read_text(encoding="utf-8")
    try:
        changed = mutant.applied_to(text)
        if mutant.file.endswith(".py"):
            ast.parse(changed)
    except (ValueError, SyntaxError) as error:
        return str(error)
    return "it changes nothing" if changed == text else ""


def test_every_mutant_fits_its_file_once_and_is_small():
    problems = {each.name: problem_of(each) for each in mutants()}
    assert {name: problem for name, problem in problems.items() if problem} == {}


def test_every_rule_and_every_guard_has_a_mutant():
    broken = {each for mutant in mutants() for each in mutant.breaks}
    assert broken - rows().keys() - guards().keys() == set(), "no such rule or guard"
    assert rows().keys() - broken == set()
    assert guards().keys() - broken == set()


def test_tests_that_must_go_red_exist():
    missing = []
    for command in groups(mutants()):
        for name in command.split():
            path, *names = re.sub(r"\[.*\]$", "", name).split("::")
            file = ROOT / path
            found = file.is_dir() or (file.is_file() and is_defined(parsed(file).tree, names))
            if not found or not path.startswith("tests/"):
                missing.append(name)
    assert missing == []


def test_every_function_of_the_store_that_refuses_has_a_mutant():
    """A guard that is written in SQL is found by what it looks at, not by a list."""
    later: set[str] = set()
    without = set()
    for path in sorted(MIGRATIONS.glob("*.sql"), reverse=True):
        text = path.read_text(encoding="utf-8")
        places = [
            text.index(each.before)
            for each in mutants()
            if each.path == path and each.before in text
        ]
        for function in FUNCTION.finditer(text):
            has_mutant = any(function.start() <= place < function.end() for place in places)
            if DECIDES.search(function[0]) and not has_mutant and function[1] not in later:
                without.add(function[1])
        later.update(REPLACES.findall(text))
    assert without - WITHOUT_GUARD.keys() == set()


def test_no_mutant_is_of_a_function_that_a_later_migration_replaces():
    """The replaced text has no effect, so its mutant could not go red."""
    later: set[str] = set()
    replaced = []
    for path in sorted(MIGRATIONS.glob("*.sql"), reverse=True):
        text = path.read_text(encoding="utf-8")
        for each in mutants():
            if each.path == path:
                before = DEFINES.findall(text[: text.index(each.before)])
                replaced += [each.name] * (before[-1] in later)
        later.update(REPLACES.findall(text))
    assert replaced == []


# ----------------------------------------------------------------------- the runner


def mutant_of(*breaks: str, file: str = "a.py", red: str = "tests/a.py") -> Mutant:
    return Mutant(breaks, file, "x", "y", red)


def test_mutants_of_one_command_are_run_together():
    first, second = mutant_of("S1"), mutant_of("S2", red="tests/b.py")
    third = mutant_of("S3")
    assert groups([first, second, third]) == {
        "tests/a.py": [first, third],
        "tests/b.py": [second],
    }


def test_mutants_are_chosen_by_rule_or_file():
    table = [mutant_of("S1"), mutant_of("S2", "S3"), mutant_of("S4", file="b.py")]
    assert chosen(table, []) == table
    assert chosen(table, ["S3", "b.py"]) == table[1:]


def test_parts_are_all_commands_once():
    commands = [*"abcdefg"]
    parts = [part_of(commands, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(each for part in parts for each in part) == commands
    for wrong in ("0/3", "4/3", "3", "a/b", ""):
        with pytest.raises(ValueError, match="is not a part"):
            part_of(commands, wrong)


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (0, "1 passed", Outcome.GREEN),
        (1, "FAILED tests/a.py::test", Outcome.RED),
        (1, "ERROR tests/a.py::test - free port", Outcome.RED_IN_SET_UP),
        (1, "E   Failed: Timeout (>300.0s) from pytest-timeout.", Outcome.RED_BY_LIMIT),
        (2, "ERROR collecting", Outcome.NOT_RUN),
        (4, "no such file", Outcome.NOT_RUN),
        (5, "no tests ran", Outcome.NOT_RUN),
        (-9, "", Outcome.NOT_RUN),
    ],
)
def test_outcomes(status, output, expected):
    assert outcome_of(status, output) is expected


def test_text_that_is_not_there_once_fits_nowhere():
    with pytest.raises(ValueError, match="0 times"):
        mutant_of("S1").applied_to("z")
    with pytest.raises(ValueError, match="2 times"):
        mutant_of("S1").applied_to("xx")
    assert mutant_of("S1").applied_to("ax") == "ay"
