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
_JAVA_PACKAGE: Final = re.compile(r"(org|com|java|javax|scala|py4j|sun|jdk)\.")
_JAVA_WRAPPERS: Final = ("Py4J", "SparkException", "StreamingQueryException", "ExecutionException")
_SUPPRESSED: Final = re.compile(r"^\s+Suppressed: .*?(?=^Caused by: |\Z)", re.MULTILINE | re.DOTALL)
"""What went wrong on top of a failure while Spark cleared up after it."""
_SQL_HINT: Final = re.compile(r" SQLSTATE: \w+$")

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
            r"TimeoutException: .*(metadata|node assignment)|Connection to node .* could not be"
        ),
        (
            "the broker did not answer Spark's Kafka client in time: is it running, and reachable"
            " under the address it advertises?"
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
    if ours := _OURS.findall(text):
        return _line(ours[-1])
    for pattern, sentence in _KNOWN:
        if re.search(pattern, text):
            return sentence
    if python := [each for each in _PYTHON.findall(text) if not _JAVA_PACKAGE.match(each[0])]:
        kind, message = python[-1]
        return _line(f"{kind.rpartition('.')[2]}: {message}")
    for kind, message in reversed(_JAVA_CAUSE.findall(text)):
        name = kind.rpartition(".")[2]
        if message and not name.startswith(_JAVA_WRAPPERS):
            return _line(f"{name}: {message}")
    return _line(text.strip().partition("\n")[0] or type(failure).__name__)


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
