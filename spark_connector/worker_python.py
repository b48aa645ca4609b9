"""The Python of Spark's workers: which one it is, and what it can import.

Spark takes it from the environment of its Java process. With another Python, or with one package
``pyspark_*`` that cannot be imported, Spark only reports that it has no such data source.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PROBE_TIMEOUT_S: Final = 120
VARIABLES: Final = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
"""Variables that name the Python of data sources, the first one first; else it is `python3`."""
PACKAGES: Final = ("barnabas", "pyspark", "numpy", "pandas", "pyarrow")
INSTALL: Final = "'barnabas[spark]'"
_PROBE: Final = """
import importlib, json, pkgutil, sys

def version_of(name):
    try:
        found = getattr(importlib.import_module(name), "__version__", "unknown")
        return {"version": str(found)}
    except BaseException as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}

names = [each.name for each in pkgutil.iter_modules() if each.name.startswith("pyspark_")]
print("\\n" + json.dumps({
    "executable": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "packages": {each: version_of(each) for each in sys.argv[1:]},
    "sources": {each: version_of(each) for each in names},
}))
"""


@dataclass(frozen=True)
class WorkerPython:
    """A Python that Spark starts workers with, and what it has."""

    command: str
    chosen_by: str
    """The variable or setting that names it, or the search path."""
    executable: str = ""
    version: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the packages that can be imported."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Packages that cannot be imported, and why."""
    broken_sources: Mapping[str, str] = field(default_factory=dict)
    """Modules `pyspark_*` that cannot be imported: each hides all data sources."""
    sources: tuple[str, ...] = ()
    """Modules `pyspark_*` that can be imported."""
    problem: str = ""
    """Reason why it cannot be run, or empty."""

    @property
    def name(self) -> str:
        """Path, and the variable or setting that names it."""
        return f"{self.executable or self.command} ({self.chosen_by})"


def chosen_python(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the command with which Spark starts workers of data sources, and what names it."""
    for variable in VARIABLES:
        if command := environment.get(variable):
            return command, variable
    return "python3", "python3 of the PATH"


def probe(command: str, chosen_by: str) -> WorkerPython:
    """Start a Python and return what it can import."""
    path = shutil.which(command)
    if path is None:
        return WorkerPython(command, chosen_by, problem="no such program")
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Python
            [path, "-c", _PROBE, *PACKAGES],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return WorkerPython(command, chosen_by, problem=str(error))
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        return _as_probed(command, chosen_by, found)
    except (ValueError, LookupError, TypeError):
        said = " ".join((done.stderr or done.stdout).split())[-200:]
        return WorkerPython(command, chosen_by, problem=f"it runs no Python program: {said}")


def _as_probed(command: str, chosen_by: str, found: Mapping[str, Any]) -> WorkerPython:
    packages, sources = found["packages"], found["sources"]
    return WorkerPython(
        command,
        chosen_by,
        found["executable"],
        found["version"],
        {name: each["version"] for name, each in packages.items() if "version" in each},
        {name: each["error"] for name, each in packages.items() if "error" in each},
        {name: each["error"] for name, each in sources.items() if "error" in each},
        tuple(name for name, each in sources.items() if "version" in each),
    )


def missing_source_sentence(data_source: str) -> str:
    """Return the sentence for a data source that Spark has not found, after probing its Python."""
    python = probe(*chosen_python())
    head = f"Spark has not found the data source {data_source}"
    if python.problem:
        return (
            f"{head}: {python.name}, the Python of its workers, cannot be used ({python.problem});"
            f" set PYSPARK_PYTHON to {sys.executable}"
        )
    if python.broken_sources:
        name, error = next(iter(python.broken_sources.items()))
        return (
            f"{head}: the package {name} of {python.name}, the Python of its workers, cannot be"
            f" imported ({error}), which hides all data sources; repair or uninstall {name}"
        )
    if "barnabas" in python.errors:
        return (
            f"{head}: {python.name}, the Python of its workers, has no package barnabas; set"
            f" PYSPARK_PYTHON to {sys.executable}, or run {python.executable} -m pip install"
            f" {INSTALL}"
        )
    return (
        f"{head}: no package pyspark_* of {python.name}, the Python of its workers, has it;"
        " check the name, or register the data source with spark.dataSource.register"
    )
