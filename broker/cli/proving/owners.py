"""Owners of connections: the process that has opened one, by the tables of Linux."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _INODE = 1, 2, 9
_SESSION: Final = 3
"""Field of ``/proc/PID/stat`` after the name of the program."""


def owner_of(client_port: int, server_port: int, sessions: Mapping[int, str]) -> str:
    """Return the name of the session whose process has a connection, or an empty text.

    ``sessions`` has the name of each session by its ID.
    """
    inode = _inode_of(client_port, server_port)
    if inode is None:
        return ""
    for session, name in sessions.items():  # The program itself, more often than its children.
        if _has_socket(session, inode):
            return name
    for pid, session in _processes():
        if session in sessions and _has_socket(pid, inode):
            return sessions[session]
    return ""


def _inode_of(client_port: int, server_port: int) -> str | None:
    for table in _TABLES:
        if table.exists():
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                ports = _port(fields[_LOCAL]), _port(fields[_REMOTE])
                if ports == (client_port, server_port):
                    return fields[_INODE]
    return None


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _processes() -> Iterator[tuple[int, int]]:
    """Yield each process with its session."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:  # It has ended.
                continue
            yield int(name), int(stat.rpartition(")")[2].split()[_SESSION])


def _has_socket(pid: int, inode: str) -> bool:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    return any(_link(pid, each) == f"socket:[{inode}]" for each in descriptors)


def _link(pid: int, descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return ""
