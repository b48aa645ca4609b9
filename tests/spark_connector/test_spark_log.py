"""The log of Java and Spark, reduced to the reason why they did not start."""

import pytest

from barnabas.spark_connector.session.spark_log import SparkLog, reason_in

WARNING = "WARNING: Using incubator modules: jdk.incubator.vector"
USING = "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties"
NOT_FOUND = "[unresolved dependency: org.x#y_2.13;1.0: not found]"
IVY = """
:: loading settings :: url = jar:file:/ivy-2.5.3.jar!/ivysettings.xml
You probably access the destination server through a proxy server that is not well configured.
:: problems summary ::
:::: ERRORS
Host repos.example.org not found. url=https://repos.example.org/org/x/y/1.0/y-1.0.jar
"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        pytest.param("", "it printed nothing", id="nothing"),
        pytest.param(f"{WARNING}\nlast", "last", id="no error"),
        pytest.param(
            'Exception in thread "main" org.apache.spark.SparkException: Must be yarn\n\tat x',
            "Must be yarn",
            id="exception",
        ),
        pytest.param(
            'Exception in thread "main" java.lang.StackOverflowError',
            "java.lang.StackOverflowError",
            id="exception without a message",
        ),
        pytest.param(
            f'{IVY}Exception in thread "main" java.lang.RuntimeException: {NOT_FOUND}',
            "there is no package org.x:y_2.13 of that version where Spark looks for it: check its"
            " name, or set --conf spark.jars.repositories=URL",
            id="package",
        ),
        pytest.param(
            "Invalid maximum heap size: -Xmxabc\nError: Could not create the Java Virtual Machine."
            "\nError: A fatal exception has occurred. Program will exit.",
            "Invalid maximum heap size: -Xmxabc",
            id="heap",
        ),
        pytest.param(
            "Error occurred during initialization of VM\nToo small maximum heap",
            "Too small maximum heap",
            id="small heap",
        ),
        pytest.param(
            "Error: Could not create the Java Virtual Machine.",
            "Java could not be started",
            id="no more than that",
        ),
        pytest.param(
            f"{WARNING}\n{USING}\n26/11/24 22:13:20 WARN Utils: could not\n"
            "26/11/24 22:13:20 ERROR DiskBlockManager: Failed to create /x/y\n"
            "java.nio.file.NoSuchFileException: /x\n\tat y\n"
            "26/11/24 22:13:21 ERROR DiskBlockManager: Failed to create any local dir.",
            "Failed to create /x/y (NoSuchFileException: /x)",
            id="logged",
        ),
        pytest.param(
            "Error: Unrecognized option: --x", "Error: Unrecognized option: --x", id="option"
        ),
    ],
)
def test_the_reason_for_not_starting(printed, reason):
    assert reason_in([line.strip() for line in printed.splitlines() if line.strip()]) == reason


def test_log_of_spark_contains_the_reason_of_its_end():
    with SparkLog(verbose=False) as log:
        assert log.reason_of_its_end() is None
        log.popen_arguments()["stderr"].write(
            b"26/11/24 22:15:34 ERROR Backend: Application has been killed. Reason: All masters are"
            b" unresponsive! Giving up.\nmore\n"
        )
        log.popen_arguments()["stderr"].flush()
        assert log.reason_of_its_end() == "All masters are unresponsive! Giving up."
    with SparkLog(verbose=True) as log:
        assert (log.reason(), log.reason_of_its_end()) == ("see above", None)
