"""A library that is preloaded into a broker: its file calls fail, or what it does is written down.

`Shim(directory)` compiles it there. A broker that is started with its ``variables`` does as
``fail`` says, from any moment on; with those of ``tracing`` it writes a trace, see ``events``.
"""

from __future__ import annotations

import mmap
import struct
import subprocess
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.compiler import compiler

SHORT = -1
"""In place of an error: the call does half of its work."""
FOR_EVER = 1 << 30
_CONTROL = struct.Struct("<5i32s256s")
_HITS = struct.Struct("<i")
_HITS_AT = 16
_EVENT = struct.Struct("<IIQQ")


class Kind(IntEnum):
    """The kind of an event in a trace."""

    WRITTEN = 1
    WRITTEN_DURABLY = 2
    SYNC_BEGUN = 3
    SYNCED = 4
    SENT = 5


class Event(NamedTuple):
    """One call: a write and a sync are noted when they return, a send before it begins."""

    kind: Kind
    descriptor: int
    position: int
    data: bytes


class Shim:
    """The library, and the page that controls it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._library = directory / "shim.so"
        source = Path(__file__).with_name("shim.c")
        options = ("-O2", "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl")
        subprocess.run([compiler(), *options, "-lpthread"], check=True)
        self._control_path = directory / "control"
        self._control_path.write_bytes(bytes(_CONTROL.size))
        with self._control_path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), _CONTROL.size)

    @property
    def variables(self) -> dict[str, str]:
        """For the environment of a broker that is to be hurt."""
        return {"LD_PRELOAD": str(self._library), "SHIM_CONTROL": str(self._control_path)}

    def tracing(self, path: Path, traced: str) -> dict[str, str]:
        """For one whose writes to files with ``traced`` in their path are to be watched."""
        return {
            "LD_PRELOAD": str(self._library),
            "SHIM_TRACE": str(path),
            "SHIM_TRACED": traced,
        }

    def fail(self, kind: str, path: str, error: int, *, skip: int = 0, times: int = 1) -> None:
        """Make ``times`` calls fail, on files with ``path`` in their path, after ``skip``."""
        self.stop()
        fields = (error, skip, times, 0, kind.encode(), path.encode())
        self._control[:] = _CONTROL.pack(0, *fields)
        self._control[:4] = _HITS.pack(1)

    def stop(self) -> None:
        """End all faults."""
        self._control[:4] = _HITS.pack(0)

    @property
    def hits(self) -> int:
        """The number of calls that have failed since the last ``fail``."""
        (hits,) = _HITS.unpack_from(self._control, _HITS_AT)
        return int(hits)


def events(path: Path) -> Iterator[Event]:
    """Every event of a trace, in the order in which they happened."""
    data, at = memoryview(path.read_bytes()), 0
    while at < len(data):
        kind, descriptor, position, size = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield Event(Kind(kind), descriptor, position, bytes(data[at : at + size]))
        at += size
