"""Refuses to import what the extra `interop` alone installs: `pytest -p tests.without_spark`.

Tests are collected while Spark is being installed. A test file that imports Spark, or a library
that came with it, would fail to be collected on a new checkout, and on no other.
"""

import re
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    entry_points,
    packages_distributions,
)

from packaging.requirements import Requirement


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required_by(name: str, extras: frozenset[str]) -> set[str]:
    """Return the distributions that installing `name[extras]` installs, by normalized name."""
    required: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    pending = [(name, extras)]
    while pending:
        name, extras = pending.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        required.add(name)
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            # A requirement of the other extra, of which nothing is installed yet.
            continue
        for requirement in map(Requirement, requirements):
            marker = requirement.marker
            if not marker or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
                pending.append((_normalized(requirement.name), frozenset(requirement.extras)))
    return required


def _refused() -> set[str]:
    """Return the modules that `barnabas[test,dev]` does not bring.

    pytest imports the plugins of all that is installed: they are not refused.
    """
    at_hand = _required_by("barnabas", frozenset({"test", "dev"})) | {"pip", "setuptools"}
    at_hand |= {_normalized(each.dist.name) for each in entry_points(group="pytest11") if each.dist}
    return {
        module
        for module, distributions in packages_distributions().items()
        if at_hand.isdisjoint(map(_normalized, distributions))
    }


class _Refusing(MetaPathFinder):
    def __init__(self, refused: set[str]) -> None:
        self._refused = refused

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self._refused:
            raise ModuleNotFoundError(f"{name} comes with the extra `interop` alone", name=name)


sys.meta_path.insert(0, _Refusing(_refused()))
