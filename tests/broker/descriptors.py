"""Which files and sockets this process has open."""

from __future__ import annotations

import os

_DIRECTORY = "/proc/self/fd"


def open_descriptors() -> set[tuple[str, str]]:
    """Every descriptor, by its number and what it stands for.

    Look for new ones by ``<=``: what earlier tests have dropped may be closed at any moment, when
    the garbage collector comes to it.
    """
    found = set()
    for number in os.listdir(_DIRECTORY):
        try:
            found.add((number, os.readlink(f"{_DIRECTORY}/{number}")))
        except FileNotFoundError:  # What the directory itself was read by.
            continue
    return found
