"""docs/troubleshooting.md has the messages that an operator can see, under their own words."""

from __future__ import annotations

import re

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.tidy.operator_messages import Message, messages
from tests.tidy.source import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]
SHOWN = [text for row in ROWS for text in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
NOT_ON_THE_PAGE = {
    "partition {} needs more than {} bytes of disk": "caught: logged as `disk full`",
    "? logger.warning('{}', self._around.base.warning)": "the text is of durability.py",
    "? logger.warning('{}', text)": "closed connections have a page of their own",
    "? logger.warning('{}', warning)": "the text is of broker/http/entry.py",
}
"""Messages that need no row of their own, with the reason."""
COMPOSED = {
    "unknown key KEY, did you mean KEY?": "broker/config/types.py",
    "PostgreSQL has no synchronous_standby_names, and nothing follows it now: all that is"
    " acknowledged is on this one server": "storage/postgresql/durability.py",
    "the brokers of the cluster keep records in the object store ADDRESS, and barnabas.storage of"
    " broker N is VALUE: set it to the value that the other brokers have": "storage/postgresql/"
    "migrations/0020_leaving_the_store.sql",
    "records of the cluster are in the object store ADDRESS, and barnabas.storage of broker N is"
    " not set: set it. A cluster leaves its object store by 'barnabas cluster export' and 'barnabas"
    " cluster import' into another database": "broker/testing/store/used_store.py",
    "the console is read-only: others can reach this port, and no listener asks who its clients"
    " are (barnabas.console.access)": "broker/http/entry.py",
}
"""Rows whose text is returned by a function, not raised or logged, and the file."""
FOUND = messages()


def is_shown(message: Message) -> bool:
    return any(message.pattern.match(text) for text in SHOWN)


@pytest.mark.parametrize("message", FOUND, ids=lambda each: each.place)
def test_message_has_a_row(message):
    if message.text not in NOT_ON_THE_PAGE:
        assert is_shown(message), f"{message.place}: {message.text!r} is not on the page"


def test_exceptions_are_messages_of_the_sources():
    assert NOT_ON_THE_PAGE.keys() <= {each.text for each in FOUND}


def sections() -> dict[str, list[str]]:
    """Return the first cells' code spans of each section of messages."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE):
        title, _, body = section.partition("\n")
        rows = [line.split(" | ")[0] for line in body.splitlines() if line.startswith("| `")]
        found[title] = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    return found


def test_rows_are_messages_of_the_sources():
    titles = sections()
    del titles["Error codes of clients"], titles["Symptoms"]
    shown = [text for texts in titles.values() for text in texts]
    assert len(shown) > 90
    unknown = [
        text
        for text in shown
        if text not in COMPOSED and not any(each.pattern.match(text) for each in FOUND)
    ]
    assert unknown == []


def test_composed_rows_are_texts_of_their_files():
    for text, name in COMPOSED.items():
        source = re.sub(r'"\s*f?"', "", (ROOT / name).read_text(encoding="utf-8"))
        words = re.split(
            r"KEY|ADDRESS|VALUE|barnabas.storage of|broker N|is read-only: | \(barnabas", text
        )
        assert all(each.strip(" ,?") in source for each in words if len(each) > 12), text


def test_error_codes_are_kafkas():
    codes = sections()["Error codes of clients"]
    assert len(codes) > 15
    assert [each for each in codes if each not in ErrorCode.__members__] == []
