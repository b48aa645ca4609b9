"""Place of a broker, encoded as JSON when the broker registers.

Brokers of several releases read it, and ignore the fields that they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.broker.config.features import Ranges

TEXT_CHARACTERS_MAX: Final = 16_384
NAME_CHARACTERS_MAX: Final = 255
"""Maximum length of a rack, a listener's name and a host."""
ENDPOINTS_MAX: Final = 64
PORT_MAX: Final = 65_535
FEATURES_MAX: Final = 64
LEVEL_MAX: Final = 32_767


class UnreadableEndpoints(ValueError):
    """Registration of a broker that this release cannot read."""


class Place(NamedTuple):
    """Rack, endpoints and features of a broker."""

    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    """Host and port by listener name."""
    is_cordoned: bool = False
    """Whether the broker's own configuration cordons it, so that it leads no partitions."""
    features: Ranges = MappingProxyType({})
    """Levels of the features that it supports."""


def encode_place(place: Place) -> str:
    """Return a place as JSON; raises ValueError if no broker could read it."""
    fields: dict[str, object] = {"rack": place.rack, "endpoints": place.endpoints}
    if place.is_cordoned:
        fields["cordoned"] = True
    if place.features:
        fields["features"] = dict(place.features)
    text = json.dumps(fields, ensure_ascii=False)
    decode_place(text)
    return text


def decode_place(text: str) -> Place:
    """Return the place in a JSON text; raises UnreadableEndpoints."""
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
    """Return the supported levels by feature, without features that this release cannot read."""
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
