"""The build that this process runs: from the sources, or with modules that mypyc has compiled."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES

from barnabas.protocol import frame


def build_name() -> str:
    """Return ``compiled`` if the modules that pyproject.toml lists are, or ``interpreted``."""
    is_compiled = frame.__file__.endswith(tuple(EXTENSION_SUFFIXES))
    return "compiled" if is_compiled else "interpreted"
