"""`make quick`: checks the files that have changed, and runs the tests of the modules they hold.

A file has changed if it differs from the commit before, or, in a clean checkout, if the commit
changed it. The tests of a module are those that are named after it, `test_<module>.py`, and those
that import it; of a module that very many tests import only the former.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Final

ROOT: Final = Path(__file__).parents[1]
UNIT: Final = (
    "protocol",
    "storage",
    "coordinator",
    "broker",
    "spark_connector",
    "bench",
    "cluster",
    "counterparts",
    "groups",
    "history",
    "javascript",
    "real",
    "tidy",
    "walks",
)
"""The directories of tests/ whose tests start no processes of others."""
IMPORTERS_MOST: Final = 12
"""Test files that import a module; a module with more is common ground, and proves little."""
_IMPORT: Final = re.compile(
    r"^\s*(?:from\s+(?P<package>[\w.]+)\s+import\s+(?P<names>\([^)]*\)|.+)|import\s+(?P<module>[\w.]+))",
    re.MULTILINE,
)


def imported(text: str) -> set[str]:
    """Return the names of the modules that a file may import: ``a.b`` and ``a.b.c`` of each."""
    found = set()
    for match in _IMPORT.finditer(text):
        if match["module"]:
            found.add(match["module"])
        else:
            names = re.findall(r"\w+", match["names"])
            found |= {match["package"], *(f"{match['package']}.{name}" for name in names)}
    return found


def module_name(path: PurePath) -> str:
    """Return the name by which tests import a file of the repository."""
    parts = path.with_suffix("").parts
    return ".".join(parts if parts[0] == "tests" else ("barnabas", *parts))


def chosen(changed: Iterable[PurePath], tests: dict[PurePath, set[str]]) -> set[PurePath]:
    """Return the test files to run for changed files; ``tests``: what each of them imports."""
    found = set()
    for path in changed:
        if path in tests:
            found.add(path)
            continue
        name = module_name(path)
        found |= {test for test in tests if test.name == f"test_{path.stem}.py"}
        importers = {test for test, names in tests.items() if name in names}
        if len(importers) <= IMPORTERS_MOST:
            found |= importers
    return found


def changed_files() -> list[PurePath]:
    """Return the Python files that have changed and exist."""
    found = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    if not found:
        found = _git("diff", "--name-only", "HEAD~1", "HEAD")
    return [PurePath(each) for each in found if each.endswith(".py") and (ROOT / each).exists()]


def _git(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def _test_files() -> dict[PurePath, set[str]]:
    return {
        path.relative_to(ROOT): imported(path.read_text())
        for directory in UNIT
        for path in (ROOT / "tests" / directory).rglob("test_*.py")
    }


def commands(changed: Sequence[PurePath], tests: Iterable[PurePath]) -> dict[str, list[str]]:
    """Return the checks to run beside each other, by what they check."""
    files = [str(path) for path in changed]
    found = {
        "format": ["ruff", "format", "--check", *files],
        "lint": ["ruff", "check", "--output-format", "concise", *files],
        "types": ["mypy"],
        "imports": ["lint-imports", "--no-logo"],
        "tests": ["python", "-m", "pytest", "--quiet", "--numprocesses=2", "-m", "not hypothesis"],
    }
    found["tests"] += sorted(str(path) for path in tests)
    if not tests:
        del found["tests"]
    return found


def main() -> int:
    """Run the checks, and print what those that fail have to say."""
    changed = changed_files()
    if not changed:
        print("quick: no Python file has changed")
        return 0
    tests = chosen(changed, _test_files())
    print(f"quick: {len(changed)} changed files, {len(tests)} files of tests")
    binaries = Path(sys.executable).parent
    running = {
        name: subprocess.Popen(
            [str(binaries / command[0]), *command[1:]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in commands(changed, tests).items()
    }
    failed = []
    for name, process in running.items():
        output, _ = process.communicate()
        if process.returncode:
            failed.append(name)
            print(f"\n== {name}\n{output}")
    print(f"quick: {', '.join(failed)} failed" if failed else "quick: all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
