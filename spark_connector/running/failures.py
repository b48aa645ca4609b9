"""Failures with the name of their pipeline and its failed part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.failures.sentences import sentence_of
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.session.spark_process import SparkDied


class QueryFailed(Refusal):
    """A query failed or could not start; the message has its name and the reason."""

    def __init__(self, name: str, failure: BaseException) -> None:
        self._name = name
        self.failure = failure
        is_a_sentence = isinstance(failure, SinkError | Refusal)
        self.set_sentence(str(failure) if is_a_sentence else sentence_of(failure))

    def set_sentence(self, sentence: str) -> None:
        """Use this sentence after the pipeline's name."""
        self.sentence = sentence
        self.args = (f"{self._name}: {sentence}",)

    @property
    def has_received_sigterm(self) -> bool:
        """Whether SIGTERM has ended Spark's Java process."""
        return isinstance(self.failure, SparkDied) and self.failure.has_received_sigterm


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Add a pipeline's name to refusals and failures of the block."""
    try:
        yield
    except (WrongUse, WrongOption) as error:
        raise WrongUse(f"{name}: {error}") from error
    except Exception as error:
        raise QueryFailed(name, error) from error


@contextmanager
def failures_of_spark(names: str) -> Iterator[None]:
    """Add the pipelines' names to a failure of the block that belongs to no single one."""
    try:
        yield
    except (WrongUse, QueryFailed, OutputClosed):
        raise
    except Exception as error:
        raise QueryFailed(names, error) from error


class OutputClosed(Refusal):
    """The reader of the lines of batches has closed standard output."""

    def __init__(self) -> None:
        super().__init__("standard output was closed by its reader, so the pipelines were stopped")
