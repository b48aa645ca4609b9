"""The API's shapes as TypeScript say what the API's description says."""

from __future__ import annotations

import pytest

from tests.javascript.api_types import declarations, type_of
from tests.javascript.test_checks import check_types, scripts

__all__ = ["scripts"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "number"),
        ({"type": ["integer", "string"], "pattern": "^-?[0-9]+$"}, "number | string"),
        ({"anyOf": [{"$ref": "#/components/schemas/Worst"}, {"type": "null"}]}, "Worst | null"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
    ],
)
def test_a_schema_as_a_type(schema, expected):
    assert type_of(schema) == expected


def test_every_shape_is_declared():
    text = declarations()
    assert "/** Activity and problems of the broker. */\n" in text
    assert "export interface Overview {\n  as_of: number | string;\n" in text


@pytest.mark.parametrize(
    ("field", "is_there"), [("topics.toFixed()", True), ("as_of.toFixed()", False), ("x", False)]
)
def test_a_script_is_held_to_what_the_broker_answers(scripts, tmp_path, capfd, field, is_there):
    parameter = '/** @param {import("./api.d.ts").Overview} state */'
    (scripts / "planted.js").write_text(
        f"{parameter}\nexport const f = (state) => state.{field};\n"
    )
    assert (check_types(scripts, tmp_path / "build") == 0) == is_there
