"""Judge of a user: a function in a Python file, for programs that aggregate.

The file has ``def judge(inputs, outputs)``, which returns or yields a text for each problem. Both
arguments are lists of records with ``key``, ``value``, ``headers``, ``partition``, ``offset`` and
``timestamp``: the committed inputs, and the outputs as a `read_committed` consumer gets them.

It can have ``def inputs(number)``, which returns the key and the value of an input as texts, and
``TABLES``: other topics that the program reads, each with a list of such records. They are written
before the program starts.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.topic_reader import ReceivedRecord

JUDGE: Final = "JUDGE"
"""Name at the top level of a pipeline's file: the path of its judge, from the file's directory."""
OwnJudge: TypeAlias = Callable[
    [Sequence[ReceivedRecord], Sequence[ReceivedRecord]], Iterable[str] | None
]


class JudgeFile(NamedTuple):
    """Contents of a judge's file."""

    judge: OwnJudge
    inputs: Callable[[int], NewRecord] | None = None
    """Returns the input of a number."""
    tables: Mapping[str, Sequence[NewRecord]] = MappingProxyType({})
    """Records of other topics, by topic."""


def judge_file(path: str) -> JudgeFile:
    """Return the contents of a file; raises CommandError."""
    found = top_level_of(path)
    judge, inputs = found.get("judge"), found.get("inputs")
    if not callable(judge):
        raise CommandError(f"{path} has no function judge(inputs, outputs)", USAGE)
    tables = {
        topic: [_record(*each) for each in records]
        for topic, records in found.get("TABLES", {}).items()
    }
    own_inputs = None if inputs is None else lambda number: _record(*inputs(number))
    return JudgeFile(judge, own_inputs, tables)


def top_level_of(path: str, run_name: str = "<run_path>") -> dict[str, Any]:
    """Run a file and return what it has at its top level, by name; raises CommandError."""
    try:
        return runpy.run_path(path, run_name=run_name)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None
    except Exception as error:
        raise CommandError(f"{path} cannot be loaded: {error!r}", USAGE) from error


def _record(key: str | None, value: str) -> NewRecord:
    return NewRecord(None if key is None else key.encode(), value.encode(), ())


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
