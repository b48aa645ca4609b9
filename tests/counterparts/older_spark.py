"""PySpark 4.1 beside the one that is installed: for what has no release for PySpark 4.2 yet."""

import functools
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.session.jars import SPARK_KAFKA_JARS, PinnedJar, fetched
from tests.counterparts.errors import MissingCounterpart

VERSION = "4.1.3"
INSTALL_TIMEOUT_S = 900
OLDER_SPARK_KAFKA_JARS = (
    PinnedJar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        VERSION,
        "cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
    ),
    *SPARK_KAFKA_JARS[1:],
)
ICEBERG_JARS = (
    PinnedJar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
)


@functools.cache
def python_with_older_spark() -> Path:
    """Return a Python that has PySpark 4.1, and all else from this environment."""
    environment = cache_directory() / f"pyspark-{VERSION}-python{sys.version_info.minor}"
    packages = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    # Another checkout has another environment.
    own = packages / "zz_this_environment.pth"
    if not (packages / "pyspark").exists():
        _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", scratch]
            _run([*pip, f"pyspark=={VERSION}"])
            for name in ("py4j", "pyspark"):
                (Path(scratch) / name).replace(packages / name)
    own.write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return environment / "bin" / "python"


def _run(command: list[str]) -> None:
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    if answer.returncode:
        said = " ".join((answer.stdout + answer.stderr).split())[-1000:]
        raise MissingCounterpart(f"PySpark {VERSION} could not be installed: {said}")


@functools.cache
def older_spark_kafka_jars() -> list[Path]:
    """Return the jars of Spark's Kafka connector for PySpark 4.1."""
    directory = fetched("spark_kafka_4_1", OLDER_SPARK_KAFKA_JARS)
    return [directory / jar.file_name for jar in OLDER_SPARK_KAFKA_JARS]


@functools.cache
def iceberg_jars() -> list[Path]:
    """Return the jar that makes Spark 4.1 write tables of Iceberg."""
    directory = fetched("iceberg", ICEBERG_JARS)
    return [directory / jar.file_name for jar in ICEBERG_JARS]
