"""The build that this process runs: version, kind and commit."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES

from barnabas.broker.version import __version__
from barnabas.protocol import frame

_COMMIT_FILE = "commit"
"""The file in the installed package in which ``.ci/hatch_build.py`` stores the commit."""
_GIT_TIMEOUT_S = 10


def version_text() -> str:
    """Return the version, the kind of build and the commit, for ``barnabas --version``."""
    return f"{__version__} ({build_name()}, commit {commit()})"


def build_name() -> str:
    """Return ``compiled`` if the modules that pyproject.toml lists are, or ``pure``."""
    is_compiled = frame.__file__.endswith(tuple(EXTENSION_SUFFIXES))
    return "compiled" if is_compiled else "pure"


def commit() -> str:
    """Return the commit of this installation, in a checkout the current one.

    A commit with uncommitted changes ends in ``-dirty``. Without a commit the text has the reason.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        with open(os.path.join(package, _COMMIT_FILE), encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    if os.path.exists(os.path.join(checkout, ".git")):
        return _commit_of(checkout)
    return "unknown: built without git and without BARNABAS_COMMIT"


def _commit_of(checkout: str) -> str:
    import subprocess

    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(  # noqa: S603 - no part comes from outside
            command,
            cwd=checkout,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown: git cannot read {checkout}: {error}"
    return result.stdout.strip()
