"""Judge of a user: a function in a Python file, for programs that aggregate.

The file has ``def judge(inputs, outputs)``, which returns or yields a text for each problem. Both
arguments are lists of records with ``key``, ``value``, ``headers``, ``partition``, ``offset`` and
``timestamp``: the committed inputs, and the outputs as a `read_committed` consumer gets them.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.client.topic_reader import ReceivedRecord

OwnJudge: TypeAlias = Callable[
    [Sequence[ReceivedRecord], Sequence[ReceivedRecord]], Iterable[str] | None
]


def own_judge(path: str) -> OwnJudge:
    """Return the function of a file; raises CommandError."""
    try:
        found: object = runpy.run_path(path).get("judge")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None
    except Exception as error:
        raise CommandError(f"{path} cannot be loaded: {error!r}", USAGE) from error
    if not callable(found):
        raise CommandError(f"{path} has no function judge(inputs, outputs)", USAGE)
    return found
