"""One sentence is left of Spark's long reports."""

import pytest

from barnabas.spark_connector.failures.sentences import (
    known_sentence_of,
    may_miss_a_topic,
    sentence_of,
)

FOREACH = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided \
function in foreach batch sink. Reason: An exception was raised by the Python Proxy. \
Return Message: Traceback \
(most recent call last):
  File "pyspark/sql/utils.py", line 166, in call
    self.func(df, batch_id)
barnabas.spark_connector.errors.Disconnected: the first one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "spark_connector/sinks/single.py", line 5, in write_batch
barnabas.spark_connector.errors.Fenced: Another driver of this sink runs; stop one of the two.

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""
UDF = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent \
failure: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/pyspark/worker.py", line 1
    raise ValueError("no amount")
ValueError: no amount in record 5

\tat org.apache.spark.api.python.BasePythonRunner
"""
OF_A_USER = UDF.replace("/opt/pyspark/worker.py", "/jobs/my_pipeline.py")
CUSTOM = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback \
(most recent call last):
  File "/jobs/my_pipeline.py", line 7, in judge
    raise Boom("one" "\\n" "two")
          ^^^^^^^^^^^^^^^^^^^
__main__.Boom: one
two

\tat org.apache.spark.api.python.BasePythonRunner
Caused by: org.apache.spark.api.python.PythonException: wrapped
"""
CHAINED = UDF.replace(
    "ValueError: no amount in record 5",
    """KeyError: 'amount'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/jobs/my_pipeline.py", line 9, in judge
    raise LookupFailed from error
my.LookupFailed
""",
)
LOST = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): \
org.apache.kafka.common.config.ConfigException: Invalid value x for configuration max.poll.records
\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:767)
"""
EXPIRED = """Caused by: org.apache.kafka.common.errors.TimeoutException: Expiring 8 record(s) for \
out-1:120002 ms has passed since batch creation
"""
LOST_TASK = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 2.0 (TID 4) (localhost executor driver): """
FACTORY = "\tat org.apache.spark.api.python.PythonWorkerFactory"
AUTHENTICATION = f"""\
\tat org.apache.spark.security.SocketAuthHelper.readUtf8(SocketAuthHelper.scala:116)
\tat org.apache.spark.security.SocketAuthHelper.authToServer(SocketAuthHelper.scala:101)
{FACTORY}.createWorker$1(PythonWorkerFactory.scala:195)
{FACTORY}.liftedTree1$1(PythonWorkerFactory.scala:215)
{FACTORY}.createThroughDaemon(PythonWorkerFactory.scala:207)
\tat org.apache.spark.SparkEnv.createPythonWorker(SparkEnv.scala:182)
\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:330)
"""
RESET_WHEN_IT_IS_TO_SAY_WHO = f"""{LOST_TASK}java.net.SocketException: Connection reset
\tat java.base/sun.nio.ch.SocketChannelImpl.throwConnectionReset(SocketChannelImpl.java:394)
\tat java.base/sun.nio.ch.SocketChannelImpl.blockingRead(SocketChannelImpl.java:1293)
\tat java.base/sun.nio.ch.SocketAdaptor$1.read(SocketAdaptor.java:194)
\tat java.base/sun.nio.ch.SocketAdaptor$1.read(SocketAdaptor.java:184)
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)
{AUTHENTICATION}"""
END_WHEN_IT_IS_TO_SAY_WHO = f"""{LOST_TASK}java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
{AUTHENTICATION}"""
CREATE_WORKER = f"""\
{FACTORY}.createWorker$1(PythonWorkerFactory.scala:167)
{FACTORY}.liftedTree1$1(PythonWorkerFactory.scala:215)
"""
RESET_BEFORE_ITS_FIRST_WORD = f"""{LOST_TASK}java.net.SocketException: Connection reset
\tat java.base/sun.nio.ch.SocketChannelImpl.throwConnectionReset(SocketChannelImpl.java:394)
\tat java.base/sun.nio.ch.SocketChannelImpl.read(SocketChannelImpl.java:426)
\tat java.base/sun.nio.ch.ChannelInputStream.read(ChannelInputStream.java:59)
\tat java.base/java.io.InputStream.read(InputStream.java:218)
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)
{CREATE_WORKER}"""
NO_DAEMON = f"""{LOST_TASK}java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.connect0(Native Method)
\tat java.base/sun.nio.ch.Net.connect(Net.java:579)
\tat java.base/sun.nio.ch.SocketChannelImpl.connect(SocketChannelImpl.java:853)
\tat java.base/java.nio.channels.SocketChannel.open(SocketChannel.java:285)
{CREATE_WORKER}"""
NO_SOCKET_OF_A_DAEMON = f"""{LOST_TASK}java.net.SocketException: No such file or directory
\tat java.base/sun.nio.ch.UnixDomainSockets.connect0(Native Method)
\tat java.base/sun.nio.ch.UnixDomainSockets.connect(UnixDomainSockets.java:148)
\tat java.base/sun.nio.ch.SocketChannelImpl.connect(SocketChannelImpl.java:851)
\tat java.base/java.nio.channels.SocketChannel.open(SocketChannel.java:285)
{CREATE_WORKER}"""
NO_PATH_OF_A_DAEMON = f"""{LOST_TASK}java.lang.NullPointerException
\tat java.base/java.util.Objects.requireNonNull(Objects.java:209)
\tat java.base/sun.nio.fs.UnixFileSystem.getPath(UnixFileSystem.java:263)
\tat java.base/java.nio.file.Path.of(Path.java:147)
\tat java.base/java.net.UnixDomainSocketAddress.of(UnixDomainSocketAddress.java:146)
{CREATE_WORKER}"""
STOP_WORKER = f"""\
\tat java.base/java.io.BufferedOutputStream.flushBuffer(BufferedOutputStream.java:81)
\tat java.base/java.io.BufferedOutputStream.flush(BufferedOutputStream.java:142)
\tat java.base/java.io.DataOutputStream.flush(DataOutputStream.java:128)
{FACTORY}.$anonfun$stopWorker$1(PythonWorkerFactory.scala:501)
{FACTORY}.$anonfun$stopWorker$1$adapted(PythonWorkerFactory.scala:497)
\tat scala.Option.foreach(Option.scala:437)
{FACTORY}.stopWorker(PythonWorkerFactory.scala:497)
{FACTORY}.create(PythonWorkerFactory.scala:149)
\tat org.apache.spark.SparkEnv.createPythonWorker(SparkEnv.scala:182)
"""
NO_DAEMON_OF_AN_IDLE_WORKER = f"""{LOST_TASK}java.io.IOException: Stream closed
\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:445)
\tat java.base/java.io.OutputStream.write(OutputStream.java:162)
{STOP_WORKER}"""
ENDING_DAEMON_OF_AN_IDLE_WORKER = f"""{LOST_TASK}java.io.IOException: Broken pipe
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:349)
{STOP_WORKER}"""
QUEUE_OF_ROWS_ON_DISK = f"""{LOST_TASK}java.io.IOException: Input/output error
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:349)
\tat org.apache.spark.sql.execution.python.DiskRowQueue.add(RowQueue.scala:147)
"""
DEAD_BEFORE_IT_IS_LOOKED_FOR = f"""{LOST_TASK}java.lang.IllegalStateException: Python daemon \
failed to launch worker.
{FACTORY}.$anonfun$createThroughDaemon$1(PythonWorkerFactory.scala:192)
\tat java.base/java.util.Optional.orElseThrow(Optional.java:403)
{CREATE_WORKER}"""
NO_PORT = """An error occurred while calling o103.collectToPython.
: org.apache.spark.SparkException: EOFException occurred while reading the port number from \
pyspark.daemon's stdout and terminated with code: 137..
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(SparkCoreErr\
ors.scala:55)
"""
OF_THE_DRIVER = """[STREAM_FAILED] Query [id = a] terminated with exception: \
[STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE] Streaming Runner initialization \
failed during initial config communication. Cause: Connection reset
"""
DAEMON_THAT_SAYS_WHY = f"""{LOST_TASK}org.apache.spark.SparkException: \n\
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 198, in _run_module_as_main
  ModuleNotFoundError: No module named 'numpy'
PYTHONPATH was:
  /opt/pyspark.zip:/opt/py4j-0.10.9.9-src.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from \
pyspark.daemon's stdout.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(SparkCoreErr\
ors.scala:55)
"""
CRASHED = """org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). \
Consider setting 'spark.sql.execution.pyspark.udf.faulthandler.enabled' or'spark.python.worker.faul\
thandler.enabled' configuration to 'true' for the better Python traceback.
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonR\
unner.scala:704)
\tat scala.runtime.AbstractPartialFunction.apply(AbstractPartialFunction.scala:35)
\tat org.apache.spark.api.python.PythonRunner$$anon$3.read(PythonRunner.scala:1068)
"""
READER = "\tat org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.read"
IN_THE_MIDDLE = f"""{LOST_TASK}{CRASHED}\
Caused by: java.net.SocketException: Connection reset
\tat java.base/sun.nio.ch.SocketChannelImpl.throwConnectionReset(SocketChannelImpl.java:394)
\tat java.base/sun.nio.ch.SocketChannelImpl.read(SocketChannelImpl.java:426)
{READER}(PythonRunner.scala:868)
\tat java.base/java.io.BufferedInputStream.fill(BufferedInputStream.java:244)
\t... 24 more
"""
OTHERS_IN_THE_MIDDLE = f"""{LOST_TASK}{CRASHED}\
Caused by: java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:165)
\tat java.base/java.io.InputStream.read(InputStream.java:218)
\tat org.apache.hadoop.util.LineReader.fillBuffer(LineReader.java:191)
\tat org.apache.spark.rdd.HadoopRDD$$anon$1.getNext(HadoopRDD.scala:342)
\tat org.apache.spark.api.python.PythonRDD$.writeNextElementToStream(PythonRDD.scala:362)
{READER}(PythonRunner.scala:879)
"""
FULL_DISK_IN_THE_MIDDLE = f"""{LOST_TASK}{CRASHED}\
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:349)
\tat org.apache.spark.storage.TimeTrackingOutputStream.write(TimeTrackingOutputStream.java:59)
{READER}(PythonRunner.scala:879)
"""
WITHIN_JAVA = f"""{LOST_TASK}{CRASHED}\
Caused by: java.io.EOFException
\tat java.base/java.io.FilterInputStream.read(FilterInputStream.java:132)
\tat org.apache.arrow.vector.ipc.ReadChannel.readFully(ReadChannel.java:66)
"""
OTHERS_BELOW_A_WRITE = f"""org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while \
writing rows to /table.
\tat org.apache.spark.sql.execution.datasources.FileFormatWriter$.execute(FileFormatWriter.scala:1)
\t... 15 more
Caused by: {CRASHED}\
{READER}(PythonRunner.scala:879)
\t... 15 more
Caused by: java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:165)
"""
DATABASE = f"""{LOST_TASK}org.postgresql.util.PSQLException: An I/O error occurred while sending \
to the backend.
\tat org.postgresql.core.v3.QueryExecutorImpl.execute(QueryExecutorImpl.java:398)
\tat org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD.compute(JDBCRDD.scala:338)
{READER}(PythonRunner.scala:879)
Caused by: java.net.SocketException: Connection reset
\tat java.base/sun.nio.ch.NioSocketImpl.implRead(NioSocketImpl.java:328)
\tat java.base/sun.nio.ch.NioSocketImpl.read(NioSocketImpl.java:355)
\tat java.base/java.net.Socket$SocketInputStream.read(Socket.java:966)
\tat org.postgresql.core.VisibleBufferedInputStream.readMore(VisibleBufferedInputStream.java:192)
\t... 24 more
"""
TOO_MANY_FILES = f"""{LOST_TASK}java.net.SocketException: Too many open files
\tat java.base/sun.nio.ch.Net.socket0(Native Method)
\tat java.base/sun.nio.ch.Net.socket(Net.java:524)
\tat java.base/sun.nio.ch.SocketChannelImpl.<init>(SocketChannelImpl.java:146)
\tat java.base/java.nio.channels.SocketChannel.open(SocketChannel.java:223)
{CREATE_WORKER}"""
SLOW_WORKER = f"""{LOST_TASK}java.net.SocketTimeoutException: Read timed out
\tat java.base/sun.nio.ch.SocketChannelImpl.blockingRead(SocketChannelImpl.java:1265)
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)
{AUTHENTICATION}"""
WORKER_AT_ITS_START = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, \
most recent failure: Lost task 0.0 in stage 2.0 (TID 4) (localhost executor driver): \
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.api.python.PythonWorkerFactory.createWorker$1(PythonWorkerFactory.scala:188)
\tat org.apache.spark.SparkEnv.createPythonWorker(SparkEnv.scala:182)
"""
WORKER_IN_BETWEEN = """Job aborted due to stage failure: Task 1 in stage 2.0 failed 1 times, \
most recent failure: Lost task 1.0 in stage 2.0 (TID 5) (localhost executor driver): \
java.nio.channels.ClosedChannelException
\tat java.base/sun.nio.ch.SocketChannelImpl.ensureOpen(SocketChannelImpl.java:195)
\tat java.base/sun.nio.ch.SocketChannelImpl.write(SocketChannelImpl.java:519)
\tat org.apache.spark.api.python.PythonRunner$$anon$1.writeAdditional(PythonRunner.scala:700)
"""
CHANNEL_OF_ANOTHER = """Job aborted due to stage failure: Task 1 in stage 2.0 failed 1 times, \
most recent failure: Lost task 1.0 in stage 2.0 (TID 5) (localhost executor driver): \
java.nio.channels.ClosedChannelException
\tat java.base/sun.nio.ch.SocketChannelImpl.ensureOpen(SocketChannelImpl.java:195)
\tat org.apache.spark.network.TransportClient.send(TransportClient.java:70)
"""
WORKER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent \
failure: Lost task 0.0 (TID 8): org.apache.spark.SparkException: Python worker exited unexpectedly \
(crashed). Consider setting 'spark.python.worker.faulthandler.enabled'
Caused by: java.io.IOException: Broken pipe
"""
PY4J = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'x'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3500)
"""
JAVA = """Job aborted due to stage failure
JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat somewhere
Caused by: java.io.IOException: Filesystem closed
\t... 3 more
Caused by: org.apache.spark.SparkException: wrapped again
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(FOREACH, "Another driver of this sink runs; stop one of the two.", id="ours"),
        pytest.param(UDF, "ValueError: no amount in record 5", id="python"),
        pytest.param(
            OF_A_USER,
            "transform raised ValueError: no amount in record 5 (my_pipeline.py, line 1)",
            id="a function of the user's",
        ),
        pytest.param(
            CUSTOM, "transform raised Boom: one (my_pipeline.py, line 7)", id="an error of a user's"
        ),
        pytest.param(
            CHAINED,
            "transform raised LookupFailed (my_pipeline.py, line 9)",
            id="an error without a message, which another one has caused",
        ),
        pytest.param(
            OF_A_USER.replace("no amount", "data loss, OutOfMemoryError,"),
            "transform raised ValueError: data loss, OutOfMemoryError, in record 5"
            " (my_pipeline.py, line 1)",
            id="a user's words",
        ),
        pytest.param(
            ": java.nio.channels.UnresolvedAddressException\n\tat x",
            "UnresolvedAddressException",
            id="py4j without a message",
        ),
        pytest.param(
            ": java.lang.ClassNotFoundException: nope\n\tat x",
            "ClassNotFoundException: nope",
            id="py4j with a word",
        ),
        pytest.param(
            LOST, "Invalid value x for configuration max.poll.records", id="what a task failed of"
        ),
        pytest.param(
            EXPIRED,
            "nothing could be written to the partition out-1 for 120002 ms: is the broker running,"
            " and has the topic still that partition?",
            id="what was not written",
        ),
        pytest.param(
            "Unclosed character class near index 3\npay[\n   ^",
            "the source's pattern= is no regular expression of Java's, which Spark takes",
            id="pattern",
        ),
        pytest.param(PY4J, "Could not parse Master URL: 'x'", id="py4j"),
        pytest.param(JAVA, "IOException: Filesystem closed", id="java"),
        pytest.param(
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'. SQLSTATE: 42601\n\n== SQL ==",
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'.",
            id="spark",
        ),
        pytest.param("", "Exception", id="nothing"),
    ],
)
def test_report_is_shortened_to_one_sentence(text, sentence):
    assert sentence_of(Exception(text)) == sentence


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.", "another driver runs"),
        ("Partition in-0's offset was changed from 10 to 3", "gone from the source topic"),
        ("o.a.k.common.errors.UnknownTopicOrPartitionException: This server", "does not exist"),
        ("o.kafka.common.errors.TimeoutException: Timeout of 60000ms expired", "did not answer"),
        (WORKER, "a Python worker process died"),
        ("Caused by: java.io.IOException: No space left on device", "a disk is full"),
        ("[AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE] Cannot call the TO_AVRO", "with --packages"),
        (
            UDF.replace(
                "ValueError: no amount in record 5",
                "ModuleNotFoundError: No module named 'barnabas'",
            ),
            "the Python of Spark's workers has no package barnabas",
        ),
        (WORKER_AT_ITS_START, "a Python worker process died"),
        (WORKER_IN_BETWEEN, "a Python worker process died"),
        (
            WORKER_IN_BETWEEN.replace("nio.channels.ClosedChannelException", "io.EOFException"),
            "a Python worker process died",
        ),
        (
            WORKER_IN_BETWEEN.replace(
                "nio.channels.ClosedChannelException", "io.IOException: Broken pipe"
            ),
            "a Python worker process died",
        ),
        (CHANNEL_OF_ANOTHER, "ClosedChannelException"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        ("TimeoutException: Timed out waiting for a node assignment. Call: x", "did not answer"),
    ],
)
def test_errors_of_spark_are_reworded(text, says):
    assert says in sentence_of(Exception(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RESET_WHEN_IT_IS_TO_SAY_WHO, id="reset when it is to say who it is"),
        pytest.param(END_WHEN_IT_IS_TO_SAY_WHO, id="end of file when it is to say who it is"),
        pytest.param(RESET_BEFORE_ITS_FIRST_WORD, id="reset before its first word"),
        pytest.param(NO_DAEMON, id="no daemon at the port"),
        pytest.param(NO_SOCKET_OF_A_DAEMON, id="no daemon at the path"),
        pytest.param(NO_PATH_OF_A_DAEMON, id="no path of a daemon"),
        pytest.param(NO_DAEMON_OF_AN_IDLE_WORKER, id="no daemon of an idle worker"),
        pytest.param(ENDING_DAEMON_OF_AN_IDLE_WORKER, id="an ending daemon of an idle worker"),
        pytest.param(DEAD_BEFORE_IT_IS_LOOKED_FOR, id="dead before it is looked for"),
        pytest.param(NO_PORT, id="a daemon without a word"),
        pytest.param(IN_THE_MIDDLE, id="reset in the middle"),
        pytest.param(WITHIN_JAVA, id="end of file below what reads for Arrow"),
        pytest.param(OF_THE_DRIVER, id="one of the driver, at its start"),
    ],
)
def test_death_of_a_worker_is_found_in_any_error_of_spark(text):
    assert sentence_of(Exception(text)).startswith("a Python worker process died")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(DATABASE, "SocketException: Connection reset", id="a database"),
        pytest.param(
            OTHERS_IN_THE_MIDDLE, "EOFException: Unexpected end of input stream", id="a file"
        ),
        pytest.param(
            OTHERS_BELOW_A_WRITE,
            "EOFException: Unexpected end of input stream",
            id="a file, below the failure of a table's",
        ),
        pytest.param(
            FULL_DISK_IN_THE_MIDDLE, "a disk is full: that of the checkpoint", id="a disk"
        ),
        pytest.param(TOO_MANY_FILES, "Too many open files", id="too many files"),
        pytest.param(QUEUE_OF_ROWS_ON_DISK, "Input/output error", id="rows on a disk"),
        pytest.param(SLOW_WORKER, "Read timed out", id="a worker that is slow"),
        pytest.param(
            RESET_WHEN_IT_IS_TO_SAY_WHO.replace(
                "SocketException: Connection reset",
                "SocketTimeoutException: java.net.SocketException: slow",
            ),
            "java.net.SocketException: slow",
            id="a worker that is slow, in other words",
        ),
        pytest.param(
            OF_THE_DRIVER.replace("Connection reset", "Read timed out"),
            "[STREAM_FAILED]",
            id="one of the driver that is slow",
        ),
        pytest.param(
            DAEMON_THAT_SAYS_WHY,
            "Spark's Python workers do not start: ModuleNotFoundError: No module named 'numpy'",
            id="a daemon that says why",
        ),
    ],
)
def test_no_worker_has_died_of_what_others_have_met(text, sentence):
    """Spark reports a dead worker for any error in a worker's rows."""
    assert sentence_of(Exception(text)).startswith(sentence)


class Captured(Exception):
    """A Java failure as PySpark raises it: its cause is not Python's."""

    def __init__(self, text, cause=None, stack=""):
        super().__init__(text)
        self._cause = cause
        self._stackTrace = stack


STREAM_FAILED = "[STREAM_FAILED] Query [id = a] terminated with exception: "
COMMIT = """org.apache.spark.SparkException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed \
when Python streaming data source perform commit: Traceback (most recent call last):
  File "data_source.py", line 5, in commit
barnabas.spark_connector.errors.CheckpointMismatch: The checkpoint is an old one.
 SQLSTATE: 38000
\tat org.apache.spark.somewhere
"""
ABORT = """\tSuppressed: org.apache.spark.SparkException: Failed when Python perform abort:
barnabas.spark_connector.errors.BrokerUnreachable: The abort did not succeed.
\t\tat org.apache.spark.somewhere
\tCaused by: something else
"""


@pytest.mark.parametrize("suppressed", [ABORT, ""], ids=["abort-failed-too", "abort-was-well"])
def test_a_failure_that_spark_hides_in_another_one(suppressed):
    writing = Captured(f"[WRITING_JOB_FAILED] Writing job failed.\n{COMMIT}{suppressed}")
    for cause in (writing, Captured("Writing job failed.", Captured(COMMIT + suppressed))):
        failure = Captured(f"{STREAM_FAILED}Writing job failed.", cause)
        assert sentence_of(failure) == "The checkpoint is an old one."
    between = f"{ABORT}Caused by: x\n{COMMIT}"
    assert sentence_of(Captured("Writing job failed.", Captured(between))) == (
        "The checkpoint is an old one."
    )


SOURCE_OF_PYTHONS = """java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(Py\
thonStreamingSourceRunner.scala:208)
"""


def test_a_worker_of_the_driver_has_died():
    """Spark's text of such a failure has no stack, and the message of the cause is empty."""
    failure = Captured(STREAM_FAILED, Captured("java.io.EOFException", stack=SOURCE_OF_PYTHONS))
    assert sentence_of(failure).startswith("a Python worker process died")
    known = known_sentence_of(failure)
    assert known == sentence_of(failure)


def test_a_failure_with_a_cause_of_pythons():
    failure = RuntimeError("outside")
    failure.__cause__ = Captured(
        "x\nbarnabas.spark_connector.errors.Fenced: Another driver.\n", failure
    )
    assert sentence_of(failure) == "Another driver."


def test_generic_failure_is_replaced_by_its_cause():
    cause = Captured("[INVALID_CONF_VALUE] The value 'x' is invalid. SQLSTATE: 22022;\nmore")
    failure = Captured("Error while instantiating 'org.apache.spark.SessionStateBuilder':", cause)
    assert sentence_of(failure) == "[INVALID_CONF_VALUE] The value 'x' is invalid."


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("UNKNOWN_TOPIC_OR_PARTITION", True),
        (EXPIRED, True),
        ("TimeoutException: Timed out waiting for a node assignment.", True),
        (UDF, False),
    ],
)
def test_which_failures_a_missing_topic_may_be_behind(text, may):
    assert may_miss_a_topic(sentence_of(Exception(text))) is may
