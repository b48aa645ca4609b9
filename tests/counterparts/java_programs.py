"""Java programs of the tests on pinned jars, compiled once by Eclipse's compiler and kept.

The compiler is a jar as well, so that a Java without `javac` is enough.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.jars import listed_jars
from tests.counterparts.java import java
from tests.counterparts.kept import keep

COMPILE_TIMEOUT_S = 300
RELEASE = "17"
JVM_OPTIONS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A small heap and little compilation: a program lives for seconds, until it is killed."""


def java_program(family: str, sources: Sequence[Path], options: Sequence[str] = ()) -> list[str]:
    """Return the command line of a program, to which its arguments are added.

    ``family`` names the list of its jars, ``<family>_jars.txt``. The class of the last source file
    has the `main`.
    """
    class_path = f"{compiled(family, tuple(sources))}:{listed_jars(family)}/*"
    return [str(java()), *JVM_OPTIONS, *options, "-cp", class_path, sources[-1].stem]


@functools.cache
def compiled(family: str, sources: tuple[Path, ...]) -> Path:
    """Return the directory with the classes, compiled if a source or a jar has changed."""
    jars = sorted(listed_jars(family).glob("*.jar"))
    digest = hashlib.sha256("\0".join(jar.name for jar in jars).encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    classes = cache_directory() / "java_classes" / f"{family}-{digest.hexdigest()[:16]}"
    if not classes.exists():
        classes.parent.mkdir(exist_ok=True)
        # On the same file system, so that they enter the cache by rename.
        with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
            made = Path(scratch) / "classes"
            _compile(sources, jars, made)
            keep(made, classes)
    return classes


def _compile(sources: Sequence[Path], jars: Sequence[Path], classes: Path) -> None:
    (compiler,) = listed_jars("ecj").glob("ecj-*.jar")
    command = [str(java()), "-jar", str(compiler), f"-{RELEASE}", "-nowarn", "-proc:none"]
    command += ["-cp", ":".join(map(str, jars)), "-d", str(classes), *map(str, sources)]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
    )
    if answer.returncode:
        said = (answer.stdout + answer.stderr)[-3000:]
        raise MissingCounterpart(f"{sources[-1].name} does not compile:\n{said}")
