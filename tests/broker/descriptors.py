"""The files and sockets that this process has open."""

from __future__ import annotations

import os

_DIRECTORY = "/proc/self/fd"


def open_descriptors() -> set[tuple[str, str]]:
    """Every descriptor, by its number and what it stands for."""
    found = set()
    for number in os.listdir(_DIRECTORY):
        try:
            found.add((number, os.readlink(f"{_DIRECTORY}/{number}")))
        except FileNotFoundError:  # What the directory itself was read by.
            continue
    return found


def left_open_since(before: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the descriptors opened since ``before`` and not closed, without foreign sockets.

    The garbage collector may close objects of earlier tests at any moment; until then the threads
    of their clients connect at any time.
    """
    known = {target for _, target in before}
    return {
        (number, target)
        for number, target in open_descriptors() - before
        if target in known or not target.startswith("socket:")
    }
