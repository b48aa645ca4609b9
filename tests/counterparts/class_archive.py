"""Apache Kafka's and Spark's classes, loaded and checked once and then mapped by every JVM.

A tool spends most of its second or two in loading classes, a server or a Spark most of its start.
`fetch` has the JVM write down what they load (its class data sharing). Without an archive, or with
one that does not fit, everything works as before, only slower.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.counterparts.jars import kafka_jars, spark_jars
from tests.counterparts.java import java

SERVER, TOOLS, SPARK = "server", "tools", "spark"
# An archive that does not fit is nothing that a tool's output should speak of.
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_options(name: str) -> list[str]:
    """Return the JVM options that use an archive, none while there is no archive."""
    path = _archive(name)
    return [f"-XX:SharedArchiveFile={path}", *QUIET] if path.exists() else []


def make_archive(name: str, run: Callable[[list[str]], None]) -> bool:
    """Let `run` start a JVM with the options it is given and end it; keep what it has loaded.

    Return whether there is an archive: the cut-down Java from pip cannot write one.
    """
    final = _archive(name)
    if not final.exists():
        final.parent.mkdir(exist_ok=True)
        for outdated in final.parent.glob(f"{name}-*.jsa"):
            outdated.unlink()
        with tempfile.TemporaryDirectory(dir=final.parent) as scratch:
            written = Path(scratch) / final.name
            run([f"-XX:ArchiveClassesAtExit={written}", *QUIET])
            if written.exists():
                os.replace(written, final)
    return final.exists()


@functools.cache
def _archive(name: str) -> Path:
    """Return the path of the archive for exactly this Java and these jars."""
    digest = hashlib.sha256()
    home_file = Path(os.path.realpath(java()))
    jars = spark_jars() if name == SPARK else kafka_jars()
    for path in (home_file, *sorted(jars.glob("*.jar"))):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return kafka_jars().parent / "class_archives" / f"{name}-{digest.hexdigest()[:16]}.jsa"
