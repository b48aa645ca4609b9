"""Builds of the sdist and of the wheels, as `make release` builds them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT

LEFT_OUT = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH", "BARNABAS_COMMIT"}
COMPILE_TIMEOUT_S = 3600
PURE_TIMEOUT_S = 300


class BuildFailed(Exception):
    """A build command failed; the message has the end of its output."""


def run(*command: str | Path, cwd: Path, timeout_s: float = PURE_TIMEOUT_S, **more: str) -> str:
    """Run a command outside of the checkout's environment and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in LEFT_OUT}
    result = subprocess.run(
        command,
        cwd=cwd,
        env=environment | more,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if result.returncode:
        said = (result.stdout + result.stderr)[-4000:]
        raise BuildFailed(f"{' '.join(map(str, command))} exited with {result.returncode}:\n{said}")
    return result.stdout


def reproducible(directory: Path) -> dict[str, str]:
    """Return the variables with which two builds of one commit have the same bytes.

    The order of the objects that mypy and mypyc emit follows hashes of strings; a C compiler
    writes the names of directories into its output.
    """
    return {
        "SOURCE_DATE_EPOCH": _commit_time(),
        "PYTHONHASHSEED": "0",
        "TMPDIR": str(directory),
        "CFLAGS": f"-ffile-prefix-map={directory}=.",
    }


def build_sdist(directory: Path, source: Path = ROOT) -> Path:
    """Build the sdist of a checkout into ``directory``."""
    return _build(directory, "--sdist", source)


def build_pure_wheel(directory: Path, source: Path) -> Path:
    """Build the pure wheel of a checkout or of an unpacked sdist into ``directory``."""
    return _build(directory, "--wheel", source)


def build_compiled_wheel(directory: Path, sdist: Path, python: str = sys.executable) -> Path:
    """Build the compiled wheel of an sdist, for this machine and for ``python``.

    The Python of the tests has what the build needs; another one gets it from the index.
    """
    scratch = directory / "scratch"
    scratch.mkdir(parents=True)
    command = (python, "-m", "pip", "wheel", "--quiet", "--no-deps")
    if python == sys.executable:
        command += ("--no-build-isolation",)
    run(
        *command,
        *("--wheel-dir", directory, sdist),
        cwd=directory,
        timeout_s=COMPILE_TIMEOUT_S,
        HATCH_BUILD_HOOK_ENABLE_MYPYC="1",
        **reproducible(scratch),
    )
    (wheel,) = directory.glob("*.whl")
    return wheel


def sha256(path: Path) -> str:
    """Return the hash of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _build(directory: Path, kind: str, source: Path) -> Path:
    command = (sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", directory)
    directory.mkdir(parents=True, exist_ok=True)
    before = {*directory.iterdir()}
    run(*command, source, cwd=directory, **reproducible(directory))
    (path,) = {*directory.iterdir()} - before
    return path


def _commit_time() -> str:
    """Return the time of the current commit, or hatchling's fixed time without git."""
    command = ["git", "log", "-1", "--format=%ct"]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return result.stdout.strip() if result.returncode == 0 else "1580601600"
