"""JAAS, in which Kafka writes down users and passwords: ``Class flag key="value" ... ;``.

A value of ``sasl.jaas.config`` is one such module; a file has sections, ``KafkaServer { ... };``,
of one module or more. Words are plain or quoted, with ``"`` or ``'`` and backslash escapes; ``//``
and ``/* */`` are comments. Errors never repeat what was written: there are passwords in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_SPECIAL: Final = "{};="
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}
_ESCAPED: Final = {
    ord("\\"): r"\\",
    ord('"'): r"\"",
    **{ord(v): "\\" + k for k, v in _ESCAPES.items()},
}
_BARE_WORD: Final = re.compile(r"[A-Za-z0-9_$.-]+")


class MalformedJaas(Exception):
    """The text is no JAAS configuration; the message has the reason, without the text."""


@dataclass(frozen=True, slots=True)
class JaasModule:
    """One login module: its Java class, and its options, which may be secret."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas_value(text: str) -> JaasModule:
    """Read the value of ``sasl.jaas.config``; raises MalformedJaas."""
    words = _Words(text)
    module = _module(words)
    if words.next is not None:
        raise MalformedJaas("only one login module is allowed, and more follows")
    return module


def jaas_text(module: JaasModule) -> str:
    """Return a value of ``sasl.jaas.config`` with these options."""
    options = (f"{_word(key)}={_quoted(value)}" for key, value in module.options.items())
    return f"{' '.join((module.name, module.flag, *options))};"


def _word(text: str) -> str:
    return text if _BARE_WORD.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPED)}"'


def parse_jaas_file(text: str) -> dict[str, list[JaasModule]]:
    """Read a JAAS file: login modules by section; raises MalformedJaas."""
    words = _Words(text)
    sections: dict[str, list[JaasModule]] = {}
    while words.next is not None:
        name = words.take_word("the name of a section")
        if name in sections:
            raise MalformedJaas(f"the section {name} occurs twice")
        words.take("{", f"'{{' behind the section {name}")
        modules = sections[name] = []
        while words.next != ("}", False):
            modules.append(_module(words))
        words.take("}", "'}'")
        words.take(";", f"';' behind the section {name}")
    return sections


def _module(words: _Words) -> JaasModule:
    name = words.take_word("the class of a login module")
    flag = words.take_word("a control flag").lower()
    if flag not in FLAGS:
        raise MalformedJaas(f"behind the login module must stand one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while words.next != (";", False):
        # By its number: the name may be the rest of a password with a space in it.
        which = f"option {len(options) + 1}"
        key = words.take_word(f"{which} or ';'")
        words.take("=", f"'=' behind the name of {which}")
        options[key] = words.take_word(f"the value of {which}")
    words.take(";", "';'")
    return JaasModule(name, flag, options)


class _Words:
    """The words of a text; each with whether it was quoted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.next = self._read()

    def take(self, special: str, wanted: str) -> None:
        """Skip one of ``{};=``."""
        if self.next != (special, False):
            raise MalformedJaas(f"{wanted} is missing")
        self.next = self._read()

    def take_word(self, wanted: str) -> str:
        """Return the next word."""
        if self.next is None or (not self.next[1] and self.next[0] in _SPECIAL):
            raise MalformedJaas(f"{wanted} is missing")
        word = self.next[0]
        self.next = self._read()
        return word

    def _read(self) -> tuple[str, bool] | None:
        self._skip()
        text, start = self._text, self._position
        if start == len(text):
            return None
        first = text[start]
        if first in _SPECIAL:
            self._position += 1
            return first, False
        if first in "\"'":
            return self._quoted(first), True
        end = start
        while end < len(text) and not text[end].isspace() and text[end] not in _SPECIAL + "\"'":
            end += 1
        self._position = end
        return text[start:end], False

    def _quoted(self, quote: str) -> str:
        characters: list[str] = []
        position = self._position + 1
        while position < len(self._text):
            character = self._text[position]
            position += 1
            if character == quote:
                self._position = position
                return "".join(characters)
            if character == "\\" and position < len(self._text):
                escaped = self._text[position]
                characters.append(_ESCAPES.get(escaped, escaped))
                position += 1
            else:
                characters.append(character)
        raise MalformedJaas("a quotation has no end")

    def _skip(self) -> None:
        """Skip spaces and comments."""
        text = self._text
        while self._position < len(text):
            if text[self._position].isspace():
                self._position += 1
            elif text.startswith("//", self._position):
                end = text.find("\n", self._position)
                self._position = len(text) if end < 0 else end
            elif text.startswith("/*", self._position):
                end = text.find("*/", self._position + 2)
                if end < 0:
                    raise MalformedJaas("a comment has no end")
                self._position = end + 2
            else:
                return
