"""Spark's failures, one sentence each: ours is taken out of Spark's report, others are named.

Spark wraps what failed in reports of many lines, Python's traceback and Java's stack inside them.
With `--verbose` they are shown whole.
"""

from __future__ import annotations

import re
from typing import Final

_OURS: Final = re.compile(r"^barnabas\.spark_connector\.\w+\.[A-Z]\w+: (.+)$", re.MULTILINE)
_PYTHON: Final = re.compile(
    r"^((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failpoint)): (.*)$",
    re.MULTILINE,
)
_JAVA_CAUSE: Final = re.compile(r"^\s*Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_JAVA_RAISED: Final = re.compile(r"^: ([\w.$]+): (.*)$", re.MULTILINE)
"""As Py4J reports what a call has raised."""
_JAVA_PACKAGE: Final = re.compile(r"(org|com|java|javax|scala|py4j|sun|jdk)\.")
_JAVA_WRAPPERS: Final = ("Py4J", "SparkException", "StreamingQueryException", "ExecutionException")
_SUPPRESSED: Final = re.compile(r"^\s+Suppressed: .*?(?=^Caused by: |\Z)", re.MULTILINE | re.DOTALL)
"""What went wrong on top of a failure while Spark cleared up after it."""
_SQL_HINT: Final = re.compile(r" SQLSTATE: \w+$")
_TRACEBACK: Final = "Traceback (most recent call last)"
_FRAME: Final = re.compile(r'^ *File "([^"]+)", line (\d+)', re.MULTILINE)
_NOT_A_USERS: Final = re.compile(
    r"/(pyspark|py4j|barnabas/spark_connector|site-packages|python3\.\d+)/|pyspark\.zip|^<"
)

_CONTENDED: Final = (
    r"CONCURRENT_STREAM_LOG_UPDATE|Concurrent update to the log|multiple streaming jobs"
)
_OVERTAKEN: Final = re.compile(
    rf"{_CONTENDED}|^barnabas\.spark_connector\.errors\.Overtaken: ", re.MULTILINE
)

# What Spark and the Java client say, and what it means for a pipeline.
_KNOWN: Final = (
    (
        _CONTENDED,
        "another driver runs this pipeline with the same checkpoint: stop one of them",
    ),
    (
        (
            r"offset was changed from|Cannot fetch offset|OffsetOutOfRange|data loss|"
            r"KAFKA_DATA_LOSS|may have been missed"
        ),
        (
            "records that were to be read next are gone from the source topic (deleted, or older"
            " than its retention): start with a new checkpoint, or accept the loss with the source"
            " option failOnDataLoss=false"
        ),
    ),
    (
        r"UnknownTopicOrPartition|UNKNOWN_TOPIC_OR_PARTITION|This server does not host this",
        "a topic of the pipeline does not exist: create it, then start again",
    ),
    (
        (
            r"Timed out waiting for a node assignment|Failed to construct kafka|"
            r"kafka\.common\.errors\.TimeoutException|"
            r"TimeoutException: .*(metadata|node assignment)|Connection to node .* could not be"
        ),
        (
            "the broker did not answer Spark's Kafka client in time: is it running, and reachable"
            " under the address it advertises?"
        ),
    ),
    (
        # The second: before it has said its first word.
        (
            r"Python worker exited unexpectedly|"
            r"EOFException\n[^\n]+\n\s+at org\.apache\.spark\.api\.python\.PythonWorkerFactory"
        ),
        (
            "a Python worker process died in the middle of a batch: it was killed, as the kernel"
            " does when memory runs out, or crashed; start again, the batch is run again"
        ),
    ),
    (
        r"Failed to find data source: kafka",
        (
            "Spark has no Kafka connector: leave --conf spark.jars and spark.jars.packages out, and"
            " it is fetched"
        ),
    ),
    (
        r"OutOfMemoryError",
        (
            "Java ran out of memory: give it more with --conf spark.driver.memory=4g, or make"
            " batches smaller with the source option maxOffsetsPerTrigger"
        ),
    ),
)


def sentence_of(failure: BaseException) -> str:
    """Return one line that says what has failed."""
    text = _SUPPRESSED.sub("", _report_of(failure))
    if known := _known_in(text):
        return known
    if python := [each for each in _PYTHON.finditer(text) if not _JAVA_PACKAGE.match(each[1])]:
        return _of_python(python[-1])
    for kind, message in reversed(_JAVA_CAUSE.findall(text)):
        name = kind.rpartition(".")[2]
        if message and not name.startswith(_JAVA_WRAPPERS):
            return _line(f"{name}: {message}")
    if raised := _JAVA_RAISED.search(text):
        return _line(raised[2])
    return _line(text.strip().partition("\n")[0] or type(failure).__name__)


def known_sentence_of(failure: BaseException) -> str | None:
    """Return what this failure means for a pipeline, if it is one of those that are known."""
    return _known_in(_SUPPRESSED.sub("", _report_of(failure)))


def _known_in(text: str) -> str | None:
    if ours := _OURS.findall(text):
        return _line(ours[-1])
    return next((sentence for pattern, sentence in _KNOWN if re.search(pattern, text)), None)


def _of_python(found: re.Match[str]) -> str:
    """Return the sentence for an error in a traceback, with its place if it is in a user's file."""
    error = _line(f"{found[1].rpartition('.')[2]}: {found[2]}")
    before = found.string[: found.start()].rpartition(_TRACEBACK)[2]
    places = [each for each in _FRAME.findall(before) if is_of_a_user(each[0])]
    if not places:
        return error
    file, line = places[-1]
    return f"transform raised {error} ({file.rpartition('/')[2]}, line {line})"


def is_of_a_user(file: str) -> bool:
    """Whether a file in a traceback is neither Python's, nor a package's, nor ours."""
    return _NOT_A_USERS.search(file) is None


def is_overtaken(failure: BaseException) -> bool:
    """Whether a query failed because another driver wrote to its checkpoint."""
    return _OVERTAKEN.search(_report_of(failure)) is not None


def _report_of(failure: BaseException) -> str:
    """Return all that is said of a failure, that of what has caused it last.

    Spark puts a failure into others, such as `Writing job failed`, whose text does not have it.
    PySpark keeps what it knows of a Java cause apart from what Python does.
    """
    texts = []
    seen: list[BaseException] = []
    each: BaseException | None = failure
    while each is not None and each not in seen:
        seen.append(each)
        texts.append(str(each))
        each = getattr(each, "_cause", None) or each.__cause__
    return "\n".join(texts)


def _line(text: str) -> str:
    return _SQL_HINT.sub("", " ".join(text.split()))
