"""`make release`: its refusals, and the workflow that publishes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml

from barnabas.broker.version import __version__
from tests.checkout import ROOT
from tests.counterparts.go import tool
from tests.package import release
from tests.products import for_the_night

WORKFLOWS = ROOT / ".github" / "workflows"
DATED = f"# Changelog\n\n## Unreleased\n\n## {__version__} - 2026-12-01\n\n- A change.\n"
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DATED, None),
        ("# Changelog\n\n## Unreleased\n\n- A change.\n", "has no heading '## 0.1.0 - YYYY-MM-DD'"),
        (DATED.replace("- A change.\n", ""), "has nothing below its heading 0.1.0"),
        (DATED.replace("0.1.0 ", "0.1.01 "), "has no heading '## 0.1.0 - YYYY-MM-DD'"),
    ],
)
def test_changelog_must_describe_the_version(text, expected):
    reason = release.changelog_reason("0.1.0", text)
    assert reason is None if expected is None else expected in reason


def git(directory, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A repository that is ready for the release of the current version."""
    git(tmp_path, "init")
    (tmp_path / "CHANGELOG.md").write_text(DATED)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "Begin")
    return tmp_path


def reasons(version, checkout):
    return [each for each in release.reasons_against(version, checkout) if each]


def test_clean_checkout_with_a_changelog_is_ready(checkout):
    assert reasons(__version__, checkout) == []


def test_each_reason_against_a_release_is_named_at_once(checkout):
    (checkout / "notes.txt").write_text("a draft")
    git(checkout, "tag", "v9.9")
    assert reasons("9.9", checkout) == [
        "VERSION=9.9 is not of the form 0.1.0",
        f"broker/version.py has version {__version__}, not 9.9",
        "CHANGELOG.md has no heading '## 9.9 - YYYY-MM-DD'",
        "barnabas-9.9-stopped.tar.xz is missing: run python -m tests.real.formats.write",
        "barnabas-9.9-killed.tar.xz is missing: run python -m tests.real.formats.write",
        "the tree has 1 changed files, notes.txt first: commit them",
        "the tag v9.9 exists",
    ]


def test_command_prints_one_line_of_reasons_and_builds_nothing(tmp_path):
    command = [sys.executable, "-m", "tests.package.release", "9.9.9"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith(f"release: broker/version.py has version {__version__}, not ")
    assert result.stderr.count("\n") == 1
    assert not (ROOT / "dist" / "9.9.9").exists()


@for_the_night(
    beside="tests/package/test_release.py::test_clean_checkout_with_a_changelog_is_ready"
)
def test_release_without_compiled_wheels_has_each_file_and_its_checksum(tmp_path):
    directory = tmp_path / "dist" / __version__
    release.build(directory, with_compiled=False)
    names = {path.name for path in directory.iterdir()}
    assert names == {
        f"barnabas-{__version__}.tar.gz",
        f"barnabas-{__version__}-py3-none-any.whl",
        f"barnabas-{__version__}.cdx.json",
        f"barnabas-{__version__}.tgz",
        release.CHECKSUMS,
    }
    command = ["sha256sum", "--check", "--strict", release.CHECKSUMS]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    sbom = (directory / f"barnabas-{__version__}.cdx.json").read_text()
    assert all(f'"name": "{name}"' in sbom for name in ("barnabas", "psycopg", "PyJWT", "uvloop"))
    with zipfile.ZipFile(directory / f"barnabas-{__version__}-py3-none-any.whl") as wheel:
        assert "barnabas/commit" in wheel.namelist()


def test_each_upper_bound_of_a_dependency_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text()
    settings = tomllib.loads(text)
    project = settings["project"]
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    listed += settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"][
        "dependencies"
    ]
    bounded = {re.match(r"[\w-]+", each)[0] for each in listed if "<" in each or "==" in each}
    comments = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    assert "pandas" in bounded
    reasons = {name for name in bounded if re.search(rf"\b{name}( below [\d.]+)?: ", comments)}
    assert bounded - reasons == set()


# ----------------------------------------------------------------------------------- workflows


def workflow(name):
    # YAML 1.1 reads the key "on" as a boolean.
    return yaml.safe_load((WORKFLOWS / name).read_text())


@pytest.mark.parametrize("path", sorted(WORKFLOWS.iterdir()), ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    used = re.findall(r"uses: (\S+)( # v\d+\.\d+\.\d+)?$", path.read_text(), re.MULTILINE)
    assert used
    assert all(PINNED.fullmatch(action) and version for action, version in used), used


def test_only_jobs_that_publish_may_sign_or_write():
    release_workflow = workflow("release.yml")
    assert release_workflow["permissions"] == {}
    writers = {
        name: sorted(key for key, value in job["permissions"].items() if value == "write")
        for name, job in release_workflow["jobs"].items()
    }
    assert writers == {
        "files": [],
        "wheels": [],
        "checksums": [],
        "python-index": ["id-token"],
        "image": ["packages"],
        "image-index": ["packages"],
        "page": ["contents"],
    }
    for name, keys in writers.items():
        assert bool(keys) == ("environment" in release_workflow["jobs"][name]), name


def test_zizmor_finds_nothing_in_the_workflows():
    zizmor = Path(sys.executable).parent / "zizmor"
    command = [zizmor, "--offline", "--persona", "regular", "--no-progress", WORKFLOWS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@for_the_night(beside="tests/package/test_release.py::test_zizmor_finds_nothing_in_the_workflows")
def test_actionlint_finds_nothing_in_the_workflows():
    command = [tool("actionlint"), "-no-color", *sorted(WORKFLOWS.iterdir())]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
