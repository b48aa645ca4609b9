"""Check the subjects of the commits since `BASE`: `python -m tests.tidy.commits`.

A subject has at most 72 characters, begins with a verb in the imperative, without a prefix, and
has no full stop at its end. Subjects of merges are not checked: servers and git write them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.checkout import ROOT

BASE: Final = "310484079203d8f4aa73a693e3b08c6f6f003207"
"""The last commit before this check existed; its subject and older ones are not checked."""
SUBJECT_MAX: Final = 72

_FIRST: Final = re.compile(r"([A-Z][a-z]+(?:-[a-z]+)*)(?= )")
_PAST: Final = re.compile(
    "Began|Broke|Brought|Built|Came|Chose|Did|Drew|Found|Gave|Got|Had|Held|Kept|Knew|Left|Lost|Made"
    "|Meant|Ran|Said|Sent|Shown|Stood|Taught|Thought|Threw|Told|Took|Was|Went|Were|Wrote"
    "|.*ed|.*ing|.*[^s]s"
)
_IMPERATIVE: Final = re.compile(
    "Alias|Bias|Bleed|Bring|Cling|Embed|Exceed|Feed|Focus|Heed|Need|Proceed|Seed|Shed|Shred|Speed"
    "|Spring|String|Succeed|Swing|Weed"
)
"""Verbs whose endings resemble those of a past tense, a gerund or a third person."""


class HistoryError(Exception):
    """Git cannot list the commits of this checkout; the text is what git reports."""


def faults(subject: str) -> list[str]:
    """Return the rules that a subject breaks, each as a clause."""
    found = []
    if len(subject) > SUBJECT_MAX:
        found.append(f"it has {len(subject)} characters, of at most {SUBJECT_MAX}")
    if subject.endswith("."):
        found.append("it ends with a full stop")
    first = _FIRST.match(subject)
    if first is None:
        found.append("it does not begin with a capitalised verb")
    elif not _is_imperative(first[1]):
        found.append(f"{first[1]!r} is not an imperative")
    return found


def _is_imperative(word: str) -> bool:
    return _IMPERATIVE.fullmatch(word) is not None or _PAST.fullmatch(word) is None


def subjects(root: Path, base: str) -> list[tuple[str, str]] | None:
    """Return hash and subject of each commit since ``base``, without merges.

    Return ``None`` if there is nothing to check: ``root`` is no checkout of git, or a shallow one
    without ``base``. Raise ``HistoryError`` if git fails otherwise.
    """
    if not (root / ".git").exists():
        return None
    known = _git(root, "cat-file", "-e", f"{base}^{{commit}}")
    if known.returncode:
        shallow = _git(root, "rev-parse", "--is-shallow-repository")
        if shallow.returncode == 0 and shallow.stdout.strip() == "true":
            return None
        raise HistoryError((shallow.stderr or known.stderr).strip())
    listed = _git(root, "log", "--no-merges", "--format=%h %s", f"{base}..HEAD")
    if listed.returncode:
        raise HistoryError(listed.stderr.strip())
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in listed.stdout.splitlines()]


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # In a hook git sets variables that name its own repository.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    return subprocess.run(
        ["git", *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def main(root: Path = ROOT, base: str = BASE) -> int:
    """Print the faults of the subjects; return the exit code."""
    try:
        found = subjects(root, base)
    except HistoryError as error:
        sys.stderr.write(f"git cannot list the commits since {base[:10]}: {error}\n")
        return 1
    if found is None:
        print(f"no commit subjects to check: no git history since {base[:10]} here")
        return 0
    broken = [(commit, subject, faults(subject)) for commit, subject in found]
    for commit, subject, clauses in broken:
        if clauses:
            sys.stderr.write(f"{commit} {subject!r}: {'; '.join(clauses)}\n")
    return int(any(clauses for _, _, clauses in broken))


if __name__ == "__main__":
    sys.exit(main())
