"""Pipeline of Spark in a Python file: its topics, and the judge that the file names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.proving.own_judge import top_level_of

JUDGE: Final = "JUDGE"
"""Name at the top level of the file: the path of its judge, from the directory of the file."""


class Declared(NamedTuple):
    """Options of a run that a file has; ``judge`` is empty if it names none."""

    source: str
    target: str
    judge: str


def declared(path: str) -> Declared:
    """Return the options of a file with one pipeline between two topics; raises CommandError."""
    # The file can import modules beside it, as when `barnabas.spark run` reads it.
    sys.path.insert(0, str(Path(path).parent.absolute()))
    found = top_level_of(path, "__pipeline__")
    pipelines = [
        each
        for each in found.values()
        if not isinstance(each, type) and hasattr(each, "source") and hasattr(each, "sink")
    ]
    if len(pipelines) != 1:
        raise CommandError(f"{path} has {len(pipelines)} pipelines: add --input, --output", USAGE)
    (pipeline,) = pipelines
    sources: list[str] = getattr(pipeline.source, "topics", list)()
    if len(sources) != 1 or not pipeline.sink.topic:
        raise CommandError(f"{path} names no single topic: add --input and --output", USAGE)
    judge = found.get(JUDGE)
    return Declared(
        sources[0], pipeline.sink.topic, str(Path(path).parent / judge) if judge else ""
    )
