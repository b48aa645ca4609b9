"""Ids of inputs in keys, headers and values, and in the outputs of programs."""

from __future__ import annotations

import json

import pytest

from barnabas.broker.cli.proving.identities import Identities, IdRule, replayed
from barnabas.broker.cli.records.record_text import NewRecord


def made(text: str) -> Identities:
    return Identities(IdRule.parse(text), 0xABC)


@pytest.mark.parametrize("text", ["key", "header:trace", "json:order"])
def test_input_has_its_id_where_the_rule_says(text):
    identities = made(text)
    assert str(identities.rule) == text
    assert identities.of(identities.record(17)) == ["00000abc-000017"]


@pytest.mark.parametrize("text", ["", "keys", "key:a", "header", "header:", "json:", "value"])
def test_unknown_rule_is_refused_with_its_text(text):
    with pytest.raises(ValueError, match="is not key, header:NAME or json:FIELD"):
        IdRule.parse(text)


def test_id_in_the_key_is_found_in_an_output_that_has_only_the_value():
    identities = made("key")
    value = identities.record(17).value
    assert identities.of(NewRecord(None, value)) == ["00000abc-000017"]
    assert identities.of(NewRecord(b"account-1", value)) == ["00000abc-000017"]


def test_id_of_a_header_or_a_field_is_not_looked_for_elsewhere():
    record = made("key").record(17)
    assert made("header:trace").of(record) == []
    assert made("json:order").of(record) == []
    assert made("json:order").of(NewRecord(b"k", b"[1")) == []
    assert made("json:order").of(NewRecord(b"k", None)) == []


def test_output_of_several_inputs_has_all_their_ids_once():
    identities = made("key")
    both = [identities.record(number).value for number in (1, 2, 1)]
    assert identities.of(NewRecord(None, b" ".join(filter(None, both)))) == [
        "00000abc-000001",
        "00000abc-000002",
    ]


def test_ids_of_another_run_are_not_found():
    assert made("key").of(Identities(IdRule(), 0xABD).record(1)) == []


def test_value_is_json_with_account_and_amount():
    value = made("json:order").record(203).value
    assert value is not None
    assert json.loads(value) == {
        "id": "00000abc-000203",
        "order": "00000abc-000203",
        "account": "account-3",
        "amount": 3,
    }


def written(tmp_path, *records: dict[str, object]) -> str:
    path = tmp_path / "records.json"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return str(path)


def test_replayed_records_have_the_ids_of_their_user(tmp_path):
    path = written(tmp_path, {"key": "o-1", "value": "x"}, {"key": "o-2", "value": "y"})
    found = replayed(path, IdRule(), 1)
    assert len(found) == 2
    assert found.record(1) == NewRecord(b"o-2", b"y")
    assert found.of(NewRecord(b"o-2", b"other")) == ["o-2"]
    assert found.of(NewRecord(None, b"o-2")) == []


def test_replayed_ids_may_be_in_a_field_or_a_header(tmp_path):
    path = written(tmp_path, {"value": '{"order": 17}'})
    assert replayed(path, IdRule.parse("json:order"), 1).of(NewRecord(b"k", b'{"order": 17}')) == [
        "17"
    ]
    path = written(tmp_path, {"value": "x", "headers": [{"key": "trace", "value": "t-1"}]})
    found = replayed(path, IdRule.parse("header:trace"), 1)
    assert found.of(found.record(0)) == ["t-1"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"value": "x"}], "record 1 has no id: key"),
        ([{"key": "a"}, {"key": "a"}], "two records have the id a: key"),
        ([[]], "records.json:1: "),
    ],
)
def test_records_that_cannot_be_replayed_are_named(tmp_path, records, message):
    with pytest.raises(ValueError, match=message):
        replayed(written(tmp_path, *records), IdRule(), 1)
