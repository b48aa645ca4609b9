"""JSON of records, filters and requests: nothing in it may stop what reads it."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.broker.console.actions.fields import HEADERS, INTEGER, MAP, Field, Refused, read_body
from barnabas.broker.console.pages.spark_ledger import entry_of
from barnabas.broker.console.paging import Order
from barnabas.broker.console.records.examining import Content
from barnabas.broker.console.records.filters import JSON_BYTES_MAX, read_filter
from barnabas.broker.console.records.formats import AUTO, FORMATS, INTERNAL, show
from barnabas.broker.console.records.json_values import OutOfRange, is_same, read_json
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.ranges import ranges_from
from barnabas.broker.http.messages.request import Request
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records import Record
from barnabas.spark_connector.errors import SinkError
from barnabas.spark_connector.ledger import entries

HUGE = "1e9999999999999999999"
DIGITS = st.text("0123456789", min_size=1, max_size=30)
EXPONENTS = st.sampled_from(
    [
        "",
        "e0",
        "E+7",
        "e-7",
        "e400",
        "e-400",
        "e999999",
        "e999999999999999999",
        HUGE[1:],
        "e-" + HUGE[2:],
    ]
)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.one_of(
        st.just("0"),
        DIGITS.map(lambda digits: "1" + digits),
        st.integers(1, 6_000).map(lambda count: "7" * count),
    ),
    st.one_of(st.just(""), DIGITS.map(lambda digits: "." + digits)),
    EXPONENTS,
)
WORDS = st.sampled_from(
    ["NaN", "Infinity", "-Infinity", "null", "true", "false", '"\\ud800"', '"a"', '"\\u0000"']
)
TOO_DEEP = 20_000
DEEP = st.tuples(st.sampled_from([1, 10, 200, TOO_DEEP]), NUMBERS).map(
    lambda deep: "[" * deep[0] + deep[1] + "]" * deep[0]
)
VALUES = st.recursive(
    st.one_of(NUMBERS, WORDS, DEEP),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]"),
        st.lists(inner, max_size=3).map(
            lambda items: "{" + ",".join(f'"{n}":{each}' for n, each in enumerate(items)) + "}"
        ),
    ),
    max_leaves=6,
)
ODD = st.one_of(VALUES, st.text(max_size=50))


def record(value, key=None):
    return Record(0, 0, key, value, ())


# ---------------------------------------------------------------------------------- the values


@given(ODD)
@example(HUGE)
@example("[" * 100_000)
def test_any_text_is_a_value_or_no_json(text):
    try:
        value = read_json(text)
    except ValueError:
        return
    assert isinstance(is_same(value, value), bool)


@given(NUMBERS)
def test_any_number_is_the_same_as_itself(number):
    assert is_same(read_json(number), read_json(number))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("5", "5.0", True),
        ("5e0", "50e-1", True),
        ("-0", "0", True),
        ("-0.0", "0", True),
        ("1e400", "1e400", True),
        ("1e400", "10e399", True),
        ("1e400", "1e401", False),
        ("9007199254740993", "9007199254740992", False),
        ("7" * 5_000, "7" * 5_000, True),
        ("7" * 5_000, "7" * 5_000 + ".0", True),
        ("7" * 5_000, "7" * 4_999 + "8", False),
        (HUGE, HUGE, True),
        (HUGE, "5", False),
        (HUGE, "-" + HUGE, False),
        ("1", "true", False),
        ("NaN", "NaN", False),
        ("Infinity", "1e400", False),
    ],
)
def test_numbers_are_compared_exactly(one, other, expected):
    assert is_same(read_json(one), read_json(other)) is expected


def test_exponent_beyond_a_decimal_stays_a_text():
    assert read_json(f'{{"id": {HUGE}}}') == {"id": OutOfRange(HUGE)}


# --------------------------------------------------------------------------------------- filters


@given(VALUES)
@example(HUGE)
@example("7" * 5_000)
def test_value_hides_nothing_else_of_its_record_unless_it_is_too_deep(value):
    text = f'{{"odd":{value},"id":5}}'
    verdict = read_filter("value.id=5").matches(record(text.encode()))
    if len(text) > JSON_BYTES_MAX:
        assert verdict is None
    else:
        assert verdict is ("[" * TOO_DEEP not in text)


@given(st.one_of(NUMBERS, WORDS, st.text(max_size=80)), VALUES)
@example(HUGE, "5")
@example("1E+99999999999999999999", "5")
@example("[" * 900, "5")
def test_any_literal_is_read_or_refused(literal, value):
    try:
        chosen = read_filter(f"value.a={literal}")
    except KafkaError:
        return
    for data in (f'{{"a":{value}}}', value, literal):
        assert chosen.matches(record(data.encode(errors="surrogatepass"))) in {True, False, None}


@given(NUMBERS)
def test_a_number_is_found_by_the_same_number(number):
    text = f"key.a[0] = {number}"
    if len(text) <= 1_024:
        key = f'{{"a":[{number}]}}'.encode()
        assert read_filter(text).matches(record(None, key)) is True


@given(st.binary(max_size=60))
def test_any_bytes_are_compared(data):
    chosen = read_filter("value.id=5 key.id=5")
    assert chosen.matches(record(data, data)) in {True, False, None}


# ------------------------------------------------------------------------- requests and formats


@given(ODD)
@example("[" * 100_000)
@example('{"a":' * 990 + "1" + "}" * 990)
@example('{"a": "\\ud800"}')
@example(f'{{"partitions": {HUGE}}}')
@example('{"partitions": NaN}')
def test_any_body_is_read_or_refused(text):
    body = text.encode(errors="surrogatepass")
    request = Request("POST", ("api",), {}, {"content-type": "application/json"}, body)
    try:
        found = read_body(request)
    except Refused:
        return
    assert isinstance(found, dict)


@given(VALUES)
def test_any_value_of_a_field_is_read_or_refused(text):
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for kind in (INTEGER, MAP, HEADERS):
        try:
            Field("partition", kind, "A field.").read(value)
        except KafkaError:
            continue
        assert kind != INTEGER or abs(int(value)) < 2**63


@given(ODD)
def test_any_cursor_is_read_or_refused(text):
    data = f'["topic",{text}]'.encode(errors="surrogatepass")
    cursor = base64.urlsafe_b64encode(data).decode().rstrip("=")
    with suppress(KafkaError):
        (place,) = Order("topic", (str,)).place(cursor)
        assert isinstance(place, str)
    with suppress(KafkaError):
        assert ranges_from(cursor, "topic", ()) == []  # There is no such partition.


@given(st.one_of(ODD.map(lambda text: text.encode(errors="surrogatepass")), st.binary(max_size=80)))
def test_any_bytes_are_shown_in_every_format(data):
    for name in set(FORMATS) - {AUTO, *INTERNAL}:
        shown = show(Content(data, len(data)), name, 10_000, ThreadPace())
        assert shown is not None
        json.dumps(shown.text).encode()


@given(ODD, ODD)
def test_any_entry_of_the_ledger_is_shown_and_none_stops_a_sink(one, other):
    value = (
        f'{{"version":1,"batchId":{one},"transactions":[[{other}]],"pinned":{one},"begun":[{other}]'
    )
    for text in (one, f"{value}}}", f'{value},"recordCounts":[{one}],"measured":{other}}}'):
        data = text.encode(errors="surrogatepass")
        entry_of(("sink", "query"), record(data))
        with suppress(SinkError):
            entries.decode(data)
