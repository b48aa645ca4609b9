"""Refuses to import what the extra `interop` alone installs: `pytest -p tests.without_spark`.

Tests are collected while Spark is being installed. A test file that imports Spark, or another
library of that extra, fails to be collected on a new checkout alone.
"""

import re
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import (
    Distribution,
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


_AT_HAND = _required_by("barnabas", frozenset({"test", "dev"})) | {"pip", "setuptools"}
# pytest imports the plugins of all that is installed.
_AT_HAND |= {_normalized(each.dist.name) for each in entry_points(group="pytest11") if each.dist}
_REFUSED = {
    module
    for module, distributions in packages_distributions().items()
    if _AT_HAND.isdisjoint(map(_normalized, distributions))
}
_from_name = Distribution.from_name


class _Refusing(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in _REFUSED:
            raise ModuleNotFoundError(f"{name} comes with the extra `interop` alone", name=name)


def _found_at_hand(name: str) -> Distribution:
    """Return the metadata of a distribution, as where `interop` is not installed."""
    if _normalized(name) not in _AT_HAND:
        raise PackageNotFoundError(name)
    return _from_name(name)


sys.meta_path.insert(0, _Refusing())
Distribution.from_name = _found_at_hand  # type: ignore[method-assign, assignment]
