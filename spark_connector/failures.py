"""A failure with the name of the pipeline that it ended, and with what has failed in it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.sentences import (
    OF_A_USER,
    is_of_a_user,
    known_sentence_of,
    sentence_of,
)
from barnabas.spark_connector.spark_process import SparkDied


class QueryFailed(Refusal):
    """A query ended with a failure, or could not begin; the message says which one and why."""

    def __init__(self, name: str, failure: BaseException) -> None:
        self._name = name
        self.failure = failure
        is_a_sentence = isinstance(failure, SinkError | Refusal)
        self.say(str(failure) if is_a_sentence else sentence_of(failure))

    def say(self, sentence: str) -> None:
        """Have this sentence behind the pipeline's name."""
        self.sentence = sentence
        self.args = (f"{self._name}: {sentence}",)

    @property
    def was_asked_to(self) -> bool:
        """Whether somebody has asked Spark to end."""
        return isinstance(self.failure, SparkDied) and self.failure.was_asked_to


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
    """Put the pipelines' names in front of what has failed below all of them, or nobody knows."""
    try:
        yield
    except (WrongUse, QueryFailed, OutputClosed):
        raise
    except Exception as error:
        raise QueryFailed(names, error) from error


class OutputClosed(Refusal):
    """Nobody reads the lines of the batches any more."""

    def __init__(self) -> None:
        super().__init__("nobody reads standard output any more, so the pipelines were stopped")


class Raised(Refusal):
    """A part of a pipeline raised an error before its query was started."""


@contextmanager
def raising(function: str) -> Iterator[None]:
    """Say of what is raised inside that this part of a pipeline raised it, and where."""
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
    """Say of what Spark raises inside that a query was to begin: often it only names a value."""
    try:
        yield
    except (Refusal, SinkError):
        raise
    except Exception as error:
        known = known_sentence_of(error)
        raise Raised(known or f"Spark cannot begin the query: {sentence_of(error)}") from error


def _sentence(function: str, error: Exception) -> str:
    """Say what was raised and where; of Spark's reports, which have many lines, the sentence."""
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
