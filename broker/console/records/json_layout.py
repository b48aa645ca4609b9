"""JSON laid out for reading, token by token: numbers stay as they were written, however long.

Nothing is parsed into values, so no number is rounded and no key is lost, and it ends where enough
is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.console.records.pace import ThreadPace

INDENT: Final = "  "
DEPTH_SHOWN: Final = 32
"""Depth after which nested values are not indented further: blanks would be most of the text."""

_BLANK: Final = " \t\r\n"
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*+(?:
    (?P<mark>[{}\[\],:])
    | (?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    | (?P<plain>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)
    )""",
    re.VERBOSE,
)
_BEGUN: Final = re.compile(r'"[^\x00-\x1f]*+\Z|-?[0-9.eE+-]*+\Z|[truefalsn]{1,5}\Z')
"""Pattern of the last token of a text that was cut."""


class NotJson(Exception):
    """The text is not JSON; the message says where."""


class _Layout:
    """One text on its way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.parts: list[str] = []
        self.size = 0
        self.open: list[str] = []
        self.expects = "value"
        """``value``, ``first value`` of a list, ``key``, ``first key``, ``:``, ``next``, ``end``"""

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.size > self._most

    def put(self, text: str) -> None:
        """Add a text."""
        self.parts.append(text)
        self.size += len(text)

    def take(self, part: str, kind: str) -> bool:
        """Add a part; return False if it is invalid here."""
        if kind != "mark":
            return self._take_value(part, is_string=kind == "string")
        if part in "{[":
            return self._open(part)
        if part in "}]":
            return self._close(part)
        if part == ":" and self.expects == ":":
            self.put(": ")
            self.expects = "value"
            return True
        if part == "," and self.expects == "next":
            self.put(",")
            self._new_line()
            self.expects = "key" if self.open[-1] == "{" else "value"
            return True
        return False

    def _take_value(self, part: str, *, is_string: bool) -> bool:
        if self.expects in {"key", "first key"}:
            if not is_string:
                return False
            self._begin_item("first key")
            self.put(part)
            self.expects = ":"
            return True
        if self.expects not in {"value", "first value"}:
            return False
        self._begin_item("first value")
        self.put(part)
        self._value_ended()
        return True

    def _open(self, part: str) -> bool:
        if self.expects not in {"value", "first value"}:
            return False
        self._begin_item("first value")
        self.put(part)
        self.open.append(part)
        self.expects = "first key" if part == "{" else "first value"
        return True

    def _close(self, part: str) -> bool:
        if not self.open or self.open[-1] + part not in {"{}", "[]"}:
            return False
        is_empty = self.expects in {"first key", "first value"}
        if not is_empty and self.expects != "next":
            return False
        self.open.pop()
        if not is_empty:
            self._new_line()
        self.put(part)
        self._value_ended()
        return True

    def _begin_item(self, first: str) -> None:
        if self.expects == first:
            self._new_line()

    def _value_ended(self) -> None:
        self.expects = "next" if self.open else "end"

    def _new_line(self) -> None:
        self.put("\n" + INDENT * min(len(self.open), DEPTH_SHOWN))


def lay_out(text: str, most: int, pace: ThreadPace, *, is_cut: bool) -> tuple[str, bool]:
    """Return JSON text laid out in lines, and whether it was cut.

    About ``most`` characters; ``is_cut``: the text itself is only a beginning. Raises NotJson.
    """
    layout = _Layout(most)
    position = 0
    while not layout.is_full:
        pace.step()
        found = _TOKEN.match(text, position)
        if found is None:
            break
        kind = found.lastgroup or ""
        if not layout.take(found[kind], kind):
            raise NotJson(f"not JSON at character {found.start(kind)}")
        position = found.end()
    if layout.is_full:
        return "".join(layout.parts)[:most], True
    rest = text[position:].lstrip(_BLANK)
    if is_cut and (not rest or (_BEGUN.fullmatch(rest) and layout.expects != "end")):
        layout.put(rest)
        return "".join(layout.parts)[:most], True
    if rest or layout.expects != "end":
        raise NotJson(f"not JSON at character {len(text) - len(rest)}")
    return "".join(layout.parts), False
