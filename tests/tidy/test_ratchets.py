"""English, lengths of files and sizes of folders: no count rises, a new file keeps the rule."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.english import STARTS, WORDS, Source, page_hits, source_hits
from tests.tidy.ratchet import RULES, recorded, risen
from tests.tidy.source import ROOT


@pytest.mark.parametrize("rule", RULES)
def test_no_count_rises(rule):
    counts = RULES[rule][0]()
    assert len(counts) > 20
    assert risen(rule, counts, recorded(rule)) == [], (
        "python -m tests.tidy.english FILE prints the hits"
    )


def test_record_names_existing_files_and_folders():
    assert [name for rule in RULES for name in recorded(rule) if not (ROOT / name).exists()] == []


def test_count_above_its_record_or_the_limit_is_named():
    assert risen("english", {"a.py": 2, "b.py": 1, "c.py": 3}, {"a.py": 2, "c.py": 2}) == [
        "b.py: 1, at most 0",
        "c.py: 3, at most 2",
    ]
    assert risen("files", {"a.py": 600, "b.py": 601}, {}) == ["b.py: 601, at most 600"]


@pytest.mark.parametrize("name", WORDS)
def test_rule_of_words_finds_its_example(name):
    rule = WORDS[name]
    assert {hit.rule for hit in page_hits(rule.bad)} == {name}
    assert page_hits(rule.good) == []


@pytest.mark.parametrize("name", STARTS)
def test_rule_of_starts_finds_its_example(name):
    rule = STARTS[name]
    assert {hit.rule for hit in python(f'"""{rule.bad}"""\n')} == {name}
    assert python(f'"""{rule.good}"""\n') == []


def python(text):
    return source_hits(Source(ROOT / "storage" / "sample.py", text, ast.parse(text)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# The client is told.\nx = 1\n", [(1, "speech")]),
        ("x = 1\n# Sent\n# in vain.\ny = 1\n", [(3, "old-word")]),
        ('raise ValueError(f"{x}: nobody")\n', [(1, "no-actor")]),
        ('logger.warning("written anew reason=%s", reason)\n', [(1, "old-word")]),
        ('print("nobody")\n', []),
        ("def told():\n    pass\n", [(1, "name")]),
        ('"""Return `whoever` and ``nobody``."""\n', []),
        (f'"""{"word " * 41}."""\n', [(1, "long-sentence")]),
    ],
)
def test_hits_in_python(text, found):
    assert [(hit.line, hit.rule) for hit in python(text)] == found


def test_code_of_a_page_is_not_checked():
    assert page_hits("```\nwhoever\n```\n\n[a page](whoever) `nobody`\n") == []
    assert [str(hit) for hit in page_hits("One.\n\nNobody.\n")] == ["3 no-actor: Nobody"]
