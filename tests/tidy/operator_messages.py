"""Messages that an operator can see: log lines from WARNING on, and refusals that end a start."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.tidy.source import Source, sources

FOLDERS = ("broker", "coordinator", "storage", "protocol")
LEVELS = {"warning", "error", "exception", "critical"}
LOGGERS = {"logger", "log", "_log"}
REFUSALS = {
    "ConfigError",
    "IdentityMismatch",
    "MetaStoreError",
    "NodeIdTaken",
    "NotDurable",
    "SchemaTooNew",
    "StorageError",
    "StoreUnusable",
}
"""Exceptions that `barnabas serve` prints as the reason that it did not start, or ended."""
PLACE = re.compile(r"%[.\d]*[a-z]|\{[^{}]*\}")
FIELD = re.compile(r"\s+\(?[a-z_.]+=\s*(?:%|\{).*", re.DOTALL)
"""The first field of a log line, and all that follows."""
LEAST_WORDS = 2


class Message(NamedTuple):
    """A text of the sources; a placeholder is `{}`."""

    place: str
    text: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression of the text on the page, with any text for a placeholder."""
        parts = [re.escape(each.strip()) for each in self.text.split("{}")]
        return re.compile(r"\s*.*?\s*".join(parts))


def messages() -> list[Message]:
    """Return the messages of the product, without those of the test kit."""
    return [
        each
        for source in sources(*FOLDERS)
        if not source.is_generated and not source.name.startswith("broker/testing/")
        for each in (*_log_lines(source), *_refusals(source))
    ]


def _log_lines(source: Source) -> Iterator[Message]:
    for function in _functions(source.tree):
        names = dict(_assigned(function))
        for call in _own_calls(function):
            name = call.func
            if (
                not isinstance(name, ast.Attribute)
                or name.attr not in LEVELS
                or not isinstance(name.value, ast.Name)
                or name.value.id not in LOGGERS
                or not call.args
            ):
                continue
            first = call.args[0]
            if isinstance(first, ast.Name):
                first = names.get(first.id, first)
            text = _text(first)
            if text is None or _words(text) < LEAST_WORDS:
                text = f"? {ast.unparse(call)}"  # The list of exceptions has to name it.
            yield Message(f"{source.name}:{call.lineno}", _normal(text))


def _refusals(source: Source) -> Iterator[Message]:
    for node in source.nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = node.exc.func
            called = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            texts = [_text(each) for each in node.exc.args]
            if called in REFUSALS and called != "ConfigError" and len(texts) == 1 and texts[0]:
                yield Message(f"{source.name}:{node.lineno}", _normal(texts[0], is_log=False))
        elif isinstance(node, ast.ClassDef) and source.name in {
            "storage/errors.py",
            "broker/config/types.py",
        }:
            yield from _own_text(source, node)
    if source.name in {"broker/cli/commands/serve.py", "broker/cluster/start/exit_reasons.py"}:
        yield from _ends(source)


def _own_text(source: Source, node: ast.ClassDef) -> Iterator[Message]:
    """Yield the message that an exception's class composes itself."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            text = _text(call.args[0]) if call.args else None
            if text is not None and _words(text) >= LEAST_WORDS:
                yield Message(f"{source.name}:{call.lineno}", _normal(text, is_log=False))


def _ends(source: Source) -> Iterator[Message]:
    """Yield the texts with which the command `serve` ends."""
    for node in source.nodes:
        value = None
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            value = node.exc.args[0]
        elif isinstance(node, ast.Return) and source.name.endswith("exit_reasons.py"):
            value = node.value
        text = None if value is None else _text(value)
        if text is not None and _words(text) >= LEAST_WORDS:
            yield Message(f"{source.name}:{node.lineno}", _normal(text, is_log=False))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _own_calls(function: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a function, without those of functions inside of it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _own_calls(child)


def _assigned(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _words(text: str) -> int:
    """Return the number of words that are no placeholders."""
    return len(re.findall(r"[A-Za-z]{2,}", PLACE.sub("", text)))


def _text(node: ast.expr) -> str | None:
    """Return a literal; an f-string has `{}` for each expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values
        )
    return None


def _normal(text: str, *, is_log: bool = True) -> str:
    """Return a text without the fields of a log line; each placeholder is `{}`."""
    text = FIELD.sub("", text) if is_log else text
    return PLACE.sub("{}", text).strip()
