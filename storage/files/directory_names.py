"""Names of the directories in a data directory, as Apache Kafka gives them and as we do.

A data directory may be the root of a file system, where ``lost+found`` and a NAS's ``.snapshot``
lie beside the partitions and may not even be listed. So the name decides first: a directory is
listed only if a partition can have its name.
"""

import re
from typing import Final

DELETED_SUFFIX: Final = "-delete"
LOADING_SUFFIX: Final = "-loading"
"""Suffix of a directory that is filled before it gets its partition's name."""

KRAFT_DIRECTORY: Final = "__cluster_metadata-0"
"""Kafka's own metadata log: named like a partition, and of no topic."""

_TOPIC: Final = r"[a-zA-Z0-9._-]{1,249}"
_PARTITION: Final = re.compile(rf"({_TOPIC})-([0-9]{{1,10}})")
_ASIDE: Final = re.compile(rf"{_TOPIC}-[0-9]{{1,10}}\.[^.]+-([a-z]+)")
_HIDDEN: Final = "."


def partition_of(name: str) -> tuple[str, int] | None:
    """Return the topic and the partition in a directory's name, or None."""
    found = _PARTITION.fullmatch(name)
    return None if found is None or name == KRAFT_DIRECTORY else (found[1], int(found[2]))


def is_hidden(name: str) -> bool:
    """Return whether a name may be that of a tool, such as ``.Trash-1000``."""
    return name.startswith(_HIDDEN)


def has_suffix(name: str, *suffixes: str) -> bool:
    """Return whether a directory is a renamed partition with one of the suffixes.

    ``orders-0.<unique>-delete`` is, ``do-not-delete`` is not.
    """
    found = _ASIDE.fullmatch(name)
    return found is not None and f"-{found[1]}" in suffixes


def is_kafkas_own(name: str) -> bool:
    """Return whether Kafka renamed the partition for its own use.

    ``-stray`` is a replica of a topic that was deleted or created again while Kafka was down,
    ``-future`` a replica on its way from one of Kafka's log directories to another.
    """
    return has_suffix(name, "-stray", "-future")
