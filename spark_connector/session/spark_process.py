"""Spark's driver process: its Java, its jars, its settings, and its end."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark_connector.failures.sentences import OF_A_USER, misses_a_worker, sentence_of
from barnabas.spark_connector.refusals import Refusal, WrongUse
from barnabas.spark_connector.session.class_path import with_connector
from barnabas.spark_connector.session.java import java_home
from barnabas.spark_connector.session.quiet import ignore_disconnects, quiet_pyspark
from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.stopping import Stop, within
from barnabas.spark_connector.settings.security import SECRETS_OF_SPARK

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

_MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://\S+|yarn"
)
CONNECTOR_CLASS: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_LOST: Final = {"Py4JError", "Py4JNetworkError"}
_STOPPED_ITSELF: Final = re.compile(
    r"stopped SparkContext|SparkContext was shut down|SparkContext has been shut ?down"
)
_DIES_S: Final = 5
"""Time for a process to end after its connections have broken."""
_SHUTS_DOWN_S: Final = 60.0
"""Time for the shutdown of a process; Hadoop's hooks get 30 seconds."""
TOLD_S: Final = 5.0
"""Maximum time between the signals to the first and the last process of a service."""
_LOOK_S: Final = 0.1
_ENDS_S: Final = 30.0
_ENDS_AT_ONCE_S: Final = 5.0
"""Time for Spark to end, normally and after an urgent stop; then it is killed."""
LOCAL_SHUFFLE_PARTITIONS: Final = "8"
"""Spark's default of 200 is for a cluster: each is a task and a state store in each batch."""
UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_SOCKET_DIRECTORY: Final = "spark.python.unix.domain.socket.dir"
_SOCKET_DIRECTORY_MAX: Final = 61
"""Spark appends names of 43 characters, and an address has at most 104."""


def made_ready(master: str | None, given: Mapping[str, str]) -> dict[str, str]:
    """Find Spark's jars and Java; return its settings. Raises Refusal.

    Without a master, spark-submit has already found them.
    """
    if master is None:
        return dict(given)
    settings = with_connector(settings_of(master, given))
    os.environ["JAVA_HOME"] = str(java_home())
    if master.startswith("local"):
        # Otherwise Spark listens on the address of the machine's name.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Otherwise its workers use the `python3` of the PATH, perhaps another Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if python := settings.get("spark.pyspark.python"):
        # Spark reads this setting only for programs that it starts itself.
        os.environ["PYSPARK_PYTHON"] = python
    return settings


def is_submitted() -> bool:
    """Return whether spark-submit runs this program and has started Java."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def spark_session(
    master: str | None, settings: Mapping[str, str], log: SparkLog, stop: Stop
) -> Iterator[SparkSession]:
    """Start Spark after `made_ready`, yield its session, and stop it.

    Without a master, use the Spark of spark-submit. If Spark's end causes a failure of the block,
    raise SparkDied; ``stop`` shows whether the command itself is ending.
    """
    if not log.is_verbose:
        quiet_pyspark()
    from pyspark.sql import SparkSession

    java: Popen[bytes] | None = None
    context_of = _submitted
    with ExitStack() as stack:
        if master is not None:
            all_settings = dict(settings)
            if master.startswith("local"):
                all_settings = stack.enter_context(unix_sockets()) | all_settings
            configuration = _configuration(master, all_settings)
            gateway = _launched(configuration, log)
            java = gateway.proc
            context_of = partial(_context, configuration, gateway, log)
        with _ending(java, log, master, stop):
            yield SparkSession(context_of())


@contextmanager
def _ending(
    java: Popen[bytes] | None, log: SparkLog, master: str | None, stop: Stop
) -> Iterator[None]:
    """Stop Spark after the block; raise the reason if Spark has ended by itself."""
    ends_s = _ENDS_S
    try:
        yield
    except NotStarted:
        raise
    except Exception as error:
        if (death := _death(error, java, log, master, stop)) is not None:
            raise death from error
        raise
    except BaseException:  # Stopped, or Ctrl-C while Spark handles that signal.
        ends_s = _ENDS_AT_ONCE_S
        raise
    finally:
        _end(java, ends_s)


@contextmanager
def unix_sockets() -> Iterator[dict[str, str]]:
    """Yield settings for Unix sockets between Spark and its workers, in a private directory.

    Over TCP each task with few rows waits 40 ms: Spark writes twice before it reads, and the
    second write waits for a delayed acknowledgement. On a cluster the directory would have to be
    on all machines.
    """
    with tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as directory:
        if len(directory) > _SOCKET_DIRECTORY_MAX:
            yield {}
        else:
            yield {UNIX_SOCKETS: "true", _SOCKET_DIRECTORY: directory}


def check_master(master: str) -> None:
    """Refuse a master that is no URL of a cluster manager of Spark."""
    if not _MASTER.fullmatch(master):
        raise WrongUse(
            f"--master {master} is none of Spark's: use local[N], local[*], spark://HOST:PORT, yarn"
            " or k8s://URL"
        )


def settings_of(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings: defaults, replaced by those of the user."""
    ours = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    # Otherwise plans, Spark's UI and its event log show private keys of options.
    ours["spark.redaction.regex"] = SECRETS_OF_SPARK
    if master.startswith("local"):
        ours["spark.sql.shuffle.partitions"] = LOCAL_SHUFFLE_PARTITIONS
    return ours | dict(given)


# ------------------------------------------------------------------------------------------- start


class NotStarted(Refusal):
    """Spark or its Java process refuses the settings, or Spark has no Kafka connector."""


def _submitted() -> SparkContext:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - the settings are in Java
    if SparkConf().get("spark.master", "").startswith("local"):
        # Otherwise its workers use the `python3` of the PATH, perhaps another Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        context = SparkContext()
    except Exception as error:
        raise NotStarted(f"Spark did not start: {sentence_of(error)}") from error
    ignore_disconnects(context._accumulatorServer)  # noqa: SLF001 - it has no other name
    jvm: Any = context._jvm  # noqa: SLF001
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(CONNECTOR_CLASS):
        raise NotStarted(
            "Spark has no Kafka connector: give spark-submit the option"
            ' --jars "$(python -m barnabas.spark jars)"'
        )
    return context


def _configuration(master: str, settings: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    configuration = SparkConf(loadDefaults=False).setMaster(master).setAppName("barnabas")
    for name, value in settings.items():
        configuration.set(name, value)
    return configuration


def _launched(configuration: SparkConf, log: SparkLog) -> Any:  # noqa: ANN401 - it has no type
    """Start a Java process; return the connection, which has the process as `proc`."""
    from pyspark import java_gateway
    from pyspark.errors import PySparkRuntimeError

    started: list[Popen[bytes]] = []

    def start(*arguments: Any, **more: Any) -> Popen[bytes]:  # noqa: ANN401 - as Popen
        started.append(Popen(*arguments, **more))  # noqa: S603 - spark-submit
        return started[0]

    module: Any = java_gateway
    module.Popen = start
    try:
        return module.launch_gateway(configuration, popen_kwargs=log.popen_arguments())
    except PySparkRuntimeError as error:
        raise NotStarted(f"Spark's Java process did not start: {log.reason()}") from error
    except BaseException as error:
        for java in started:
            is_lost = isinstance(error, Exception) and has_lost_java(error)
            if is_lost and (end := _end_of(java)) is not None:
                raise _died_when_it_started(end, log) from error
            # No other code stops it yet, and by itself it would first resolve packages.
            java.kill()
        raise
    finally:
        module.Popen = Popen


def _context(
    configuration: SparkConf,
    gateway: Any,  # noqa: ANN401
    log: SparkLog,
) -> SparkContext:
    from pyspark import SparkContext

    try:
        context = SparkContext(conf=configuration, gateway=gateway)
    except Exception as error:
        if has_lost_java(error) and (end := _end_of(gateway.proc)) is not None:
            raise _died_when_it_started(end, log) from error
        raise NotStarted(f"Spark did not start: {sentence_of(error)}") from error
    ignore_disconnects(context._accumulatorServer)  # noqa: SLF001 - it has no other name
    if not configuration.contains("spark.log.level"):
        context.setLogLevel("WARN")
    return context


def _died_when_it_started(exit_code: int, log: SparkLog) -> NotStarted:
    return NotStarted(f"Spark's Java process {_ended(exit_code)} when it started: {log.reason()}")


# --------------------------------------------------------------------------------------------- end


class SparkDied(Refusal):
    """The Java process of Spark's driver has ended while its pipelines ran."""

    def __init__(self, exit_code: int) -> None:
        self.has_received_sigterm = exit_code in {-signal.SIGTERM, 128 + signal.SIGTERM}
        """Whether SIGTERM ended it, so that it did not fail itself."""
        super().__init__(
            f"Spark's Java process {_ended(exit_code)}; start again, and the pipeline"
            " continues where it was"
        )


def _ended(exit_code: int) -> str:
    """Return a description of the end of a process."""
    if exit_code < 0:
        return f"was killed by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


class SparkGaveUp(Refusal):
    """Spark has stopped itself: its cluster manager is unavailable or ended the application."""


def _death(
    error: Exception, java: Popen[bytes] | None, log: SparkLog, master: str | None, stop: Stop
) -> Refusal | None:
    """Return the end of Spark as an error if it has caused this one, or `None`."""
    text = ""
    try:
        text = str(error)
    except Exception as lost:  # noqa: BLE001 - errors of PySpark's ask Java for their text
        error = lost
    has_stopped = _STOPPED_ITSELF.search(text) is not None
    is_cut_off = has_stopped or has_lost_java(error)
    if OF_A_USER in text and not is_cut_off:
        return None
    if (is_cut_off or _is_ended_with_others(text, java, stop)) and (
        (end := _end_of(java)) is not None
    ):
        died = SparkDied(end)
        if is_cut_off or died.has_received_sigterm:
            return died
    if has_stopped and (reason := log.reason_of_its_end()):
        return SparkGaveUp(f"Spark has stopped, its master is {master}: {reason}")
    return None


def _is_ended_with_others(text: str, java: Popen[bytes] | None, stop: Stop) -> bool:
    """Return whether Java ends as well and may have caused the error; ``text`` is the error's.

    A service manager signals all processes of a service in any order: Java, its Python workers,
    this one. A query fails with the first one that it misses.
    """
    if java is None:
        return False
    may_follow = stop.is_asked or misses_a_worker(text)
    until_s = time.monotonic() + (TOLD_S if may_follow else 0.0)
    while java.poll() is None and not _is_shutting_down():
        if time.monotonic() >= until_s:
            return False
        time.sleep(_LOOK_S)
    return True


def _is_shutting_down() -> bool:
    """Return whether Java runs its shutdown hooks, or accepts no calls any more."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is None:
        return False
    answers: list[bool] = []

    def ask() -> None:
        hooks = context._jvm.org.apache.spark.util.ShutdownHookManager  # noqa: SLF001
        answers.append(bool(hooks.inShutdown()))

    return within(TOLD_S, [ask]) and answers != [False]


def has_lost_java(error: BaseException) -> bool:
    """Return whether an error or a cause of it is a broken connection to Java."""
    each: BaseException | None = error
    while each is not None:
        # An interrupted call ends with Py4JError; an exception of Java is a Py4JJavaError.
        if isinstance(each, ConnectionError) or type(each).__name__ in _LOST:
            return True
        each = each.__cause__ or each.__context__
    return False


def _end_of(java: Popen[bytes] | None) -> int | None:
    """Return the exit code of an ending process, or `None` if it runs or is unknown."""
    if java is None:
        return None
    with suppress(TimeoutExpired):
        return java.wait(_DIES_S)
    # Its shutdown takes long on a busy machine.
    if _is_shutting_down():
        with suppress(TimeoutExpired):
            return java.wait(_SHUTS_DOWN_S)
    return None


def _end(java: Popen[bytes] | None, seconds: float) -> None:
    """Stop Spark; kill its process if it does not end in time."""
    from pyspark import SparkContext

    context: SparkContext | None = SparkContext._active_spark_context  # noqa: SLF001
    if java is not None and java.poll() is not None:
        return
    has_stopped = context is None or within(seconds, [context.stop])
    if java is not None and not has_stopped:
        java.kill()
