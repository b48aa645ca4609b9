"""The check of commit subjects, over histories that it makes, and without one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.tidy.commits import faults, main


def git(directory: Path, *arguments: str) -> str:
    ended = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example", *arguments],
        cwd=directory,
        # In a hook git sets variables that name its own repository.
        env={name: value for name, value in os.environ.items() if name[:4] != "GIT_"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.strip()


def commit(directory: Path, subject: str) -> str:
    git(directory, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", subject)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    git(directory, "init", "--quiet")
    return directory


@pytest.mark.parametrize(
    "subject",
    [
        "Return an error for invalid DescribeTopicPartitions cursors",
        "Pass 1",
        "Seed the draws of the simulated disk",
        "Re-read the configuration",
        "Bring the table of routes back",
        "A" + "d" * 67 + " a b",
    ],
)
def test_imperative_subjects_of_72_characters_pass(subject):
    assert faults(subject) == []


@pytest.mark.parametrize(
    ("subject", "clause"),
    [
        ("A" + "d" * 67 + " a bc", "it has 73 characters, of at most 72"),
        ("Return an error.", "it ends with a full stop"),
        ("Added a key", "'Added' is not an imperative"),
        ("Adding a key", "'Adding' is not an imperative"),
        ("Adds a key", "'Adds' is not an imperative"),
        ("Made a key", "'Made' is not an imperative"),
        ("fix: the key", "it does not begin with a capitalised verb"),
        ("Storage: drop the key", "it does not begin with a capitalised verb"),
    ],
)
def test_other_subjects_have_their_fault_named(subject, clause):
    assert faults(subject) == [clause]


def test_subjects_since_the_base_are_checked(checkout, capsys):
    commit(checkout, "old subjects may be anything.")
    base = commit(checkout, "this one, too.")
    commit(checkout, "Add a key")
    assert main(checkout, base) == 0
    wrong = commit(checkout, "Added a key.")
    capsys.readouterr()
    assert main(checkout, base) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("'Added a key.': it ends with a full stop; 'Added' is not an imperative")
    assert wrong.startswith(line.split()[0])


def test_merges_are_not_checked(checkout):
    base = commit(checkout, "Add a key")
    git(checkout, "switch", "--quiet", "--create", "side")
    commit(checkout, "Add another key")
    git(checkout, "switch", "--quiet", "-")
    commit(checkout, "Add a third key")
    git(checkout, "merge", "--quiet", "--no-ff", "-m", f"merged {'a' * 40} into {'b' * 40}", "side")
    assert main(checkout, base) == 0


def test_check_without_history_prints_one_line(checkout, tmp_path, capsys):
    base = commit(checkout, "Add a key")
    commit(checkout, "this subject is wrong.")
    shallow, bare = tmp_path / "shallow", tmp_path / "without-git"
    bare.mkdir()
    git(tmp_path, "clone", "--quiet", "--depth", "1", checkout.as_uri(), str(shallow))
    for directory in (shallow, bare):
        assert main(directory, base) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert line == f"no commit subjects to check: no git history since {base[:10]} here"


def test_a_shallow_clone_with_the_base_is_checked(checkout, tmp_path):
    base = commit(checkout, "Add a key")
    commit(checkout, "this subject is wrong.")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "2", checkout.as_uri(), str(shallow))
    assert main(shallow, base) == 1


def test_a_complete_history_without_the_base_fails(checkout, capsys):
    commit(checkout, "Add a key")
    assert main(checkout, "1" * 40) == 1
    assert capsys.readouterr().err.startswith("git cannot list the commits since 1111111111: ")


def test_a_broken_repository_fails(tmp_path, capsys):
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert main(tmp_path, "1" * 40) == 1
    assert "not a git repository" in capsys.readouterr().err
