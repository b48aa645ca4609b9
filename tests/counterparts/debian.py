"""Debian's packages that a counterpart needs: installed where that is allowed, or only unpacked."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.kept import keep

FETCH_TIMEOUT_S = 900
STATUS = Path("/var/lib/dpkg/status")
_TO_INSTALL = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)


def install(*packages: str) -> None:
    """Install Debian packages if root runs this on a system with apt; the caller checks."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", "--quiet", *arguments],
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
        )


class Apt:
    """apt with folders of its own: it knows what is installed, and changes nothing of it."""

    def __init__(self, directory: Path, purpose: str) -> None:
        self._purpose = purpose
        self._downloads = directory / "downloads"
        lists = directory / "state" / "lists" / "partial"
        for each in (self._downloads, lists, directory / "cache" / "archives" / "partial"):
            each.mkdir(parents=True)
        # As root apt becomes another user to fetch, who cannot enter a temporary directory.
        self._options = [
            f"--option=Dir::State={directory / 'state'}",
            f"--option=Dir::Cache={directory / 'cache'}",
            "--option=APT::Sandbox::User=",
            "--option=Acquire::Retries=3",
            "--option=Debug::NoLocking=true",
        ]
        # A list that cannot be had matters only if a package is missing then.
        self._run("update", check=False)

    def missing(self, *packages: str) -> list[str]:
        """Return `name=version` of all that would be installed with these packages."""
        return self._simulated(STATUS, *packages)

    def needed(self, *packages: str) -> list[str]:
        """Return `name=version` of all that these packages need, installed already or not."""
        return self._simulated(Path(os.devnull), *packages)

    def _simulated(self, status: Path, *packages: str) -> list[str]:
        said = self._run(
            f"--option=Dir::State::status={status}",
            "install",
            "--simulate",
            "--no-install-recommends",
            *packages,
        )
        return to_install(said)

    def download(self, packages: list[str]) -> list[Path]:
        """Return the files of packages, each given as `name=version`."""
        self._run("download", *packages)
        return sorted(self._downloads.glob("*.deb"))

    def _run(self, *arguments: str, check: bool = True) -> str:
        command = ["apt-get", "--quiet", "--yes", *self._options, *arguments]
        return _run(command, self._purpose, directory=self._downloads, check=check)


def to_install(said: str) -> list[str]:
    """Return `name=version` of each package that a simulation of apt installs or upgrades."""
    return [f"{name}={version}" for name, version in _TO_INSTALL.findall(said)]


def extract(packages: list[Path], root: Path) -> None:
    """Unpack the files of packages into a directory, over each other."""
    for package in packages:
        _run(["dpkg-deb", "--extract", str(package), str(root)], package.name)


def enter(root: Path, directory: Path) -> None:
    """Put what was unpacked in its place by one rename, unless another process was first."""
    shutil.rmtree(directory, ignore_errors=True)
    keep(root, directory)


def _run(
    command: list[str], purpose: str, *, directory: Path | None = None, check: bool = True
) -> str:
    try:
        answer = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MissingCounterpart(f"{command[0]} took more than {FETCH_TIMEOUT_S} s") from None
    if check and answer.returncode:
        said = " ".join((answer.stdout + answer.stderr).split())
        raise MissingCounterpart(f"{command[0]} could not get {purpose}: {said[-1000:]}")
    return answer.stdout


def installed() -> set[str]:
    """Return the names of the packages that the machine has installed."""
    said = _run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\\n"],
        "the list of what is installed",
    )
    return {name for status, name in map(str.split, said.splitlines()) if status == "installed"}
