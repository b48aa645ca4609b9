"""Data directories that Apache Kafka left, each in an archive in tests/interop/recorded/.

A directory stays useful only at the time at which Apache Kafka left it: later its records, offsets
and open transactions expire. So Barnabas reads it by a clock that starts at that time.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.archives import extract
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas

LATER_S = 1.0
"""Time between the last change of a file and the start of Barnabas."""


class Stopped(NamedTuple):
    """A data directory that Apache Kafka left."""

    observed: Any
    """Plain data that the script returned of Apache Kafka before it stopped."""
    left_s: float | None
    """Time of its last change in seconds since the epoch, or `None` if it has just been left."""

    def open(self, barnabas: BrokerProcess) -> BrokerProcess:
        """Return ``barnabas`` with a clock that starts when Apache Kafka left the directory."""
        if self.left_s is not None:
            assert isinstance(barnabas, EmbeddedBarnabas), "a process has the machine's clock"
            barnabas.begin_at(self.left_s + LATER_S)
            # Clients of the tests stamp their records by the machine's clock.
            barnabas.overrides["log.message.timestamp.after.max.ms"] = str(2**63 - 1)
        return barnabas


def pack(directory: Path, archive: Path) -> None:
    """Write the files of ``directory`` into ``archive``, which is replaced."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(directory.rglob("*")):
            member = packed.gettarinfo(path, path.relative_to(directory).as_posix())
            # Nothing of the machine and of the user that recorded it.
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if not path.is_file():
                packed.addfile(member)
                continue
            with path.open("rb") as content:
                packed.addfile(member, content)


def unpack(archive: Path, directory: Path) -> float:
    """Write the files of ``archive`` into ``directory``; return the time of the latest of them."""
    directory.mkdir(parents=True)
    return max((member.mtime for member in extract(archive, directory)), default=0.0)
