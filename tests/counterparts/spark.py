"""A local Spark with its stock Kafka connector."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.checkout import PYTHONPATH
from tests.counterparts.class_archive import SPARK, archive_options
from tests.counterparts.jars import spark_jars, spark_kafka_jars
from tests.counterparts.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
DAEMON: Final = "tests.counterparts.spark_daemon"
QUICK_PYTHONPATH: Final = f"{Path(__file__).with_name('quick_python')}{os.pathsep}{PYTHONPATH}"
"""The path on which the Pythons of such a Spark find this checkout and their startup code."""


def quick_start(java_options: Sequence[str] | None = None) -> dict[str, str]:
    """Return settings that save a test of a few batches most of its processor time.

    What is measured has none of them. ``java_options`` are by default those that use the archive of
    Spark's classes.
    """
    options = " ".join(quick_java(java_options))
    return {
        "spark.driver.extraJavaOptions": options,
        # An executor that is a process of its own has the driver's class path.
        "spark.executor.extraJavaOptions": options,
        "spark.python.daemon.module": DAEMON,
    }


def quick_launcher() -> dict[str, str]:
    """Return variables for Spark's own scripts, which have a JVM say how to start the JVM."""
    return {"SPARK_LAUNCHER_OPTS": " ".join(QUICK_START)}


def quick_java(java_options: Sequence[str] | None = None) -> list[str]:
    """Return the JVM options of a Spark process that runs for seconds."""
    return [*QUICK_START, *(archive_options(SPARK) if java_options is None else java_options)]


def class_path() -> str:
    """Return the class path that Spark gives its processes: the archive fits no other."""
    jars = spark_jars().resolve()
    (first,) = jars.glob("slf4j-api-*.jar")
    return f"{jars.parent / 'conf'}:{first}:{jars}/*"


def spark_session(
    directory: Path, *, cores: int = 2, master: str = "", more: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start a Spark in this process whose files lie in `directory`; stop it with `.stop()`.

    ``more`` settings are those of a quick start unless others are given.
    """
    spark_jars()  # Or says how to get it.
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home())
    # Otherwise it is the `python3` of the PATH, which may have none of our packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Otherwise Spark binds to the address of the machine's name.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ |= quick_launcher()
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
    settings |= quick_start() if more is None else more
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
