"""The Python of Spark's workers: which one it is, and what it can import.

Spark takes it from the environment of its Java process. With another Python, or with one package
``pyspark_*`` that cannot be imported, Spark only reports that it has no such data source.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Any, Final

DRIVER_VARIABLE: Final = "PYSPARK_DRIVER_PYTHON"
VARIABLE: Final = "PYSPARK_PYTHON"
DEFAULT: Final = "python3 of the PATH"
PACKAGES: Final = ("barnabas", "pyspark", "numpy", "pandas", "pyarrow")
INSTALL: Final = "install the wheel of Barnabas with its extra spark there"
IMPORT_TIMEOUT_S = 30.0
"""Time for the start of a Python, and then for each import."""
PROBE_TIMEOUT_S: Final = 120.0
_REPORT_BYTES_MAX: Final = 1_000_000
_POLL_S: Final = 0.2
# Each import is reported before it begins, so that one that never ends is known. What packages
# print goes to standard error, and threads that they have started do not delay the end.
_PROBE: Final = """
import importlib, json, os, pkgutil, sys

report = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def say(line):
    report.write(json.dumps(line) + "\\n")
    report.flush()

def version_of(name):
    try:
        found = getattr(importlib.import_module(name), "__version__", "unknown")
        return {"version": str(found)}
    except BaseException as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}

has_sources, packages = sys.argv[1] == "True", sys.argv[2:]
found = [each.name for each in pkgutil.iter_modules() if each.name.startswith("pyspark_")]
names = found if has_sources else []
version = "%d.%d.%d" % sys.version_info[:3]
say({"executable": sys.executable, "version": version, "sources": names})
for each in packages + names:
    say({"begun": each})
    say(dict(version_of(each), name=each))
os._exit(0)
"""


@dataclass(frozen=True)
class WorkerPython:
    """A Python that Spark starts workers with, and its packages."""

    command: str
    chosen_by: tuple[str, ...]
    """Variables or settings that name it, or the search path."""
    executable: str = ""
    version: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the packages that can be imported."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Packages that cannot be imported, and the reason."""
    broken_sources: Mapping[str, str] = field(default_factory=dict)
    """Modules `pyspark_*` that cannot be imported: each hides all data sources."""
    sources: tuple[str, ...] = ()
    """All modules `pyspark_*`."""
    is_complete: bool = False
    """Whether all imports were attempted; if not, the last one never ended."""
    problem: str = ""
    """Reason why it cannot be run, or empty."""

    @property
    def name(self) -> str:
        """Path, and the variables or settings that name it."""
        return f"{self.executable or self.command} ({' and '.join(self.chosen_by)})"

    @property
    def remedy(self) -> str:
        """Advice that makes Spark choose the present Python instead."""
        if self.chosen_by == (DRIVER_VARIABLE,):
            return f"unset {DRIVER_VARIABLE}, or set it to {sys.executable}"
        names = [VARIABLE if each == DEFAULT else each for each in self.chosen_by]
        return f"set {' and '.join(names)} to {sys.executable}"


def chosen_python(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the command with which Spark starts workers of data sources, and the name of the
    setting that chose it.
    """
    if command := environment.get(DRIVER_VARIABLE):
        return command, DRIVER_VARIABLE
    return task_python(environment)


def task_python(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the command with which Spark starts workers of tasks, and the name of the setting that
    chose it.
    """
    if command := environment.get(VARIABLE):
        return command, VARIABLE
    return "python3", DEFAULT


def probe(command: str, *chosen_by: str, has_sources: bool = True) -> WorkerPython:
    """Start a Python and return the modules that it can import, with or without the packages
    `pyspark_*`.
    """
    path = shutil.which(command)
    if path is None:
        return WorkerPython(command, chosen_by, problem=_missing_program(command))
    try:
        with TemporaryFile() as report, TemporaryFile() as errors:
            exit_code = _run_probe(
                [path, "-c", _PROBE, str(has_sources), *PACKAGES], report, errors
            )
            lines, said = _lines_of(report), _tail_of(errors) or _tail_of(report)
    except OSError as error:
        return WorkerPython(command, chosen_by, problem=str(error))
    end = (
        f"no end within {IMPORT_TIMEOUT_S:g} s"
        if exit_code is None
        else f"Python ended with exit code {exit_code}"
    )
    head = next((each for each in lines if "executable" in each), None)
    if head is None:
        reason = f"{end}, {said}" if said else f"{end} and no output"
        return WorkerPython(command, chosen_by, problem=f"it runs no Python program: {reason}")
    return _as_probed(command, chosen_by, head, lines, end)


def _missing_program(command: str) -> str:
    if os.path.isdir(command):
        return "a directory, not a program"
    if os.path.isfile(command):
        return "a file that cannot be executed"
    return "no such program"


def _run_probe(command: list[str], report: IO[bytes], errors: IO[bytes]) -> int | None:
    """Run the probe; return its exit code, or `None` if it was killed because it did not end."""
    process = subprocess.Popen(  # noqa: S603 - the user's own Python
        command,
        stdin=subprocess.DEVNULL,
        stdout=report,
        stderr=errors,
        start_new_session=True,
    )
    try:
        return _exit_code(process, report)
    finally:
        if process.poll() is None:
            # With its children: the command may be a script around a Python.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _exit_code(process: subprocess.Popen[bytes], report: IO[bytes]) -> int | None:
    begun_s = changed_s = time.monotonic()
    size = 0
    while size < _REPORT_BYTES_MAX:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_S)
        now_s = time.monotonic()
        size_before, size = size, os.fstat(report.fileno()).st_size
        if size != size_before:
            changed_s = now_s
        if now_s - changed_s > IMPORT_TIMEOUT_S or now_s - begun_s > PROBE_TIMEOUT_S:
            return None
    return None


def _lines_of(report: IO[bytes]) -> list[dict[str, Any]]:
    report.seek(0)
    lines = []
    for line in report.read(_REPORT_BYTES_MAX).splitlines():
        with suppress(ValueError):  # Scripts around a Python print lines of their own.
            lines.append(json.loads(line))
    return [each for each in lines if isinstance(each, dict)]


def _tail_of(output: IO[bytes]) -> str:
    """Return the last words of an output in one line."""
    output.seek(max(output.seek(0, os.SEEK_END) - 1_000, 0))
    return " ".join(output.read(1_000).decode(errors="replace").split())[-200:]


def _as_probed(
    command: str,
    chosen_by: tuple[str, ...],
    head: Mapping[str, Any],
    lines: list[dict[str, Any]],
    end: str,
) -> WorkerPython:
    results = {each["name"]: each for each in lines if "name" in each}
    sources = tuple(head["sources"])
    is_complete = all(each in results for each in (*PACKAGES, *sources))
    for each in lines:
        if "begun" in each:
            results.setdefault(each["begun"], {"error": f"{end} in its import"})
    errors = {name: each["error"] for name, each in results.items() if "error" in each}
    return WorkerPython(
        command,
        chosen_by,
        head["executable"],
        head["version"],
        {name: each["version"] for name, each in results.items() if "version" in each},
        {name: error for name, error in errors.items() if name not in sources},
        {name: error for name, error in errors.items() if name in sources},
        sources,
        is_complete,
    )


def missing_source_sentence(data_source: str) -> str:
    """Return the sentence for a data source that Spark has not found, after probing its Python."""
    python = probe(*chosen_python())
    head = f"Spark has not found the data source {data_source}"
    if python.problem:
        return (
            f"{head}: {python.name}, the Python of its workers, cannot be used ({python.problem});"
            f" {python.remedy}"
        )
    if python.broken_sources:
        name, error = next(iter(python.broken_sources.items()))
        return (
            f"{head}: the package {name} of {python.name}, the Python of its workers, cannot be"
            f" imported ({error}), which hides all data sources; repair or uninstall {name}"
        )
    if "barnabas" in python.errors:
        return (
            f"{head}: {python.name}, the Python of its workers, has no package barnabas;"
            f" {python.remedy}, or {INSTALL}"
        )
    return (
        f"{head}: no package pyspark_* of {python.name}, the Python of its workers, has it;"
        " check the name, or register the data source with spark.dataSource.register"
    )
