"""Chromium without windows, for the tests in a browser: Debian's, unpacked without root.

apt finds what the machine lacks and fetches it, with lists and a cache of its own, so that neither
root nor the machine's own lists are needed; nothing is installed. Playwright's own browsers are not
used: they come from no package registry.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.spark_connector.cache import cache_directory
from tests.counterparts.errors import MissingCounterpart

PACKAGE = "chromium-headless-shell"
FONTS = ("fonts-dejavu-core", "fonts-liberation")
"""So that pictures look the same everywhere; and a machine need not have any."""
IN_THE_PACKAGE = Path("usr/lib/chromium/chromium-headless-shell")
OTHERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""What a machine may have on its path where Debian's packages are not to be had."""
FETCH_TIMEOUT_S = 900
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_TO_INSTALL = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)


class Chromium(NamedTuple):
    """A browser: its program, and the environment that it needs."""

    path: Path
    environment: dict[str, str]

    def version(self) -> str | None:
        """Return what it says of itself; None if it does not start."""
        try:
            answer = subprocess.run(
                [self.path, "--version"],
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip() if answer.returncode == 0 and answer.stdout else None


@functools.cache
def chromium() -> Chromium:
    """Return a Chromium that starts, unpacked into the cache if it is not there yet."""
    directory = cache_directory() / "chromium"
    found = _unpacked(directory)
    if found.version() is not None:
        return found
    try:
        _fetch(directory)
    except MissingCounterpart as missing:
        return _other(missing)
    found = _unpacked(directory)
    if found.version() is None:
        raise MissingCounterpart(f"{found.path} was unpacked, but does not start")
    return found


def _unpacked(directory: Path) -> Chromium:
    libraries = sorted({str(path.parent) for path in _libraries(directory)})
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "FONTCONFIG_FILE": str(directory / "fonts.conf"),
    }
    return Chromium(directory / IN_THE_PACKAGE, environment)


def _libraries(directory: Path) -> Iterator[Path]:
    # libpulse0 has a folder of its own below that of its architecture.
    for folder in ("lib", "usr/lib"):
        yield from (
            path for path in directory.glob(f"{folder}/**/*.so*") if _LIBRARY.search(path.name)
        )


def _other(missing: MissingCounterpart) -> Chromium:
    for path in filter(None, map(shutil.which, OTHERS)):
        other = Chromium(Path(path), dict(os.environ))
        if other.version() is not None:
            return other
    raise missing


# ------------------------------------------------------------------------------------- fetching


def _fetch(directory: Path) -> None:
    """Unpack the browser, its fonts, and the libraries that the machine lacks."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise MissingCounterpart(
            f"Chromium is needed: {PACKAGE} of Debian, or one of {', '.join(OTHERS)} on the path"
        )
    # On the same file system, so that it enters the cache by rename: two processes at once
    # never see half of it.
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        apt = Apt(Path(scratch) / "apt")
        root = Path(scratch) / "chromium"
        root.mkdir()
        for package in apt.download(apt.missing(PACKAGE, *FONTS)):
            _run(["dpkg-deb", "--extract", str(package), str(root)])
        (root / "fonts.conf").write_text(_fonts_configuration(directory))
        shutil.rmtree(directory, ignore_errors=True)
        try:
            root.rename(directory)
        except OSError:
            # Another process was first.
            if not directory.exists():
                raise


class Apt:
    """apt with folders of its own: it knows what is installed, and changes nothing of it."""

    def __init__(self, directory: Path) -> None:
        self._downloads = directory / "downloads"
        lists = directory / "state" / "lists" / "partial"
        for each in (self._downloads, lists, directory / "cache" / "archives" / "partial"):
            each.mkdir(parents=True)
        # As root apt becomes another user to fetch, who cannot enter a temporary directory.
        self._options = [
            f"--option=Dir::State={directory / 'state'}",
            f"--option=Dir::Cache={directory / 'cache'}",
            "--option=Dir::State::status=/var/lib/dpkg/status",
            "--option=APT::Sandbox::User=",
            "--option=Acquire::Retries=3",
            "--option=Debug::NoLocking=true",
        ]
        # A list that cannot be had matters only if a package is missing then.
        self._run("update", check=False)

    def missing(self, *packages: str) -> list[str]:
        """Return `name=version` of all that would be installed with these packages."""
        said = self._run("install", "--simulate", "--no-install-recommends", *packages)
        return to_install(said)

    def download(self, packages: list[str]) -> list[Path]:
        """Return the files of packages, each given as `name=version`."""
        self._run("download", *packages)
        return sorted(self._downloads.glob("*.deb"))

    def _run(self, *arguments: str, check: bool = True) -> str:
        command = ["apt-get", "--quiet", "--yes", *self._options, *arguments]
        return _run(command, directory=self._downloads, check=check)


def to_install(said: str) -> list[str]:
    """Return `name=version` of each package that a simulation of apt installs or upgrades."""
    return [f"{name}={version}" for name, version in _TO_INSTALL.findall(said)]


def _run(command: list[str], *, directory: Path | None = None, check: bool = True) -> str:
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
        raise MissingCounterpart(f"{command[0]} could not fetch Chromium: {said[-1000:]}")
    return answer.stdout


def _fonts_configuration(directory: Path) -> str:
    """Return which fonts stand for the families that a page names in general."""
    families = {"sans-serif": "Sans", "serif": "Serif", "monospace": "Mono"}
    aliases = "".join(
        f"<alias binding='same'><family>{family}</family>"
        f"<prefer><family>Liberation {name}</family></prefer></alias>"
        for family, name in families.items()
    )
    # Of any other name, and of system-ui, which the browser asks for without one.
    last = "".join(f"<string>{family} Sans</string>" for family in ("Liberation", "DejaVu"))
    return (
        "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
        f"<dir>{directory}/usr/share/fonts</dir><dir>/usr/share/fonts</dir>"
        f"<cachedir>{directory}/fontconfig</cachedir>{aliases}"
        f"<match><edit name='family' mode='append_last'>{last}</edit></match></fontconfig>"
    )
