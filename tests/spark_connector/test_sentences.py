"""One sentence is left of Spark's long reports."""

import pytest

from barnabas.spark_connector.sentences import sentence_of

FOREACH = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided \
function in foreach batch sink. Reason: An exception was raised by the Python Proxy. \
Return Message: Traceback \
(most recent call last):
  File "pyspark/sql/utils.py", line 166, in call
    self.func(df, batch_id)
barnabas.spark_connector.errors.Disconnected: the first one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "spark_connector/single.py", line 5, in write_batch
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
WORKER_AT_ITS_START = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, \
most recent failure: Lost task 0.0 in stage 2.0 (TID 4) (localhost executor driver): \
java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\tat org.apache.spark.api.python.PythonWorkerFactory.createWorker$1(PythonWorkerFactory.scala:188)
\tat org.apache.spark.SparkEnv.createPythonWorker(SparkEnv.scala:182)
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
Caused by: java.io.IOException: No space left on device
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
        pytest.param(PY4J, "Could not parse Master URL: 'x'", id="py4j"),
        pytest.param(JAVA, "IOException: No space left on device", id="java"),
        pytest.param(
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'. SQLSTATE: 42601\n\n== SQL ==",
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'.",
            id="spark",
        ),
        pytest.param("", "Exception", id="nothing"),
    ],
)
def test_what_is_left_of_a_report(text, sentence):
    assert sentence_of(Exception(text)) == sentence


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.", "another driver runs"),
        ("Partition in-0's offset was changed from 10 to 3", "gone from the source topic"),
        ("o.a.k.common.errors.UnknownTopicOrPartitionException: This server", "does not exist"),
        ("o.kafka.common.errors.TimeoutException: Timeout of 60000ms expired", "did not answer"),
        (WORKER, "a Python worker process died"),
        (WORKER_AT_ITS_START, "a Python worker process died"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        ("TimeoutException: Timed out waiting for a node assignment. Call: x", "did not answer"),
    ],
)
def test_what_spark_says_in_other_words(text, says):
    assert says in sentence_of(Exception(text))


class Captured(Exception):
    """As PySpark has a failure of Java's: its cause is not Python's."""

    def __init__(self, text, cause=None):
        super().__init__(text)
        self._cause = cause


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


def test_a_failure_with_a_cause_of_pythons():
    failure = RuntimeError("outside")
    failure.__cause__ = Captured(
        "x\nbarnabas.spark_connector.errors.Fenced: Another driver.\n", failure
    )
    assert sentence_of(failure) == "Another driver."
