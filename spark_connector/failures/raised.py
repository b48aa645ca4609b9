"""Errors that a part of a pipeline raises before its query starts, in one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.spark_connector.errors import SinkError
from barnabas.spark_connector.failures.sentences import (
    OF_A_USER,
    is_of_a_user,
    known_sentence_of,
    sentence_of,
)
from barnabas.spark_connector.refusals import Refusal


class Raised(Refusal):
    """A part of a pipeline raised an error before its query started."""


@contextmanager
def raising(function: str) -> Iterator[None]:
    """Replace errors of the block by Raised, with the part of the pipeline and the line."""
    try:
        yield
    except (Refusal, SinkError):
        raise
    except SystemExit as error:
        raise Raised(f"{function} ends Python itself (SystemExit: {error.code})") from error
    except Exception as error:
        raise Raised(_sentence(function, error)) from error


@contextmanager
def beginning() -> Iterator[None]:
    """Replace Spark's errors at the start of a query, which often lack the key, by Raised."""
    try:
        yield
    except (Refusal, SinkError):
        raise
    except Exception as error:
        known = known_sentence_of(error)
        raise Raised(known or f"Spark cannot begin the query: {sentence_of(error)}") from error


def _sentence(function: str, error: Exception) -> str:
    """Return the error and its line; for Spark's long reports, only their sentence."""
    if known := known_sentence_of(error):
        return known
    kind = type(error)
    is_of_spark = kind.__module__.startswith(("py4j", "pyspark"))
    message = sentence_of(error) if is_of_spark else _first_line(error)
    if message.startswith(OF_A_USER):
        return message
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_of_a_user(frame.filename)
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    what = f"{kind.__name__}: {message}" if message else kind.__name__
    return f"{function} raised {what}{place}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
