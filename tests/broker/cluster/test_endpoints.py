"""Places of brokers are decoded as they were encoded, or refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.cluster.endpoints import (
    ENDPOINTS_MAX,
    FEATURES_MAX,
    LEVEL_MAX,
    NAME_CHARACTERS_MAX,
    TEXT_CHARACTERS_MAX,
    Place,
    UnreadableEndpoints,
    decode_place,
    encode_place,
)

NAMES = st.text(min_size=1, max_size=20)
PLACES = st.builds(
    Place,
    st.none() | NAMES,
    st.dictionaries(NAMES, st.tuples(NAMES, st.integers(1, 65_535)), max_size=5),
    st.booleans(),
    st.dictionaries(
        NAMES, st.tuples(st.integers(0, 9), st.integers(9, LEVEL_MAX)), max_size=FEATURES_MAX
    ),
)


@settings(max_examples=60)
@given(PLACES)
def test_a_place_is_read_as_it_was_written(place):
    assert decode_place(encode_place(place)) == place


LONG = "x" * (NAME_CHARACTERS_MAX + 1)
UNREADABLE = {
    "not JSON": "{",
    "nested too deeply": "[" * TEXT_CHARACTERS_MAX,
    "nothing": "",
    "no object": "[]",
    "no rack": '{"endpoints": {}}',
    "no endpoints": '{"rack": null}',
    "a rack that is a number": '{"rack": 1, "endpoints": {}}',
    "an empty rack": '{"rack": "", "endpoints": {}}',
    "a rack that is too long": json.dumps({"rack": LONG, "endpoints": {}}),
    "endpoints that are a list": '{"rack": null, "endpoints": []}',
    "an endpoint without a port": '{"rack": null, "endpoints": {"A": ["h"]}}',
    "a port that is a text": '{"rack": null, "endpoints": {"A": ["h", "1"]}}',
    "a port that is a truth": '{"rack": null, "endpoints": {"A": ["h", true]}}',
    "no port": '{"rack": null, "endpoints": {"A": ["h", 0]}}',
    "a port that is too high": '{"rack": null, "endpoints": {"A": ["h", 65536]}}',
    "an empty host": '{"rack": null, "endpoints": {"A": ["", 1]}}',
    "an empty name": '{"rack": null, "endpoints": {"": ["h", 1]}}',
    "a host that is too long": json.dumps({"rack": None, "endpoints": {"A": [LONG, 1]}}),
    "a name that is too long": json.dumps({"rack": None, "endpoints": {LONG: ["h", 1]}}),
    "too many": json.dumps(
        {"rack": None, "endpoints": {str(each): ["h", 1] for each in range(ENDPOINTS_MAX + 1)}}
    ),
    "too much": " " * TEXT_CHARACTERS_MAX + '{"rack": null, "endpoints": {}}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_place_is_refused(text):
    with pytest.raises(UnreadableEndpoints):
        decode_place(text)


@pytest.mark.parametrize(
    "features",
    [None, [], {str(each): [0, 1] for each in range(FEATURES_MAX + 1)}]
    + [{"known": [0, 1], "unknown": each} for each in ("1", [], [1, 0], [-1, 1], [0, "1"])],
)
def test_unknown_feature_fields_are_ignored(features):
    text = json.dumps({"rack": None, "endpoints": {}, "features": features})
    is_known = isinstance(features, dict) and len(features) == 2
    assert decode_place(text).features == ({"known": (0, 1)} if is_known else {})


def test_unreadable_place_is_not_encoded():
    with pytest.raises(ValueError, match="no host and port"):
        encode_place(Place(None, {"A": ("", 1)}))


def test_unknown_place_fields_are_ignored():
    text = '{"rack": "r", "endpoints": {"A": ["h", 1]}, "roles": []}'
    assert decode_place(text) == Place("r", {"A": ("h", 1)})
