"""A local Spark with its stock Kafka connector."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.jars import spark_kafka_jars
from tests.counterparts.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUICK_START: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "tests.counterparts.spark_daemon",
}
"""Half the processor time for a test of a few batches; what is measured has none of it."""


def spark_session(
    directory: Path, *, cores: int = 2, master: str = "", quick_start: bool = True
) -> "SparkSession":
    """Start a Spark in this process whose files lie in `directory`; stop it with `.stop()`."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingCounterpart("PySpark is needed: `pip install pyspark==4.2.0`") from error
    os.environ["JAVA_HOME"] = str(java_home())
    # Otherwise it is the `python3` of the PATH, which may have nothing of ours.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Otherwise Spark binds to whatever address the machine's name stands for.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder: SparkSession.Builder = SparkSession.builder
    settings = {
        "spark.jars": ",".join(str(jar) for jar in spark_kafka_jars()),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = builder.master(master or f"local[{cores}]").appName("barnabas-interop")
    if quick_start:
        settings |= QUICK_START
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
