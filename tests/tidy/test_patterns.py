"""Expressions that clients send are compiled in one place, which limits what they cost."""

from __future__ import annotations

import ast

from tests.tidy.source import PACKAGES, Source, sources

RE2 = {
    "protocol/patterns.py": "expressions of clients, with limits",
    "broker/security/certificate_names.py": "ssl.principal.mapping.rules, read at the start",
}
PYTHONS_OWN = {
    "broker/config/providers.py": "allowlist.pattern of a config provider, read at the start",
    "broker/config/types.py": "the pattern of a setting, as broker_config.py says it",
    "protocol/sasl/oauthbearer.py": "text of the module, with control characters put in",
    "storage/dump.py": "names of files, which the module itself lists",
    "spark_connector/sentences.py": "sentences of Spark's, as the module lists them",
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
