"""Expressions that clients send are compiled in one place, which limits what they cost."""

from __future__ import annotations

import ast
import importlib
import re
import time

import pytest

from tests.tidy.source import PACKAGES, Source, sources

RE2 = {
    "protocol/patterns.py": "expressions of clients, with limits",
    "broker/security/listeners/certificate_names.py": "ssl.principal.mapping.rules, read at the start",  # noqa: E501
}
PYTHONS_OWN = {
    "broker/config/loading/providers.py": "allowlist.pattern of a config provider, read at the start",  # noqa: E501
    "broker/config/types.py": "the pattern of a setting, as broker_config.py says it",
    "protocol/sasl/oauthbearer.py": "text of the module, with control characters put in",
    "storage/dump/dump.py": "names of files, which the module itself lists",
    "spark_connector/failures/sentences.py": "sentences of Spark's, as the module lists them",
}
"""Modules that hand ``re`` a value and no text of their own, and where the value is from."""
FUNCTIONS = {
    "compile",
    "match",
    "fullmatch",
    "search",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}


def uses_re2(source: Source) -> bool:
    """Whether a module imports RE2 when it runs, and not for types alone."""
    return any(
        isinstance(node, ast.Import) and any(each.name == "re2" for each in node.names)
        for node in source.tree.body
    )


def hands_over_a_value(source: Source) -> bool:
    """Whether a call of ``re`` has an expression that is no text and no constant of the module."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in FUNCTIONS
        and not isinstance(node.args[0], ast.Constant | ast.JoinedStr)
        and not (isinstance(node.args[0], ast.Name) and node.args[0].id.isupper())
        for node in source.nodes
    )


def test_only_modules_that_limit_them_compile_expressions_with_re2():
    assert {each.name for each in sources(*PACKAGES) if uses_re2(each)} == RE2.keys()


def test_pythons_own_engine_gets_no_expression_of_a_client():
    found = {each.name for each in sources(*PACKAGES) if hands_over_a_value(each)}
    assert found == PYTHONS_OWN.keys()


# ------------------------------------------------------------------------ our own, on any text

OPERATORS = (
    "barnabas.broker.cli.",
    "barnabas.broker.config.cluster.",
    "barnabas.broker.config.loading.environment.",
    "barnabas.broker.config.loading.providers.",
    "barnabas.broker.config.scram_credentials.",
    "barnabas.broker.security.listeners.certificate_names.",
    "barnabas.broker.security.tls.",
    "barnabas.protocol.generate.",
)
"""Modules whose expressions read text of operators alone, at the start or in the shell."""
TEXT_CHARACTERS = 3_000
SECONDS_MAX = 0.03
"""Processor time: a linear match of such a text takes 0.0001 s, one with its square 0.1 s."""
BEGINNINGS = (
    *(
        "",
        "-",
        "1",
        "1.",
        "1e",
        "a",
        '"',
        '"a',
        "/",
        "[",
        "{",
        "~",
        ".",
        "value",
        "value.a",
        'key:"',
    ),
    *("by_duration:P", "n,,n=", "n,,n=a,r=", "c=biws,r=", "Bearer ", "[::", "a://", "GET "),
)
UNITS = (
    *(
        "1",
        "a",
        "A",
        " ",
        "\t",
        ".",
        '"',
        "\\",
        '\\"',
        ",",
        "=",
        "/",
        "[",
        "{",
        "$",
        "-",
        ":",
        "(",
        "~",
    ),
    *(
        "a=",
        "0,",
        "1.",
        "a:",
        '"a"',
        "a ",
        "; ",
        "a.",
        "é",
        "\n",
        "[]",
        "\\n",
        "=2C",
        "/a/ ",
        "1:",
        "\1",
    ),
)


def expressions_for_clients() -> dict[str, re.Pattern]:
    """Return the expressions that modules compile when they are imported."""
    found: dict[re.Pattern, str] = {}
    for source in sources("broker", "coordinator", "protocol", "storage"):
        if f"{source.module}.".startswith(OPERATORS) or "re.compile(" not in source.text:
            continue
        if source.name.startswith("broker/testing/"):
            continue  # For tests of other people.
        for name, value in vars(importlib.import_module(source.module)).items():
            if isinstance(value, re.Pattern):
                found.setdefault(value, f"{source.module}.{name}")
    return {name: pattern for pattern, name in found.items()}


EXPRESSIONS = expressions_for_clients()


def takes_too_long(pattern: re.Pattern, text: str) -> bool:
    """Whether a match takes long, three times in a row: other processes disturb the first."""
    subject = text.encode() if isinstance(pattern.pattern, bytes) else text
    for _ in range(3):
        begun = time.thread_time()
        pattern.fullmatch(subject)
        if time.thread_time() - begun < SECONDS_MAX:
            return False
    return True


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_text_of_a_client_takes_an_expression_long(name):
    slow = [
        (beginning, unit)
        for beginning in BEGINNINGS
        for unit in UNITS
        if takes_too_long(
            EXPRESSIONS[name], beginning + unit * (TEXT_CHARACTERS // len(unit)) + "!"
        )
    ]
    assert slow == []
