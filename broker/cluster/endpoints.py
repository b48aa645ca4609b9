"""What a broker tells the others of itself when it registers: where it is, as JSON.

Brokers of several releases read it: what one of them does not know it leaves aside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.broker.config.features import Ranges

TEXT_CHARACTERS_MAX: Final = 16_384
NAME_CHARACTERS_MAX: Final = 255
"""Of a rack, a listener and a host."""
ENDPOINTS_MAX: Final = 64
PORT_MAX: Final = 65_535
FEATURES_MAX: Final = 64
LEVEL_MAX: Final = 32_767


class UnreadableEndpoints(ValueError):
    """What a broker has registered with says nothing to this release."""


class Place(NamedTuple):
    """Where a broker is."""

    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    """Host and port by the name of the listener."""
    is_cordoned: bool = False
    """Whether its own configuration says that it is to lead nothing."""
    features: Ranges = MappingProxyType({})
    """The levels of features that it supports."""


def encode_place(place: Place) -> str:
    """Return a place as text; raises ValueError for what no broker could read."""
    told: dict[str, object] = {"rack": place.rack, "endpoints": place.endpoints}
    if place.is_cordoned:
        told["cordoned"] = True
    if place.features:
        told["features"] = dict(place.features)
    text = json.dumps(told, ensure_ascii=False)
    decode_place(text)
    return text


def decode_place(text: str) -> Place:
    """Return the place that a text tells of; raises UnreadableEndpoints."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise UnreadableEndpoints(f"{len(text)} characters, more than {TEXT_CHARACTERS_MAX}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableEndpoints(f"not JSON: {error}") from error
    match found:
        case {"rack": str() | None as rack, "endpoints": dict(endpoints)} if len(
            endpoints
        ) <= ENDPOINTS_MAX and (rack is None or _is_name(rack)):
            by_name = {name: _endpoint(name, each) for name, each in endpoints.items()}
            ranges = _ranges(found.get("features"))
            return Place(rack, by_name, found.get("cordoned") is True, ranges)
    raise UnreadableEndpoints("the JSON has no rack and endpoints")


def _ranges(found: object) -> Ranges:
    """Return what a broker supports, as far as this release understands it."""
    if not isinstance(found, dict) or len(found) > FEATURES_MAX:
        return {}
    ranges = {}
    for name, each in found.items():
        match each:
            case [int(low), int(high)] if _is_name(name) and 0 <= low <= high <= LEVEL_MAX:
                ranges[name] = (low, high)
    return ranges


def _endpoint(name: str, found: object) -> tuple[str, int]:
    match found:
        case [str(host), int(port)] if _is_name(name) and _is_name(host) and _is_port(port):
            return host, port
    raise UnreadableEndpoints(f"no host and port: listener {name[:NAME_CHARACTERS_MAX]!r}")


def _is_port(number: int) -> bool:
    return not isinstance(number, bool) and 0 < number <= PORT_MAX


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_CHARACTERS_MAX
