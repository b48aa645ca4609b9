"""Rules are cited by the codes of docs/invariants.md, and pages by names that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.tidy.source import GENERATED, ROOT, comments_and_strings, parsed
from tests.tidy.test_tidy import texts

PAGE = "docs/invariants.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \|.*\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
FAMILY = re.compile(r"^## ([A-Z]) ", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")

# There these letters are steps of the sink's own protocol, and names of its failpoints.
OTHER_CODES = ("spark_connector/", "tests/spark/", "tests/spark_connector/", "tests/interop/")
OTHER_CODES_ONLY_IN = re.compile(r"spark|sink_cores")

MARKDOWN = re.compile(r"[\w./-]*\w\.md\b")
SECTION = re.compile(r"§|\.md`* (?:section )?\d")
ADDRESS = re.compile(r"https?://\S+")
OTHER_NAMES = {
    "tests/tidy/test_invariants.py",
    "mkdocs.yml",
    "tests/browser/test_site.py",
    "tests/site/assemble.py",
    "tests/site/compatibility.py",
    "tests/site/parts.py",
}
"""Files with names of pages that are examples, or names on the site, which `make site` checks."""


@cache
def page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")


def rows() -> dict[str, tuple[str, str]]:
    """Source and tests of each rule, by code."""
    return {code: (source, tests) for code, source, tests in ROW.findall(page())}


def prose(name: str, text: str) -> str:
    """Return the prose of a file: comments and strings of Python, else everything."""
    if not name.endswith(".py"):
        return text
    return "\n".join(match[0] for match in comments_and_strings(text))


def cited(text: str, families: str) -> set[str]:
    """The codes that a text cites, those of ranges included ("M1-M6", "O1 to O8")."""
    code = rf"(?<![\w./\\-])([{families}])(\d{{1,2}})(?![\w\\]|-[a-z])"
    found = {letter + number for letter, number in re.findall(code, text)}
    for letter, first, last in re.findall(
        rf"\b([{families}])(\d{{1,2}})(?:-| to )\1(\d{{1,2}})\b", text
    ):
        found.update(f"{letter}{number}" for number in range(int(first), int(last) + 1))
    return found


def python_and_pages() -> Iterator[tuple[str, str]]:
    generated = GENERATED.relative_to(ROOT).as_posix()
    for name, text in texts():
        if name.endswith((".py", ".md")) and not name.startswith(generated) and name != PAGE:
            yield name, text


def has_other_codes(name: str) -> bool:
    return name.startswith(OTHER_CODES) and bool(OTHER_CODES_ONLY_IN.search(name))


@cache
def citations() -> dict[str, str]:
    """Return the first citation of each code."""
    families = "".join(FAMILY.findall(page()))
    mentions = re.compile(rf"\b[{families}]\d")
    places: dict[str, str] = {}
    for name, text in python_and_pages():
        if not has_other_codes(name) and name != "tests/tidy/test_invariants.py":
            found = cited(prose(name, text), families) if mentions.search(text) else set()
            for code in found:
                places.setdefault(code, name)
    return places


def test_what_is_cited_is_in_the_page():
    unknown = {code: name for code, name in citations().items() if code not in rows()}
    assert unknown == {}


def test_what_is_in_the_page_is_cited():
    assert [code for code in rows() if code not in citations()] == []


def test_each_rule_stands_under_its_family_once():
    codes = re.findall(r"^\| ([A-Z]\d+) \|", page(), re.MULTILINE)
    assert codes == list(rows()), "a row that is not whole, or there twice"
    families = {
        part[3]: re.findall(r"^\| ([A-Z])\d+ \|", part, re.MULTILINE)
        for part in re.split(r"^(?=## )", page(), flags=re.MULTILINE)[1:]
    }
    assert {letter: {letter} for letter in families} == {
        letter: set(found) for letter, found in families.items()
    }


def is_defined(tree: ast.AST, names: list[str]) -> bool:
    """Whether a module has this test; ``names`` are the function's and those of its classes."""
    if not names:
        return True
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == names[0]:
                return is_defined(node, names[1:])
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == names[0]:
            return len(names) == 1
    return False


def test_every_rule_has_tests_that_exist():
    missing = []
    for code, (_, cell) in rows().items():
        tests = TEST.findall(cell)
        if "<br>".join(f"`{path}{names}`" for path, names in tests) != cell:
            missing.append(f"{code}: {cell}")
        for path, names in tests:
            file = ROOT / path
            tree = parsed(file).tree if file.is_file() else None
            if tree is None or not is_defined(tree, names.split("::")[1:]):
                missing.append(f"{code}: {path}{names}")
    assert missing == []


# --------------------------------------------------------------------------------- names of pages


def lost_pages(name: str, text: str) -> list[str]:
    """Return a file's references to pages outside the repository, or to sections by number.

    Paths are from the root, or from the file's own folder. In a path that Python puts together,
    ``ROOT / "docs" / "page.md"``, the last part is enough. In links of pages that Python writes,
    paths are from ``docs``.
    """
    folder = (ROOT / name).parent
    lost = []
    for number, written in enumerate(text.splitlines(), 1):
        if ".md" not in written and "§" not in written:
            continue
        line = ADDRESS.sub("", written)
        for match in MARKDOWN.finditer(line):
            page_name = match[0].lstrip("/")
            places = [ROOT / page_name, folder / page_name]
            quoted = line[match.start() - 1 : match.end() + 1] == f'"{match[0]}"'
            if quoted and name.endswith(".py"):
                places.append(ROOT / "docs" / PurePosixPath(page_name).name)
            if name.endswith(".py") and (quoted or line[: match.start()].endswith("](")):
                places.append(ROOT / "docs" / page_name)
            if not any(place.is_file() for place in places):
                lost.append(f"{name}:{number}: {match[0]}")
        if name.endswith(".py") and SECTION.search(line):
            lost.append(f"{name}:{number}: {line.strip()}")
    return lost


def test_pages_that_are_named_exist():
    lost = [
        each for name, text in texts() if name not in OTHER_NAMES for each in lost_pages(name, text)
    ]
    assert lost == []


# ------------------------------------------------------------ the rules, tried on planted faults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refused (S5, S6).", {"S5", "S6"}),
        ("D9: nothing", {"D9"}),
        ("(M1-M3)", {"M1", "M2", "M3"}),
        ("O1 to O3", {"O1", "O2", "O3"}),
        ('reach("C4-after")', set()),
        ("-O2", set()),
        ("LZ4, TV2, a1, 0xD9, D9x, tests/S1", set()),
    ],
)
def test_codes_are_found(text, expected):
    assert cited(text, "SDMOC") == expected


def test_only_what_people_read_cites():
    text = 'D1 = f(D2)  # D3\n"""D4"""\n'
    assert cited(prose("a.py", text), "D") == {"D3", "D4"}
    assert cited(prose("a.md", text), "D") == {"D1", "D2", "D3", "D4"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["f"], True), (["A", "g"], True), (["B"], True), (["g"], False), (["A", "f"], False)],
)
def test_definitions_are_found(names, expected):
    tree = ast.parse("def f(): pass\nclass A:\n    def g(self): pass\nB = A.TestCase\n")
    assert is_defined(tree, names) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("storage/a.py", "# see docs/architecture.md", 0),
        ("storage/a.py", "# see architecture.md", 1),
        ("storage/a.py", "# see docs/architecture.md 8.1", 1),
        ("storage/a.py", "# the design, §3", 1),
        ("storage/a.py", 'ROOT / "docs" / "architecture.md"', 0),
        ("storage/a.py", 'PAGES = {"security/acls.md": 1}', 0),
        ("storage/a.py", "[ACLs](security/acls.md)", 0),
        ("storage/a.py", "[ACLs](acls.md)", 1),
        ("storage/a.py", "# https://example.org/page.md", 0),
        ("docs/a.md", "[groups](groups.md#members)", 0),
        ("docs/a.md", "[storage](storage.md)", 1),
    ],
)
def test_lost_pages_are_found(name, text, expected):
    assert len(lost_pages(name, text)) == expected
