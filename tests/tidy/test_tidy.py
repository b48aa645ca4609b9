"""House rules that neither the linter nor the type checker knows.

Long functions are a ratchet: what was long before is listed with its length and may only
shrink, and what has just crossed the line is found here. Files, folders and English have theirs in
test_ratchets.py.
"""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.tidy.source import (
    PACKAGES,
    ROOT,
    Source,
    functions,
    imported_modules,
    sources,
)

FUNCTION_LINES = 70

# Longer than the rule, for a reason that is written at the function.
LONG_FUNCTIONS: dict[str, int] = {}

# Other files that may call the builtin open(): for files that the user named, in tools that run
# before there is a broker, and for /proc.
MAY_OPEN = {
    "storage/files/io.py",
    "broker/cli/directory/directory_copy.py",
    "broker/cli/commands/init.py",
    "broker/cli/proving/instances.py",
    "broker/cli/proving/served.py",
    "broker/cli/properties_file.py",
    "broker/cli/directory/renewal.py",
    "broker/client/credentials.py",
    "broker/runtime/audit_file.py",
    "broker/runtime/build.py",
    "broker/runtime/process_usage.py",
    "broker/security/tls/stores.py",
}

# Started by name, not imported: commands, the pytest plugin, `python -m`; and what tests and
# users import.
ENTRY_POINTS = re.compile(
    r"barnabas\.(broker\.cli\.commands\.\w+|broker\.testing\.pytest_plugin|broker\.config\.pages\.reference"
    r"|broker\.api\.permissions_page"
    r"|broker\.testing\.loopback"
    r"|broker\.security\.tls\.client|protocol\.messages\.\w+|storage\.repair\.check|testing"
    r"|broker\.testing\.store\.base"
    r"|spark\.(data_source|foreach_batch)|(\w+\.)*__main__)"
)

BANNED_WORDS = re.compile(r"\b(" + "TO" + "DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|home|root|Users)/\w")


def tracked_files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        return [source.name for source in sources(*PACKAGES, "tests")]
    return [name for name in result.stdout.splitlines() if (ROOT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    found = []
    for name in tracked_files():
        data = (ROOT / name).read_bytes()
        if b"\0" not in data:
            found.append((name, data.decode("utf-8", "replace")))
    return found


def handwritten() -> list[Source]:
    return [source for source in sources(*PACKAGES) if not source.is_generated]


def test_files_are_opened_in_storage_io_only():
    guilty = [
        f"{source.name}:{node.lineno}"
        for source in sources(*PACKAGES)
        if source.name not in MAY_OPEN
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert guilty == []


def over_the_line(lengths: dict[str, int], limit: int, known: dict[str, int]) -> list[str]:
    """Return the functions or files above the limit, and outdated entries of ``known``."""
    too_long = [
        f"{name} has {length} lines, more than {max(limit, known.get(name, 0))}"
        for name, length in lengths.items()
        if length > max(limit, known.get(name, 0))
    ]
    shrunk = [
        f"{name} has {lengths.get(name, 0)} lines: lower or remove its {length} in this test"
        for name, length in known.items()
        if lengths.get(name, 0) < length
    ]
    return too_long + shrunk


def test_functions_are_short():
    lengths = {
        f"{source.name}:{name}": length
        for source in handwritten()
        for name, length in functions(source)
    }
    assert over_the_line(lengths, FUNCTION_LINES, LONG_FUNCTIONS) == []


def test_no_unfinished_business():
    guilty = [
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if BANNED_WORDS.search(line)
    ]
    assert guilty == []


def test_no_paths_of_somebodys_machine():
    guilty = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert guilty == []


def test_every_module_is_used():
    imported = set().union(*map(imported_modules, sources(*PACKAGES)))
    dead = [
        source.module
        for source in handwritten()
        if source.module not in imported
        and source.path.name != "__init__.py"
        and not ENTRY_POINTS.fullmatch(source.module)
    ]
    assert dead == []


def test_every_module_says_what_it_is():
    silent = [
        source.name for source in sources(*PACKAGES) if ast.get_docstring(source.tree) is None
    ]
    assert silent == []


def test_no_test_is_skipped_unconditionally():
    guilty = [
        f"{source.name}:{node.lineno}"
        for source in sources("tests")
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and node.attr in {"skip", "xfail"}
        and ast.unparse(node) in {"pytest.mark.skip", "pytest.mark.xfail", "pytest.skip"}
    ]
    assert guilty == []


# ------------------------------------------------------------ the rules, tried on planted faults


def planted(text: str, name: str = "storage/planted.py") -> Source:
    return Source(ROOT / name, text, ast.parse(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    x = 1\n    return x\n", [("f", 3)]),
        ('def f():\n    """Sentence.\n\n    More.\n    """\n    return 1\n', [("f", 1)]),
        ("class A:\n    def f(self):\n        def g(): pass\n", [("A.f", 2), ("A.f.g", 1)]),
        ("if True:\n    async def f():\n        pass\n", [("f", 2)]),
    ],
)
def test_lengths_of_functions(text, expected):
    assert list(functions(planted(text))) == expected


def test_the_ratchet():
    assert over_the_line({"a": 71}, 70, {}) == ["a has 71 lines, more than 70"]
    assert over_the_line({"a": 80}, 70, {"a": 80}) == []
    assert over_the_line({"a": 81}, 70, {"a": 80}) == ["a has 81 lines, more than 80"]
    assert over_the_line({"a": 75}, 70, {"a": 80}) == [
        "a has 75 lines: lower or remove its 80 in this test"
    ]


def test_imports_are_seen_in_every_form():
    text = "import a.b\nfrom c import d\nfrom . import e\nfrom .f import g\nfrom .. import h\n"
    names = imported_modules(planted(text, "storage/metastore/planted.py"))
    assert {
        "a.b",
        "c",
        "c.d",
        "barnabas.storage.metastore.e",
        "barnabas.storage.metastore.f",
        "barnabas.storage.h",
    } <= names


@pytest.mark.parametrize(
    ("line", "found"),
    [("x = '/ho" + "me/me/x'", True), ("./home/x", False), ("/tmp/x", False), ("a/work/b", False)],
)
def test_machine_paths(line, found):
    assert bool(MACHINE_PATHS.search(line)) == found


def test_nothing_compiled_lies_beside_the_sources():
    """A compiled file would be imported in place of its source, also after a change."""
    assert [str(file) for package in PACKAGES for file in (ROOT / package).rglob("*.so")] == []
