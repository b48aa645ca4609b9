"""JAAS as users write it, and that its errors do not repeat passwords."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.sasl.jaas import (
    JaasModule,
    MalformedJaas,
    jaas_text,
    parse_jaas_file,
    parse_jaas_value,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required user_alice="secret";', {"user_alice": "secret"}),
        (
            f"{PLAIN} required user_alice=secret user_bob='b c';",
            {"user_alice": "secret", "user_bob": "b c"},
        ),
        (f'{PLAIN} REQUIRED user_a="x\\"y\\\\z;=" ;', {"user_a": 'x"y\\z;='}),
        (f"{PLAIN} required;", {}),
        (f"{PLAIN} // who\n required /* none\n of them */ a = b ;", {"a": "b"}),
        (f'{PLAIN} required a="" ; ', {"a": ""}),
    ],
)
def test_a_value_is_one_module(text, options):
    assert parse_jaas_value(text) == JaasModule(PLAIN, parse_jaas_value(text).flag, options)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the class of a login module is missing"),
        (PLAIN, "a control flag is missing"),
        (f"{PLAIN} needed;", "required, requisite, sufficient, optional"),
        (f'{PLAIN} required user_a="hidden"', "';' is missing"),
        (f"{PLAIN} required user_a;", "'=' behind the name of option 1 is missing"),
        (f"{PLAIN} required user_a=;", "the value of option 1 is missing"),
        (f'{PLAIN} required user_a="hidden;', "a quotation has no end"),
        (f"{PLAIN} required; {PLAIN} required;", "only one login module is allowed"),
        (f"{PLAIN} /* required;", "a comment has no end"),
    ],
)
def test_what_is_malformed_is_said_without_quoting_it(text, problem):
    with pytest.raises(MalformedJaas, match=problem) as caught:
        parse_jaas_value(text)
    assert "hidden" not in str(caught.value)


def test_a_file_has_sections_of_modules():
    text = f"""
    KafkaServer {{
        {PLAIN} required user_a="1";
        other.Module optional;
    }};
    sasl_ssl.KafkaServer {{ {PLAIN} required; }};
    """
    found = parse_jaas_file(text)
    assert list(found) == ["KafkaServer", "sasl_ssl.KafkaServer"]
    assert [module.name for module in found["KafkaServer"]] == [PLAIN, "other.Module"]


@pytest.mark.parametrize("text", ["A {", "A { };  A { };", "A { } B { };", "{ };", "A { x };"])
def test_malformed_files(text):
    with pytest.raises(MalformedJaas):
        parse_jaas_file(text)


def test_options_do_not_show():
    assert "secret" not in repr(parse_jaas_value(f"{PLAIN} required user_alice=secret;"))


PIECES = st.sampled_from(
    [PLAIN, " required", " ", "\n", ";", "{", "}", "=", '"', "'", "\\", "//", "/*", "*/", "user_a"]
)


@given(st.lists(PIECES | st.just("hunter2"), max_size=20).map("".join))
def test_any_text_is_read_or_refused_without_what_was_written(text):
    said = []
    for parse in (parse_jaas_value, parse_jaas_file):
        try:
            parse(f"{PLAIN} required {text}")
        except MalformedJaas as error:
            said.append(str(error))
    assert "hunter2" not in "".join(said)


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=20)))
def test_whatever_is_written_comes_back(options):
    module = JaasModule(PLAIN, "required", options)
    assert parse_jaas_value(jaas_text(module)) == module


def test_a_line_is_written_as_people_write_it():
    options = {"username": "a", "user_b c": 'say "\\"'}
    written = jaas_text(JaasModule(PLAIN, "required", options))
    assert written == f'{PLAIN} required username="a" "user_b c"="say \\"\\\\\\"";'


@given(st.text(max_size=50))
def test_text_of_any_kind(text):
    with contextlib.suppress(MalformedJaas):
        parse_jaas_value(text)
