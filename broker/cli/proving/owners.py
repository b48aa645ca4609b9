"""Owners of connections: the process that has opened one, by the tables of Linux."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.broker.cli.proving.guard import NAME, values_of

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _INODE = 1, 2, 9


def owner_of(client_port: int, server_port: int, names: Mapping[str, str]) -> str:
    """Return the name of the process that has a connection, or an empty text.

    ``names`` has the names by the mark that a process and its children have in their environment.
    """
    inode = _inode_of(client_port, server_port)
    if inode is not None:
        for process, mark in values_of(NAME):
            if mark in names and _has_socket(process, inode):
                return names[mark]
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
