import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.loading.properties import (
    MalformedProperties,
    Property,
    parse_properties,
    properties_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("  a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("a  =  b=c", {"a": "b=c"}),
        ("a : = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n ! c=d\ne=f", {"e": "f"}),
        ("a=b#c", {"a": "b#c"}),
        ("a=1\\\n   2\\\n\t3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n#a=1\nb=2", {"b": "2"}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=caf\\u00e9\\u00E9", {"a": "caféé"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=C:\\\\kafka", {"a": "C:\\kafka"}),
        ("a=1\na=2", {"a": "2"}),
        ("\n \n\f\n", {}),
    ],
)
def test_java_syntax(text, expected):
    assert {each.key: each.value for each in parse_properties(text)} == expected


def test_lines_are_counted_where_the_key_stands():
    assert parse_properties("# first\n\na=1\\\n  2\nb=3") == [
        Property("a", "12", 3),
        Property("b", "3", 5),
    ]


@pytest.mark.parametrize("text", ["a=\\u12", "\na=\\u12g4", "\na=\\u +12"])
def test_a_broken_escape_names_its_line(text):
    line = text.count("\n") + 1
    with pytest.raises(MalformedProperties, match=f"line {line}: malformed"):
        parse_properties(text)


def escape(text: str) -> str:
    escaped = "".join(
        "\\" + character if character in "\\=:#! \t\f" else character for character in text
    )
    return escaped.replace("\n", "\\n").replace("\r", "\\r")


characters = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(characters.filter(bool), characters)))
def test_escaped_properties_are_parsed_unchanged(pairs):
    text = "\n".join(f"{escape(key)} = {escape(value)}" for key, value in pairs)
    assert [(each.key, each.value) for each in parse_properties(text)] == pairs


@given(st.dictionaries(characters, characters))
def test_written_properties_are_parsed_unchanged(properties):
    text = properties_text(properties)
    assert text.isascii()
    assert {each.key: each.value for each in parse_properties(text)} == properties


def test_files_are_written_as_people_write_them():
    found = properties_text({"a.b": 'x="1" c:\\d', "pem": "one\ntwo", "ü": " é😀"})
    assert found.splitlines() == [
        'a.b=x="1" c:\\\\d',
        "pem=one\\ntwo",
        "\\u00FC=\\ \\u00E9\\uD83D\\uDE00",
    ]


@given(st.text(alphabet="\\=:#! \t\f\n\rabu0"))
def test_any_text_is_read_or_refused(text):
    try:
        properties = parse_properties(text)
    except MalformedProperties:
        assert "\\u" in text
    else:
        assert all(1 <= each.line <= len(text.splitlines()) + 1 for each in properties)
