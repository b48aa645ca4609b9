"""`python -m barnabas.spark run` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.checkout import PYTHONPATH
from tests.counterparts.spark import quick_start


def start_command(
    directory: Path, file: str, servers: str, *arguments: str, **environment: str
) -> subprocess.Popen[str]:
    """Start the pipelines of a file in a directory, where Spark's log will be, too."""
    command = [sys.executable, "-m", "barnabas.spark", "run", file]
    command += ["--servers", servers, "--master", "local[2]", "--format", "json"]
    # One state store and one task for each partition of it: quicker than eight.
    settings = quick_start() | {"spark.sql.shuffle.partitions": "2"}
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += arguments
    own = {"PYTHONPATH": PYTHONPATH, "TMPDIR": str(directory)}
    return subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **own, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
