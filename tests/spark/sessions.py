"""The processes of a session: all processes that Spark starts stay in the session of its
first one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path


def kill_session(leader: subprocess.Popen[bytes]) -> None:
    """kill -9 for the leader, which must have a session of its own, and all that it started."""
    while members := session_members(leader.pid):
        for each in members:
            _kill(each)
        leader.poll()
    leader.wait()


def session_members(leader: int) -> list[int]:
    """Return a session's living processes; Spark's daemon leaves the group, not the session."""
    return [pid for pid, status in _living() if int(status[3]) == leader]


def executors_of(leader: int) -> list[int]:
    """Return the executors of Spark in a session."""
    members = session_members(leader)
    return [pid for pid in members if b"CoarseGrainedExecutorBackend" in command_of(pid)]


def children_of(parent: int) -> list[int]:
    """Return the living processes that one has started itself."""
    return [pid for pid, status in _living() if int(status[1]) == parent]


def lives(pid: int) -> bool:
    """Whether a process runs still."""
    return _status(pid)[:1] not in ([], ["Z"])


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, or None if the process has ended."""
    status = _status(pid)
    return int(status[1]) if status else None


def command_of(pid: int) -> bytes:
    """Return a process's command line, empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _living() -> Iterator[tuple[int, list[str]]]:
    """Yield each process with what ``_status`` says; one may end at any moment."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            status = _status(int(entry.name))
            if status and status[0] != "Z":
                yield int(entry.name), status


def _status(pid: int) -> list[str]:
    """Return state, parent, group, session and what follows; nothing when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
