"""A failure with the name of the pipeline that it ended, and with what has failed in it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.sentences import is_of_a_user, known_sentence_of, sentence_of
from barnabas.spark_connector.spark_process import SparkDied


class QueryFailed(Refusal):
    """A query ended with a failure, or could not begin; the message says which one and why."""

    def __init__(self, name: str, failure: BaseException) -> None:
        self.failure = failure
        is_a_sentence = isinstance(failure, SinkError | Refusal)
        super().__init__(f"{name}: {failure if is_a_sentence else sentence_of(failure)}")


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Put a pipeline's name in front of what is refused, or has failed, inside."""
    try:
        yield
    except (WrongUse, WrongOption) as error:
        raise WrongUse(f"{name}: {error}") from error
    except Exception as error:
        raise QueryFailed(name, error) from error


@contextmanager
def failures_of_spark(names: str) -> Iterator[None]:
    """Put the pipelines' names in front of it where Spark itself has died below them."""
    try:
        yield
    except SparkDied as error:
        raise QueryFailed(names, error) from error


class Raised(Refusal):
    """A part of a pipeline raised an error before its query was started."""


@contextmanager
def raising(function: str) -> Iterator[None]:
    """Say of what is raised inside that this part of a pipeline raised it, and where."""
    try:
        yield
    except (Refusal, SinkError):
        raise
    except Exception as error:
        known = known_sentence_of(error)
        raise Raised(known or f"{function} raised {_description(error)}") from error


def _description(error: Exception) -> str:
    """Return what was raised and where; of Spark's reports, which have many lines, the sentence."""
    kind = type(error)
    # What Java has raised says so in its text.
    message = sentence_of(error) if kind.__module__.startswith("py4j") else _first_line(error)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_of_a_user(frame.filename)
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{kind.__name__}: {message}{place}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
