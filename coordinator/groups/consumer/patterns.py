"""Regular expressions of topics: RE2's language, matched in linear time (KIP-848).

A client's expression must not be able to stop the broker, so Python's own ``re`` is out of the
question: it can need time exponential in the length of a topic's name. Apache Kafka uses RE2's port
to Java. ``protocol/patterns.py`` limits what an expression costs to compile; here the compiled
ones are kept, as far as they fit into a budget of bytes, and matching goes in steps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.patterns import InvalidPattern, bytes_of, compile_pattern, match_work

if TYPE_CHECKING:
    import re2

KEPT_MAX_BYTES: Final = 16 * 1024 * 1024
"""Memory for compiled expressions: more than a hundred usual ones."""
WORK_PER_STEP: Final = 1_000_000
"""Instructions of programs on bytes of names before others may get a turn: 4 ms at most."""
_WORK_PER_NAME: Final = 500
"""Work for each name besides the expression's, such as the call itself."""
_WORK_TO_COMPILE: Final = WORK_PER_STEP

Matches = Mapping[str, frozenset[str]]
"""The names that each expression matches."""


class CompiledPatterns:
    """Cache of compiled expressions, limited in bytes; the least recently used leave first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, re2._Regexp[bytes]] = OrderedDict()
        self.size_bytes = 0
        """Memory of all of them, at most."""

    def __len__(self) -> int:
        """Number of expressions that are kept."""
        return len(self._kept)

    def __contains__(self, regex: str) -> bool:
        """Whether an expression is kept."""
        return regex in self._kept

    def get(self, regex: str) -> re2._Regexp[bytes]:
        """Return an expression, compiled; raises InvalidPattern."""
        compiled = self._kept.get(regex)
        if compiled is not None:
            self._kept.move_to_end(regex)
            return compiled
        compiled = compile_pattern(regex)
        self._kept[regex] = compiled
        self.size_bytes += bytes_of(regex)
        while self.size_bytes > self._max_bytes and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            self.size_bytes -= bytes_of(oldest)
        return compiled


_compiled: Final = CompiledPatterns(KEPT_MAX_BYTES)


def problem_of(regex: str) -> str | None:
    """Return the reason why a text is no regular expression, or ``None`` if it is one."""
    try:
        _compiled.get(regex)
    except InvalidPattern as error:
        return str(error)
    return None


def matching_in_steps(
    regexes: Iterable[str], names: Collection[str]
) -> Generator[None, None, Matches]:
    """Find the names that each expression matches completely.

    Yields after each few milliseconds' work. An expression that is not valid matches nothing:
    only the log of another broker can have one.
    """
    found: dict[str, frozenset[str]] = {}
    encoded = [(name, name.encode(errors="surrogatepass")) for name in names]
    work = 0
    for regex in regexes:
        if work >= WORK_PER_STEP:
            yield
            work = 0
        work += 0 if regex in _compiled else _WORK_TO_COMPILE
        try:
            compiled = _compiled.get(regex)
        except InvalidPattern:
            found[regex] = frozenset()
            continue
        matches: list[str] = []
        for name, data in encoded:
            if work >= WORK_PER_STEP:
                yield
                work = 0
            work += _WORK_PER_NAME + match_work(compiled, len(data))
            if compiled.fullmatch(data) is not None:
                matches.append(name)
        found[regex] = frozenset(matches)
    return found


class WholeMatch:
    """Checks whether texts match an expression from their first to their last character.

    Call ``problem_of`` first.
    """

    def __init__(self, regex: str) -> None:
        self._compiled = _compiled.get(regex)

    def __call__(self, text: str) -> bool:
        """Check one text, without holding the interpreter's lock."""
        return self._compiled.fullmatch(text.encode(errors="surrogatepass")) is not None

    def work(self, text: str) -> int:
        """Return the cost of matching a text, in the unit of ``WORK_PER_STEP``."""
        return _WORK_PER_NAME + match_work(self._compiled, 4 * len(text))
