"""`python -m barnabas.spark run`, and `spark-submit`, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.counterparts.spark import QUICK_PYTHONPATH, quick_launcher, quick_start

PATIENT_VIEW = """
from barnabas.spark_connector.running import broker_view
broker_view.PATIENCE_MS = 60_000
"""
"""The start of a file whose lines contain all that brokers know of a batch, however slow they are.

Otherwise a line reports facts as unknown if they would delay a pipeline for too long.
"""


def start_command(
    directory: Path,
    file: str,
    servers: str,
    *arguments: str,
    master: str = "local[2]",
    **environment: str,
) -> subprocess.Popen[str]:
    """Start the pipelines of a file in a directory, where Spark's log will be, too."""
    command = [sys.executable, "-m", "barnabas.spark", "run", file]
    command += ["--servers", servers, "--master", master, "--format", "json"]
    # One state store and one task for each partition of it: quicker than eight.
    settings = quick_start() | {"spark.sql.shuffle.partitions": "2"}
    return _start(directory, [*command, *words_of(settings), *arguments], environment)


def submit(
    directory: Path, before: Sequence[str], file: str, *arguments: str
) -> subprocess.Popen[str]:
    """Start a program with spark-submit; ``before`` are its options."""
    program = str(Path(sys.executable).with_name("spark-submit"))
    # spark-submit takes the first python3 of the PATH, and the machine's address.
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return _start(directory, [program, *before, file, *arguments], environment)


def words_of(settings: Mapping[str, str]) -> list[str]:
    """Return settings as the command and spark-submit take them."""
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


def _start(
    directory: Path, command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    own = {"PYTHONPATH": QUICK_PYTHONPATH, "TMPDIR": str(directory), **quick_launcher()}
    return subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **own, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Its executors are found by it.
        start_new_session=True,
    )
