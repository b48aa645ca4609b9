"""Words and sentences that readers stumble over, in docstrings, comments, messages and pages.

``python -m tests.tidy.english FILE...`` prints the hits of files. The rules are patterns with the
advice for a writer; text in backquotes and in blocks of code is not checked.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.tidy.source import PACKAGES, ROOT, Source, comments_and_strings, sources

SENTENCE_WORDS_MAX: Final = 40
SUBCLAUSES_MAX: Final = 3
_BE: Final = r"(?:is|are|was|were|be|been|being)"


@dataclass(frozen=True)
class Rule:
    """A pattern, what to write instead, and an example of each side."""

    pattern: str
    advice: str
    bad: str
    good: str


WORDS: Final[dict[str, Rule]] = {
    "no-actor": Rule(
        r"\b(?:who(?:m|so)?ever|somebody|someone|nobody|anybody|everybody|everyone)\b",
        "name the actor: the caller, a client, any user, no broker",
        "Wait for somebody.",
        "Wait for a client.",
    ),
    "free-who": Rule(
        r"\b(?:those|these|the one|all|him) who\b"
        r"|(?:^|[.:;,(] )who (?:may|can|has|does|did|had|will|do|waits?|asks?|reads?|leads?)\b",
        "name the actor: waiters, members that ..., the leader",
        "End everything; who waits gets an error.",
        "The user who owns it.",
    ),
    "whichever": Rule(
        r"\b(?:whatever|whichever)\b", "write any, regardless of", "Whatever it has.", "Any of it."
    ),
    "person": Rule(
        r"\b(?:he|she|him|himself|herself|ours)\b",
        "write they or the actor",
        "He may.",
        "They may.",
    ),
    "speech": Rule(
        rf"\b{_BE}(?: (?:not|never|only|also|once))? (?:told|asked|answered)\b"
        r"|\btell(?:s|ing)? (?:who|what|where|why|how|clients?|it|them|the (?:client|broker))\b",
        "write receives, is notified, gets the error, is acknowledged, requested",
        "The client is told.",
        "The client receives the error.",
    ),
    "hang-up": Rule(
        r"\b(?:hangs?|hung|hanging) up\b", "close the connection", "It hangs up.", "It hangs."
    ),
    "old-word": Rule(
        r"\b(?:anew|afresh|in vain|for ever|lest|thereby|therein|likewise|shall|all the same"
        r"|as ever|to be had|but for|begun|be it|nought|whence|hitherto)\b",
        "write again, unsuccessfully, forever, also, must, except, started",
        "Written anew.",
        "Written again.",
    ),
    "goes-on": Rule(
        r"\b(?:go|goes|going|gone|went) (?:on|by)\b(?! to\b)",
        "write continue, resume, follow",
        "Everything goes on.",
        "It goes to disk.",
    ),
    "is-there": Rule(
        rf"\b{_BE} (?:not )?(?:away|gone)\b(?! from)"
        r"|(?<!there )\b(?:is|are|was) (?:not |still )?there[.,;]",
        "write is unavailable, was deleted, disconnected, exists",
        "The store is away.",
        "The store is unavailable.",
    ),
    "pending": Rule(
        r"\b(?:owed|owing|owes|debts?)\b",
        "write pending or not yet written",
        "It is owed.",
        "Pending.",
    ),
    "stranded": Rule(
        rf"\b{_BE} (?:looked|cared|reckoned|heard|waited|kept|thought|counted)"
        r" (?:at|for|to|of|about|on)\b",
        "use one verb: checked, inspected, awaited, followed",
        "It is looked at.",
        "It is kept in memory.",
    ),
    "stands": Rule(
        r"\b(?:stands?|stood|standing)"
        r" (?:in(?! for)|before|behind|between|at|on|beside|above|below)\b",
        "write is, comes, precedes, is stored in",
        "It stands in the log.",
        "It stands for a name.",
    ),
    "no-amount": Rule(
        r"\b(?:for|after|only|within) so (?:long|many|much)\b(?! (?:as|that)\b)|\bsome \d",
        "name the quantity or the parameter",
        "Wait for so long.",
        "Only so long as it lasts.",
    ),
    "former-life": Rule(
        r"\b(?:former|another|earlier|its) li(?:fe|ves)\b",
        "write process or run",
        "A former life.",
        "A run.",
    ),
}
"""Rules of words, everywhere."""

STARTS: Final[dict[str, Rule]] = {
    "starts-with-question": Rule(
        r"^(?:What|Who|Whom|Whose|Where|Why|How|Which|Since when|Up to where)\b",
        "begin with a noun for data, with a verb for a function",
        "What the command has.",
        "Options of the command.",
    ),
    "starts-in-the-middle": Rule(
        r"^(?:Of|It|Its|They|Those|These|That|This|So|Such|As|Otherwise|Once|After|Only|Also|Before"
        r"|Behind|With|Without|Nothing|None|Not|Or|And|But|Even|Here|There|Until|From|Because|If|Unless"
        r"|No) ",
        "begin with a noun or a verb: no sentence precedes a docstring",
        "Of one that waits.",
        "Offset of the batch.",
    ),
    "odd-verb": Rule(
        r"^(?:Be|Let|Have|Go|Come|Say|Tell|Know|Mind|Hear|Give (?:back|up)|Answer|Ask|Hold back)\b",
        "use a programmer's verb: continue, notify, return, request, respond",
        "Let no timer run.",
        "Return the timer.",
    ),
    "returns-a-question": Rule(
        r"^(?:Return|Yield|Read|Find|Count|Keep|Print|Show|Take|Write|Send)"
        r" (?:what|who|whom|whose|why|how|where)\b",
        "name the value: Return the offset of ...",
        "Return what is kept.",
        "Return the offset.",
    ),
}
"""Rules of the first words of a docstring."""

NAMES: Final = re.compile(r"(?:^|_)(?:told|whoever|nobody|somebody|looks|who|go_on|hang_up)(?:_|$)")
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WITH_MESSAGE: Final = (ast.Raise, ast.Call)
_WORDS: Final = {name: re.compile(rule.pattern, re.IGNORECASE) for name, rule in WORDS.items()}
_ANY_WORD: Final = re.compile("|".join(rule.pattern for rule in WORDS.values()))
_STARTS: Final = {name: re.compile(rule.pattern) for name, rule in STARTS.items()}
_CODE: Final = re.compile(r"``.+?``|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[*-] |\n\s*\d+\. |\|")


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule."""

    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.line} {self.rule}: {self.text}"


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", "x", match[0])


def word_hits(text: str, line: int) -> Iterator[Hit]:
    """Yield the hits of the rules of words in a text that begins in ``line``."""
    text = _CODE.sub(_blank, text)
    # Most texts have no hit at all.
    if _ANY_WORD.search(text.lower()) is None:
        return
    for name, pattern in _WORDS.items():
        for match in pattern.finditer(text):
            yield Hit(line + text.count("\n", 0, match.start()), name, match[0].strip())


def sentence_hits(text: str, line: int) -> Iterator[Hit]:
    """Yield the sentences of a text that are too long or too deep."""
    text = _CODE.sub("x", text)
    for sentence in _SENTENCE.split(text):
        words = sentence.split()
        if len(words) > SENTENCE_WORDS_MAX:
            yield Hit(line, "long-sentence", " ".join(words[:6]))
        elif (
            sum(word.strip(",") in {"that", "which", "who", "what"} for word in words)
            > SUBCLAUSES_MAX
        ):
            yield Hit(line, "deep-sentence", " ".join(words[:6]))


def page_hits(text: str) -> list[Hit]:
    """Return the hits of a page in Markdown."""
    text = _FENCED.sub(_blank, text)
    return [*word_hits(text, 1), *sentence_hits(text, 1)]


def source_hits(source: Source) -> list[Hit]:
    """Return the hits of a Python file."""
    is_test = source.name.startswith("tests/")
    hits: list[Hit] = []
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hits += _docstring_hits(str(node.value.value), node.lineno)
        elif isinstance(node, _WITH_MESSAGE) and not is_test:
            hits += _message_hits(node)
        elif isinstance(node, _DEFINITIONS) and NAMES.search(node.name) and not is_test:
            hits.append(Hit(node.lineno, "name", node.name))
    if "#" in source.text:
        hits += _comment_hits(source.text)
    return hits


def _docstring_hits(text: str, line: int) -> Iterator[Hit]:
    for name, pattern in _STARTS.items():
        match = pattern.match(text.lstrip())
        if match:
            yield Hit(line, name, text.strip().split("\n")[0])
    yield from word_hits(text, line)
    yield from sentence_hits(text, line)


def _message_hits(node: ast.Raise | ast.Call) -> Iterator[Hit]:
    """Yield the hits of the text of an exception or a log line."""
    call = node.exc if isinstance(node, ast.Raise) else node
    if not isinstance(call, ast.Call) or not call.args:
        return
    if isinstance(node, ast.Call):
        function = call.func
        is_log = isinstance(function, ast.Attribute) and function.attr in _LEVELS
        if not is_log:
            return
    for each in ast.walk(call.args[0]):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from word_hits(each.value, each.lineno)


_LEVELS: Final = {"debug", "info", "warning", "error", "exception", "critical"}


def _comment_hits(text: str) -> Iterator[Hit]:
    block: list[str] = []
    line = start = 1
    end = 0
    for match in comments_and_strings(text):
        between = text[end : match.start()]
        is_comment = match[0].startswith("#")
        if block and not (is_comment and between.isspace()):
            yield from _block_hits(block, start)
            block = []
        line += between.count("\n")
        if is_comment:
            start = start if block else line
            block.append(match[0].lstrip("# "))
        line += match[0].count("\n")
        end = match.end()
    yield from _block_hits(block, start)


def _block_hits(block: list[str], start: int) -> Iterator[Hit]:
    comment = "\n".join(block)
    yield from word_hits(comment, start)
    yield from sentence_hits(comment, start)


def pages() -> list[Path]:
    """Return the pages that people write."""
    generated = {"permissions.md", "configuration.md", "benchmarks-before-after.md"}
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(each for each in found if each.name not in generated)


def english_counts() -> dict[str, int]:
    """Return the number of hits of each file of the product, the tests and the pages."""
    counts = {
        source.name: len(source_hits(source))
        for source in sources(*PACKAGES, "tests", "examples")
        if not source.is_generated and source.path != Path(__file__)
    }
    for page in pages():
        counts[page.relative_to(ROOT).as_posix()] = len(page_hits(page.read_text(encoding="utf-8")))
    return counts


def main(names: list[str]) -> int:
    """Print the hits of files; return 1 if there are any."""
    found = 0
    for name in names:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            hits = source_hits(Source(path, text, ast.parse(text)))
        else:
            hits = page_hits(text)
        for hit in sorted(hits, key=lambda each: each.line):
            print(f"{name}:{hit}")
        found += len(hits)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
