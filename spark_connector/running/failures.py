"""A failure with the name of the pipeline that it ended, and with what has failed in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.session.spark_process import SparkDied


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
