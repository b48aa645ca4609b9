r"""Regular expressions of clients: RE2's language, with limits on the work that one can cause.

RE2 matches in linear time, but two other costs have no limit of RE2's own:

* **Compiling.** The time grows with the square of the compiled program: 8 MiB, RE2's default, allow
  720 characters that take 9 seconds. RE2's Python module holds the interpreter's lock meanwhile, so
  a thread does not help; only a small program does. What is parsed and then dropped, such as the
  Unicode classes in ``(?:\pL\pL){0}``, does not count as program, but costs time and memory. It
  has a limit of its own, ``weight_of``.
* **Matching**, where RE2 has no room for its fast automaton: each character of a text then costs as
  much as the program is long. ``match_work`` is the measure for those that divide such work.

Every module that compiles an expression of a client does so here (tests/tidy/test_patterns.py).
"""

from __future__ import annotations

import re
from typing import Final

import re2

PATTERN_MAX_CHARACTERS: Final = 8_192
MEMORY_MAX_BYTES: Final = 128 * 1024
"""Memory for the program and its automaton: about 10,900 instructions. With 256 KiB the slowest
expressions that were found took 0.2 s to compile, with 1 MiB 2.3 s, with 128 KiB 0.03 s."""
WEIGHT_MAX: Final = PATTERN_MAX_CHARACTERS
_CLASS_WEIGHT: Final = 32
"""A Unicode class takes RE2 up to 0.15 ms and 5 KiB, as much as 32 characters and more."""
_COUNTS_PER_WEIGHT: Final = 10
"""Repetitions that weigh as much as one character: RE2 expands them before it checks their
number."""
_BYTES_PER_WEIGHT: Final = 160
_COUNT: Final = re.compile(r"\{([0-9]{1,4})(?:,([0-9]{0,4}))?\}")


class InvalidPattern(ValueError):
    """An expression that RE2 does not accept, or that is too large; the text has the reason."""


def compile_pattern(pattern: str, memory_bytes: int = MEMORY_MAX_BYTES) -> re2._Regexp[bytes]:
    """Compile a client's expression for UTF-8 bytes; raises InvalidPattern.

    Compiling takes 0.03 s of the processor at most, a quarter of that with half of the memory.
    Groups are not kept.
    """
    if len(pattern) > PATTERN_MAX_CHARACTERS:
        raise InvalidPattern(f"longer than {PATTERN_MAX_CHARACTERS} characters")
    if weight_of(pattern) > WEIGHT_MAX:
        raise InvalidPattern("too many repetitions and Unicode classes")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory_bytes
    try:
        return re2.compile(pattern.encode(), options=options)
    except UnicodeEncodeError:
        raise InvalidPattern("the expression is not valid Unicode text") from None
    except re2.error as error:
        raise InvalidPattern(_text(error)) from None
    finally:
        re2.purge()  # The module's own cache is limited by number, not by bytes.


def weight_of(pattern: str) -> int:
    """Return the work of parsing an expression, in characters."""
    classes = pattern.count("\\p") + pattern.count("\\P")
    counts = sum(max(int(least), int(most or 0)) for least, most in _COUNT.findall(pattern))
    return len(pattern) + _CLASS_WEIGHT * classes + counts // _COUNTS_PER_WEIGHT


def bytes_of(pattern: str) -> int:
    """Return the memory that a compiled expression takes at most."""
    return MEMORY_MAX_BYTES + _BYTES_PER_WEIGHT * weight_of(pattern)


def match_work(compiled: re2._Regexp[bytes], size_bytes: int) -> int:
    """Return the maximum number of steps to match a text of this size.

    A million steps are up to 4 ms.
    """
    instructions: int = compiled.programsize
    return max(1, instructions) * max(1, size_bytes)


def _text(error: re2.error) -> str:
    """Return RE2's message."""
    words = error.args[0] if error.args else ""
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words)
