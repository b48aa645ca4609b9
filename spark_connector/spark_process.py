"""Spark itself: its Java, its jars, its settings, and a file for what it prints."""

from __future__ import annotations

import os
import re
import signal
import socketserver
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any, Final

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.jars import jars_of_installed_spark
from barnabas.spark_connector.java import java_home
from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.sentences import sentence_of

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

JAR_SETTINGS: Final = {"spark.jars", "spark.jars.packages"}
_ERROR: Final = re.compile(r"error|exception|unrecognized|cannot|could not", re.IGNORECASE)
_LOG_READ_BYTES: Final = 100_000
_LOST: Final = {"Py4JError", "Py4JNetworkError"}
_DIES_S: Final = 5
"""How long a process whose connections have broken may need to end."""
LOCAL_SHUFFLE_PARTITIONS: Final = "8"
"""Spark's 200 are meant for a cluster: each is a task and a state store in every batch."""
UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_SOCKET_DIRECTORY: Final = "spark.python.unix.domain.socket.dir"
_SOCKET_DIRECTORY_MAX: Final = 61
"""Spark puts names of 43 characters behind it, and takes addresses of 104."""


class SparkLog(Closing):
    """A file for what Spark prints, which goes away unless it is kept; or none, if verbose."""

    def __init__(self, *, verbose: bool) -> None:
        self._file: IO[bytes] | None = None
        self._is_kept = False
        if not verbose:
            handle, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
            self._file = os.fdopen(handle, "wb")
            self._path = Path(name)

    def close(self) -> None:
        """Close the file; it goes away unless it is kept."""
        if self._file is not None:
            self._file.close()
            if not self._is_kept:
                self._path.unlink(missing_ok=True)

    def popen_arguments(self) -> dict[str, IO[bytes]]:
        """Return where the process of Spark writes to."""
        return {} if self._file is None else {"stdout": self._file, "stderr": self._file}

    def reason(self) -> str:
        """Return the first line in the file that speaks of an error, or its last one."""
        if self._file is None:
            return "see above"
        with self._path.open(errors="replace") as log:
            lines = [line.strip() for line in log.readlines(_LOG_READ_BYTES) if line.strip()]
        return next(filter(_ERROR.search, lines), lines[-1] if lines else "it printed nothing")

    def keep(self) -> Path | None:
        """Leave the file where it is; return its path if there is anything in it."""
        if self._file is None or not self._path.stat().st_size:
            return None
        self._is_kept = True
        return self._path


@contextmanager
def spark_session(
    master: str, settings: Mapping[str, str], log: SparkLog
) -> Iterator[SparkSession]:
    """Start Spark with the jars and the Java that it needs, and stop it."""
    all_settings = settings_of(master, settings)
    if not JAR_SETTINGS & all_settings.keys():
        all_settings["spark.jars"] = ",".join(str(jar) for jar in jars_of_installed_spark())
    os.environ["JAVA_HOME"] = str(java_home())
    with ExitStack() as stack:
        if master.startswith("local"):
            # Otherwise Spark listens on whatever address the machine's name stands for.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Otherwise its workers are of the `python3` of the PATH, which may be another one.
            if "spark.pyspark.python" not in all_settings:
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            all_settings = stack.enter_context(unix_sockets()) | all_settings
        spark, java = _started(master, all_settings, log)
        try:
            yield spark
        except Exception as error:
            if has_lost_java(error) and (end := _end_of(java)) is not None:
                raise SparkDied(end) from error
            raise
        finally:
            if java is None or java.poll() is None:
                spark.stop()


@contextmanager
def unix_sockets() -> Iterator[dict[str, str]]:
    """Settings for Unix sockets between Spark and its Python workers, where nobody else has access.

    Over TCP every task with few rows waits 40 ms: Spark writes twice before it reads, and the
    second write waits for an acknowledgement, which the worker's side delays. On a cluster the
    directory would have to be on all machines.
    """
    with tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as directory:
        if len(directory) > _SOCKET_DIRECTORY_MAX:
            yield {}
        else:
            yield {UNIX_SOCKETS: "true", _SOCKET_DIRECTORY: directory}


class SparkDied(Refusal):
    """The Java process of Spark's driver has ended below its pipelines."""

    def __init__(self, exit_code: int) -> None:
        how = f"ended with exit code {exit_code}"
        if exit_code < 0:
            how = f"was killed by {signal.Signals(-exit_code).name}"
        super().__init__(
            f"Spark's Java process {how}; start again, the pipeline goes on where it was"
        )


def has_lost_java(error: BaseException) -> bool:
    """Whether this, or what has caused it, is a broken connection to the Java process."""
    each: BaseException | None = error
    while each is not None:
        # A call that was under way ends with Py4JError; what Java raises is a Py4JJavaError.
        if isinstance(each, ConnectionError) or type(each).__name__ in _LOST:
            return True
        each = each.__cause__ or each.__context__
    return False


def _end_of(java: Popen[bytes] | None) -> int | None:
    """Return the exit code of a process that may be ending; None if it goes on, or is not ours."""
    if java is None:
        return None
    try:
        return java.wait(_DIES_S)
    except TimeoutExpired:
        return None


def settings_of(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark: the user's, and ours where there is none."""
    ours = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):
        ours["spark.sql.shuffle.partitions"] = LOCAL_SHUFFLE_PARTITIONS
    return ours | dict(given)


def _started(
    master: str, settings: Mapping[str, str], log: SparkLog
) -> tuple[SparkSession, Popen[bytes] | None]:
    """Return the session, and its Java process if this one has started it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    configuration = SparkConf(loadDefaults=False).setMaster(master).setAppName("barnabas")
    for name, value in settings.items():
        configuration.set(name, value)
    gateway = _launched(configuration, log)
    try:
        context = SparkContext(conf=configuration, gateway=gateway)
    except Exception as error:
        raise Refusal(f"Spark did not start: {sentence_of(error)}") from error
    let_the_other_side_leave(context._accumulatorServer)  # noqa: SLF001 - it has no other name
    if "spark.log.level" not in settings:
        context.setLogLevel("WARN")
    return SparkSession(context), gateway.proc


def _launched(configuration: SparkConf, log: SparkLog) -> Any:  # noqa: ANN401 - it has no type
    from pyspark import java_gateway
    from pyspark.errors import PySparkRuntimeError

    launch: Any = java_gateway.launch_gateway
    try:
        return launch(configuration, popen_kwargs=log.popen_arguments())
    except PySparkRuntimeError as error:
        raise Refusal(f"Spark's Java process did not start: {log.reason()}") from error


def let_the_other_side_leave(server: socketserver.BaseServer) -> None:
    """Print no traceback where a connection to a server of PySpark's ended in mid-message.

    Spark interrupts its scheduler when it stops, which cuts the connection over which the counts
    of the last tasks come: no reader of them is left.
    """
    show = server.handle_error

    def handle_error(request: Any, address: Any) -> None:  # noqa: ANN401 - as socketserver has it
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            show(request, address)

    server.handle_error = handle_error  # type: ignore[assignment]
