"""`make quick` chooses the tests of what has changed."""

from pathlib import PurePath as P

import pytest

from tests.quick import IMPORTERS_MOST, chosen, commands, imported, module_name

JOURNAL = P("storage/journal/journal.py")
NAMED = P("tests/storage/test_journal.py")
IMPORTER = P("tests/crash/test_salvage.py")
OTHER = P("tests/broker/test_clock.py")
TESTS = {NAMED: set(), IMPORTER: {"barnabas.storage.journal.journal"}, OTHER: {"barnabas.storage"}}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import barnabas.storage.journal.journal", {"barnabas.storage.journal.journal"}),
        ("from barnabas.storage import journal", {"barnabas.storage", "barnabas.storage.journal"}),
        ("from a.b import (\n    c,\n    d as e,\n)", {"a.b", "a.b.c", "a.b.d", "a.b.e", "a.b.as"}),
        ("def f():\n    from a import b", {"a", "a.b"}),
        ("x = 'import this'", set()),
    ],
)
def test_what_a_file_imports(line, names):
    assert imported(line) == names


def test_names_of_modules():
    assert module_name(JOURNAL) == "barnabas.storage.journal.journal"
    assert module_name(P("tests/waiting.py")) == "tests.waiting"


def test_tests_are_chosen_by_name_and_by_what_they_import():
    assert chosen([JOURNAL], TESTS) == {NAMED, IMPORTER}


def test_a_changed_test_is_run_itself():
    assert chosen([OTHER], TESTS) == {OTHER}


def test_importers_of_common_ground_are_left_out():
    many = {
        P(f"tests/storage/test_{n}.py"): {"barnabas.storage.journal.journal"} for n in range(99)
    }
    assert len(many) > IMPORTERS_MOST
    assert chosen([JOURNAL], {**many, **TESTS}) == {NAMED}


def test_only_changed_files_are_linted_and_only_chosen_tests_run():
    found = commands([JOURNAL], {NAMED})
    assert found["lint"][-1] == str(JOURNAL)
    assert found["tests"][-1] == str(NAMED)
    assert "tests" not in commands([JOURNAL], set())
