"""Apache Kafka's and Spark's classes, loaded and checked once and then mapped by every JVM.

A tool spends most of its second or two in loading classes, a server or a Spark most of its start.
`fetch` has the JVM write down what they load (its class data sharing). Without an archive, or with
one that does not fit, everything works as before, only slower.

Spark's jars are in the environment of a checkout, and so each has an archive of its own.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.counterparts.jars import kafka_jars, spark_jars
from tests.counterparts.java import java

SERVER, TOOLS, SPARK = "server", "tools", "spark"
RECORDING = Path(__file__).with_name("archives.py")
"""The program that runs while Java records its classes."""
# An archive that does not fit is nothing that a tool's output should speak of.
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
KEPT_S = 3 * 24 * 3600
"""Age of an unused archive at which it is removed."""


def archive_options(name: str) -> list[str]:
    """Return the JVM options that use an archive, none while there is no archive."""
    path = _archive(name)
    try:
        os.utime(path)
    except FileNotFoundError:
        return []
    return [f"-XX:SharedArchiveFile={path}", *QUIET]


def make_archive(name: str, run: Callable[[list[str]], None]) -> bool:
    """Call `run`, which starts a JVM with the given options and ends it; keep the loaded classes.

    Return whether there is an archive: the cut-down Java from pip cannot write one.
    """
    final = _archive(name)
    if not final.exists():
        final.parent.mkdir(exist_ok=True)
        remove_unused(final.parent)
        with tempfile.TemporaryDirectory(dir=final.parent) as scratch:
            written = Path(scratch) / final.name
            run([f"-XX:ArchiveClassesAtExit={written}", *QUIET])
            if written.exists():
                os.replace(written, final)
    return final.exists()


def remove_unused(directory: Path) -> None:
    """Remove the archives that were unused for long, and leave those of other checkouts."""
    for each in directory.glob("*.jsa"):
        # Others may do the same.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - each.stat().st_mtime > KEPT_S:
                each.unlink()


@functools.cache
def _archive(name: str) -> Path:
    """Return the path of the archive for exactly this Java, these jars and what was recorded."""
    digest = hashlib.sha256(RECORDING.read_bytes())
    home_file = Path(os.path.realpath(java()))
    jars = spark_jars() if name == SPARK else kafka_jars()
    # Spark's scripts follow links, too.
    for path in (home_file, *sorted(jars.resolve().glob("*.jar"))):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return kafka_jars().parent / "class_archives" / f"{name}-{digest.hexdigest()[:16]}.jsa"
