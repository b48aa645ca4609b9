"""Judge and inputs of examples/spark_sessions.py: no session is missing, wrong, or written twice.

Spark writes sessions in the order of their ends. It may keep the last ones until the next click,
since after a restart it does not run a batch without inputs.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

GAP_S = 30 * 60
FIRST_CLICK_S = 1_790_000_000
USERS, PAGES, VISITORS, CLICKS = 200, 40, 4, 20
"""``VISITORS`` begin in each hour, and click ``CLICKS`` times, a minute apart."""


class Record(Protocol):
    """The part of an input or an output that the judge reads."""

    @property
    def value(self) -> bytes | None:
        """JSON text of a click or a session."""


class Session(NamedTuple):
    """Clicks of a user with less than the gap in between."""

    user: str
    began: int
    ended: int
    clicks: int


def inputs(number: int) -> tuple[str, str]:
    """Return the key and the value of a click."""
    hour, place = divmod(number, VISITORS * CLICKS)
    user = f"user-{(hour * VISITORS + place % VISITORS) * 37 % USERS}"
    second = FIRST_CLICK_S + hour * 3600 + place // VISITORS * 60
    click = {"user": user, "page": f"/page-{number % PAGES}", "second": second}
    return user, json.dumps(click)


def judge(inputs: Sequence[Record], outputs: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each session that is missing, wrong, or written too often."""
    clicks = [json.loads(each.value or b"{}") for each in inputs]
    written = [json.loads(each.value or b"{}") for each in outputs]
    found = Counter(Session(*(each[name] for name in Session._fields)) for each in written)
    if not found:
        yield "no session was written"
    due = set(sessions(clicks))
    last = max((session.ended for session in found), default=0)
    for session in sorted(due):
        if session.ended <= last and session not in found:
            yield f"{session} is missing"
    for session, count in found.items():
        if session not in due:
            yield f"{session} is not one of the clicks"
        elif count > 1:
            yield f"{session} was written {count} times"


def sessions(clicks: Sequence[dict[str, Any]]) -> Iterator[Session]:
    """Yield the sessions of the clicks."""
    of_user = defaultdict(list)
    for each in clicks:
        of_user[each["user"]].append(each["second"])
    for user, seconds in of_user.items():
        seconds.sort()
        first, count = 0, len(seconds)
        for index, second in enumerate(seconds, 1):
            if index == count or seconds[index] - second >= GAP_S:
                yield Session(user, seconds[first], second + GAP_S, index - first)
                first = index
