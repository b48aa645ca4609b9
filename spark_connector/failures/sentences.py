"""One sentence for each failure of a query: the sink's own, or a name for one of Spark's.

Spark wraps failures in reports of many lines, with Python's traceback and Java's stack. `--verbose`
prints the whole report.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.spark_connector.failures.lost_workers import has_lost_a_worker
from barnabas.spark_connector.failures.worker_python import missing_source_sentence

_OURS: Final = re.compile(r"^barnabas\.spark_connector\.(?:\w+\.)+[A-Z]\w+: (.+)$", re.MULTILINE)
_PYTHON: Final = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$")
"""Line after the frames of a traceback."""
_JAVA_CAUSE: Final = re.compile(r"^\s*Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_JAVA_RAISED: Final = re.compile(r"^: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
"""Line of Py4J with the exception of a call."""
_LOST_TASK: Final = re.compile(
    r"most recent failure: Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): "
    r"([\w.$]+)(?:: (.*))?$",
    re.MULTILINE,
)
_JAVA_PACKAGE: Final = re.compile(r"(org|com|java|javax|scala|py4j|sun|jdk)\.")
_JAVA_WRAPPERS: Final = ("Py4J", "SparkException", "StreamingQueryException", "ExecutionException")
_SUPPRESSED: Final = re.compile(r"^\s+Suppressed: .*?(?=^Caused by: |\Z)", re.MULTILINE | re.DOTALL)
"""Errors of Spark's cleanup after a failure."""
_SQL_HINT: Final = re.compile(r" SQLSTATE: \w+;?$")
OF_A_USER: Final = "transform raised "
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

_TOPIC_IS_MISSING: Final = "a topic of the pipeline does not exist: create it, then start again"
_BROKER_IS_SILENT: Final = (
    "the broker did not answer Spark's Kafka client in time: is it running, and reachable under the"
    " address it advertises?"
)

_NO_DATA_SOURCE: Final = re.compile(
    r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: ([\w.-]+?)\. "
)
_OF_JARS: Final = ("kafka", "avro")
"""Formats that Spark has only with an additional jar."""
_NOT_WRITTEN: Final = "nothing could be written to the partition"
_WORKER_DIED: Final = "a Python worker process died in the middle of a batch"
_WORKER_IS_LOST: Final = (
    f"{_WORKER_DIED}: it was killed, as the kernel does when memory runs out, or crashed; start"
    " again, the batch is run again"
)
_OF_TOPICS: Final = (_TOPIC_IS_MISSING, _BROKER_IS_SILENT, _NOT_WRITTEN)

# Texts of Spark and the Java client, with the sentence for a pipeline; groups are inserted.
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
        r"(?:SaslAuthentication|SslAuthentication|UnsupportedSaslMechanism)Exception: ([^\n]+)",
        (
            r"Spark's Kafka client was not let in: \1; the options kafka.security.*, kafka.sasl.*"
            " and kafka.ssl.* say how to get in"
        ),
    ),
    (
        r"UnknownTopicOrPartition|UNKNOWN_TOPIC_OR_PARTITION|This server does not host this",
        _TOPIC_IS_MISSING,
    ),
    (
        r"Expiring \d+ record\(s\) for ([\w.-]+-\d+): ?(\d+) ms",
        (
            rf"{_NOT_WRITTEN} \1 for \2 ms: is the broker running, and has the topic still that"
            " partition?"
        ),
    ),
    (
        (
            r"Timed out waiting for a node assignment|Failed to construct kafka|"
            r"kafka\.common\.errors\.TimeoutException|"
            r"TimeoutException: .*(metadata|node assignment)|Connection to node .* could not be"
        ),
        _BROKER_IS_SILENT,
    ),
    (
        r"ModuleNotFoundError: No module named 'barnabas'",
        (
            "the Python of Spark's workers has no package barnabas: it has to be installed there as"
            " it is beside the driver; spark.pyspark.python says which Python they use"
        ),
    ),
    (
        r"^Error from python worker:\n(?:  [^\n]*\n)*?  (\S[^\n]*)\nPYTHONPATH was:$",
        r"Spark's Python workers do not start: \1",
    ),
    (
        r"Failed to find data source: kafka",
        (
            "Spark has no Kafka connector that works: leave it out of --packages and --conf"
            " spark.jars, and it is fetched"
        ),
    ),
    (
        r"^[\w ]+ near index \d+$",
        "the source's pattern= is no regular expression of Java's, which Spark takes",
    ),
    (
        r"AVRO_NOT_LOADED|Failed to find data source: avro",
        (
            "Spark's functions for Avro are not there: add them with --packages"
            " org.apache.spark:spark-avro_2.13:VERSION, which is that of PySpark"
        ),
    ),
    (
        r"No space left on device|Disk quota exceeded",
        (
            "a disk is full: that of the checkpoint, or the one that Spark works on (/tmp, or what"
            " --conf spark.local.dir names)"
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
    """Return one line that names the failure."""
    texts = _texts_of(failure)
    text = _SUPPRESSED.sub("", "\n".join(texts))
    python = _python_in(text)
    if known := _known_in(failure, text, python):
        return known
    if python:
        return python
    for kind, message in reversed(_JAVA_CAUSE.findall(text)):
        name = kind.rpartition(".")[2]
        if message and not name.startswith(_JAVA_WRAPPERS):
            # Spark's own messages start with their names.
            return _line(message if message.startswith("[") else f"{name}: {message}")
    if raised := _LOST_TASK.search(text) or _JAVA_RAISED.search(text):
        return _of_java(raised[1].rpartition(".")[2], raised[2] or "")
    first_lines = [each.strip().partition("\n")[0] for each in texts]
    # Some only announce a failure, which follows in the cause.
    said = [each for each in first_lines if each and not each.endswith(":")]
    return _line(said[0] if said else type(failure).__name__)


def known_sentence_of(failure: BaseException) -> str | None:
    """Return the sentence of a known failure, or `None`."""
    text = _SUPPRESSED.sub("", "\n".join(_texts_of(failure)))
    return _known_in(failure, text, _python_in(text))


def _known_in(failure: BaseException, text: str, python: str | None) -> str | None:
    if ours := _OURS.findall(text):
        return _line(ours[-1])
    if python is not None and python.startswith(OF_A_USER):
        return None  # A user's error can have any message.
    if (missing := _NO_DATA_SOURCE.search(text)) and missing[1] not in _OF_JARS:
        return missing_source_sentence(missing[1])
    for pattern, sentence in _KNOWN:
        if found := re.search(pattern, text, re.MULTILINE):
            return found.expand(sentence)
    return _WORKER_IS_LOST if has_lost_a_worker(text + _stacks_of(failure)) else None


def _python_in(text: str) -> str | None:
    """Return the sentence for the last traceback, with its place if it is in a user's file."""
    before, traceback, after = text.rpartition(_TRACEBACK)
    if not traceback:
        return None
    frames: list[str] = []
    for line in after.splitlines()[1:]:
        if line[:1].isspace() or not line:
            frames.append(line)
            continue
        found = _PYTHON.match(line)
        if found is None or _JAVA_PACKAGE.match(line):
            return _python_in(before)
        return _of_python(found, "\n".join(frames))
    return None


def _of_python(found: re.Match[str], frames: str) -> str:
    name, message = found[1].rpartition(".")[2], found[2]
    error = _line(f"{name}: {message}" if message else name)
    places = [each for each in _FRAME.findall(frames) if is_of_a_user(each[0])]
    if not places:
        return error
    file, line = places[-1]
    return f"{OF_A_USER}{error} ({file.rpartition('/')[2]}, line {line})"


def _of_java(kind: str, message: str) -> str:
    """Return the message of an exception of Java, with its class if it is no sentence."""
    if not message:
        return kind
    return _line(message if " " in message else f"{kind}: {message}")


def is_of_a_user(file: str) -> bool:
    """Return whether a file in a traceback belongs to the user, not to Python or a package."""
    return _NOT_A_USERS.search(file) is None


def may_miss_a_topic(sentence: str) -> bool:
    """Return whether a missing topic may be the cause of a sentence's failure."""
    return sentence.startswith(_OF_TOPICS)


def misses_a_worker(sentence: str) -> bool:
    """Return whether a sentence reports the end of a Python worker."""
    return _WORKER_DIED in sentence


def is_overtaken(failure: BaseException) -> bool:
    """Return whether a query failed because another driver wrote to its checkpoint."""
    return _OVERTAKEN.search("\n".join(_texts_of(failure))) is not None


def _texts_of(failure: BaseException) -> list[str]:
    """Return the texts of a failure and of its causes, in this order.

    Spark wraps a failure in others, such as `Writing job failed`, whose text lacks it. PySpark
    keeps the causes of Java apart from those of Python.
    """
    return [str(each) for each in _with_causes(failure)]


def _stacks_of(failure: BaseException) -> str:
    """Return Java's stacks, which the text of a failure in the driver lacks."""
    stacks = [getattr(each, "_stackTrace", None) or "" for each in _with_causes(failure)]
    return _SUPPRESSED.sub("", "\n".join(["", *stacks]))


def _with_causes(failure: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = failure
    while each is not None and each not in found:
        found.append(each)
        each = getattr(each, "_cause", None) or each.__cause__
    return found


def _line(text: str) -> str:
    return _SQL_HINT.sub("", " ".join(text.split()))
