"""PostgreSQL's programs for the tests of clusters: Debian's, unpacked without root.

apt finds and fetches them as it does for Chromium; what the machine has installed of the libraries
is used, its PostgreSQL is not. Where there is no apt, a PostgreSQL on the path is taken.

PostgreSQL refuses to run as root. Then its processes belong to `nobody`, who cannot enter root's
cache: they run from a copy in a temporary directory.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from barnabas.spark_connector.session.cache import cache_directory
from tests.counterparts.debian import Apt, enter, extract, installed
from tests.counterparts.errors import MissingCounterpart

PACKAGE = "postgresql"
MAJOR_MIN = 15
_WANTED = re.compile(r"postgresql-(client-)?\d+=|lib")
_UNUSED = re.compile(r"lib(llvm|z3|perl|.*-perl=)")
"""Compiling of queries, and Debian's scripts around the programs."""
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")


class PostgreSql(NamedTuple):
    """The programs of PostgreSQL, and their environment and user."""

    programs: Path
    environment: dict[str, str]
    user: int | None
    """The user of the processes, or None for the caller's own."""

    def version(self) -> int | None:
        """Return its major version; None if it does not start."""
        try:
            answer = subprocess.run(
                [self.programs / "postgres", "--version"],
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = _VERSION.search(answer.stdout)
        return int(found[1]) if found else None

    def start(self, *arguments: str | Path, output: Path) -> subprocess.Popen[bytes]:
        """Start one of the programs; its output is appended to a file."""
        with output.open("ab") as stream:
            return subprocess.Popen(
                [self.programs / arguments[0], *arguments[1:]],
                cwd=output.parent,
                env={**self.environment, "HOME": str(output.parent), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                user=self.user,
                group=None if self.user is None else pwd.getpwuid(self.user).pw_gid,
                extra_groups=None if self.user is None else [],
            )


@functools.cache
def postgresql() -> PostgreSql:
    """Return a PostgreSQL that starts, unpacked into the cache if it does not exist yet."""
    directory = cache_directory() / "postgresql"
    if _unpacked(directory).version() is None:
        try:
            _fetch(directory)
        except MissingCounterpart as missing:
            return _on_the_path(missing)
    if _unpacked(directory).version() is None:
        raise MissingCounterpart(f"PostgreSQL was unpacked to {directory}, but does not start")
    if os.geteuid() != 0:
        return _checked(_unpacked(directory))
    return _checked(_unpacked(_copied(directory), user=pwd.getpwnam("nobody").pw_uid))


def _unpacked(directory: Path, *, user: int | None = None) -> PostgreSql:
    programs = next(directory.glob("usr/lib/postgresql/*/bin"), directory)
    libraries = sorted(
        {str(path.parent) for path in directory.glob("usr/lib/*/lib*.so*")}
        | {str(path.parent) for path in directory.glob("lib/*/lib*.so*")}
    )
    path = os.pathsep.join([*libraries, os.environ.get("LD_LIBRARY_PATH", "")]).strip(os.pathsep)
    environment = {**os.environ, **({"LD_LIBRARY_PATH": path} if path else {})}
    return PostgreSql(programs, environment, user)


def _copied(directory: Path) -> Path:
    """Return a copy that every user may enter; it ends with this process."""
    holder = tempfile.TemporaryDirectory(prefix="postgresql-")
    _COPIES.append(holder)
    root = Path(holder.name)
    root.chmod(0o755)
    return Path(shutil.copytree(directory, root / "root", symlinks=True))


_COPIES: list[tempfile.TemporaryDirectory[str]] = []


def _on_the_path(missing: MissingCounterpart) -> PostgreSql:
    found = shutil.which("postgres")
    if found is None:
        raise missing
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    # Its other programs lie beside it, wherever the link on the path points from.
    return _checked(PostgreSql(Path(found).resolve().parent, dict(os.environ), user))


def _checked(found: PostgreSql) -> PostgreSql:
    version = found.version()
    if version is None or version < MAJOR_MIN:
        raise MissingCounterpart(
            f"PostgreSQL {MAJOR_MIN} or newer is needed, {found.programs} has {version}"
        )
    return found


def _fetch(directory: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise MissingCounterpart(
            f"PostgreSQL {MAJOR_MIN} or newer is needed: {PACKAGE} of Debian, or postgres and its"
            " other programs on the path"
        )
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        apt = Apt(Path(scratch) / "apt", "PostgreSQL")
        root = Path(scratch) / "postgresql"
        root.mkdir()
        extract(apt.download(to_unpack(apt.needed(PACKAGE), installed())), root)
        for each in root.glob("usr/lib/postgresql/*/lib/bitcode"):
            shutil.rmtree(each)
        enter(root, directory)


def to_unpack(needed: list[str], there: set[str]) -> list[str]:
    """Return which of the packages, as `name=version`, to unpack, for what is installed."""
    return [
        each
        for each in needed
        if _WANTED.match(each)
        and not _UNUSED.match(each)
        and (each.startswith("postgresql-") or each.partition("=")[0] not in there)
    ]
