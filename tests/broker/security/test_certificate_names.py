"""Names of users from names in certificates: every answer is Apache Kafka's, or stricter."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.listeners.certificate_names import (
    CertificateNames,
    MalformedRules,
    NoName,
)
from tests.broker import tls

LINES = (Path(tls.__file__).parent / "java_mapping.txt").read_text().splitlines()

# Java takes these patterns; here the start is refused.
NOT_AVAILABLE = {
    r"RULE:^CN=\p{Alpha}+,.*/x/",
    r"RULE:^CN=\p{IsLatin}+,.*/x/",
    "RULE:CN=a++lice.*/x/",
    "RULE:CN=(?=alice).*/x/",
    r"RULE:(CN).*\1?.*/x/",
    "RULE:CN=[a-z&&[^b]]*,.*/x/",
    r"RULE:CN=\h*a.*/x/",
    "RULE:CN=[abc[de]]+,.*/x/",
    r"RULE:CN=.*\bO.*/x/",
    "RULE:(?U)CN=a.*/x/",
    r"RULE:CN=\0101.*/x/",
}


def answer(rules, name):
    try:
        return f"={CertificateNames(rules).user_of(name)}"
    except MalformedRules:
        return "refused"
    except NoName:
        return "none"


@pytest.mark.parametrize("line", LINES)
def test_like_kafka(line):
    rules, name, expected = json.loads(line)
    if expected == "failed" or rules in NOT_AVAILABLE:
        # Kafka starts, and closes the connection when the rule applies.
        expected = "refused"
    elif expected == "=":
        expected = "none"  # A user without a name is none.
    assert answer(rules, name) == expected


def test_unsupported_patterns_work_in_java():
    given = {rules: result for rules, _, result in map(json.loads, LINES)}
    assert all(given[rules].startswith("=") for rules in NOT_AVAILABLE)


def test_letters_that_only_re2_takes_for_ascii_match_nothing():
    assert answer("RULE:(?i)CN=sam.*/x/", "CN=Sam") == "=x"
    assert answer("RULE:(?i)CN=sam.*/x/", "CN=\u017fam") == "none"
    assert answer("RULE:CN=\u017fam/x/", "CN=\u017fam") == "=x"
    assert answer("RULE:(?i)CN=ä/x/", "CN=Ä") == "refused"


@pytest.mark.parametrize("end", "\n\r\0\x85\u2028")
def test_names_with_line_ends_match_no_pattern(end):
    assert answer("RULE:CN=.*/x/,DEFAULT", f"CN=a{end}b") == f"=CN=a{end}b"


def test_backtracking_pattern_is_matched_in_linear_time():
    name = "CN=" + "a" * 5000
    assert answer("RULE:CN=(a*)*b/x/", name) == "none"


def test_a_pattern_that_is_too_large():
    assert answer(f"RULE:{'(x{1000})' * 1000}/x/", "x") == "refused"


def test_the_message_is_one_line_that_names_the_rule():
    with pytest.raises(MalformedRules, match=r"^Invalid rule: `RULE:\(a/x/`|^Invalid rule: `\(a`"):
        CertificateNames("RULE:(a/x/")


PATTERNS = st.lists(
    st.sampled_from(["CN=", "(.*)", "(.*?)", "([^,]+)", ",", "O=", r"\/", ".", "^", "$", "a|b"]),
    max_size=6,
).map("".join)
REPLACEMENTS = st.lists(
    st.sampled_from(["$1", "$2", "$", "x", " ", r"\/", "\\", "@", "Zoë"]), max_size=4
).map("".join)
RULES = st.tuples(PATTERNS, REPLACEMENTS, st.sampled_from(["", "L", "U", "x"])).map(
    lambda rule: "RULE:{}/{}/{}".format(*rule)
) | st.just("DEFAULT")


@given(
    st.lists(RULES, min_size=1, max_size=3).map(",".join),
    st.text(max_size=20) | st.sampled_from(["CN=alice", "CN=a,O=b", r"CN=a\,b,O=c", ""]),
)
def test_rules_of_the_grammar_give_a_name_or_none(rules, name):
    assert answer(rules, name)[0] in "=nr"
    if rules == "DEFAULT":
        assert answer(rules, name) == (f"={name}" if name else "none")


def test_random_rules_are_taken_or_refused():
    draw = random.Random(4514)
    pieces = [
        "RULE:",
        "DEFAULT",
        "/",
        ",",
        "\\",
        "(",
        ")",
        "[",
        "]",
        "$",
        "1",
        "{",
        "}",
        "*",
        "CN=",
    ]
    for _ in range(3000):
        rules = "".join(draw.choices(pieces, k=draw.randrange(1, 14)))
        assert answer(rules, "CN=alice,OU=eng")[0] in "=nr"
