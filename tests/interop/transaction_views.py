"""Requests of operators about transactions, for test_administration_like_kafka.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from tests.counterparts.transaction_client import TransactionSteps
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import Answer, comparable
from tests.requests import create_topics_request
from tests.waiting import wait_until

GROUP, TRANSACTION, SHARE = range(3)
HOUR_MS = 3_600_000
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
PATTERNS = (
    *("", ".*", "view-.*", "view", ".*-open", "view-(new|done)", "(?i)VIEW-NEW", r"\Qview-new\E"),
    *("[[:alpha:]]+-new", r"\pL+-new", "(?P<n>view)-new", r"view\x2dnew", "^view-new$", "(?s)v.*"),
    *("(", ")", "[", "a{1,1001}", "(?=v)", "(?!v)", r"(v)\1", "*", "a**", r"\8"),
)
"""In RE2's language, or in none."""

ON_PURPOSE = {
    f"list v{version}, longer than {duration_ms}": "only what is open has a duration"
    for version in (1, 2)
    for duration_ms in (0, HOUR_MS)
}


def coordinators_of_transactions(client: WireClient) -> Iterator[Answer]:
    """Yield the responses of FindCoordinator; node ids may differ."""
    TransactionSteps(client.ask).init("view-found")
    cases: dict[str, tuple[int, tuple[str, ...]]] = {
        "one": (TRANSACTION, ("t",)),
        "none": (TRANSACTION, ()),
        "empty": (TRANSACTION, ("",)),
        "several": (TRANSACTION, ("a", "b", "a")),
        "of nothing": (3, ("a",)),
        "of a share group": (SHARE, ("a",)),
    }
    for version in range(1, 7):  # v0 knows groups only.
        for label, (kind, keys) in cases.items():
            if (version < 4 and len(keys) != 1) or (label == "of a share group" and version == 6):
                continue
            request = FindCoordinatorRequest(keys[0] if keys else "", kind, list(keys))
            answer = client.ask(FIND_COORDINATOR, request, version)
            found = answer.coordinators if version >= 4 else [answer]
            yield (
                f"find v{version}, {label}",
                [
                    (each.error_code, getattr(each, "key", ""), each.node_id >= 0, each.port > 0)
                    for each in found
                ],
            )


def _filled(client: WireClient) -> TransactionSteps:
    """Make one id of each state that stays."""
    steps = TransactionSteps(client.ask)
    topic = "viewed"
    client.ask(CREATE_TOPICS, create_topics_request(topic), 7)
    steps.begin("view-open", topic, 0, timeout_ms=900_000)
    for key, commit in (("view-done", True), ("view-aborted", False)):
        steps.begin(key, topic, 0)
        steps.end(key, commit=commit)
        steps_done = f"{key} to be complete"
        wait_until(lambda key=key: _states(client, key)[0].startswith("Complete"), steps_done)
    steps.init("view-new")
    return steps


def _states(client: WireClient, *keys: str) -> list[str]:
    answer = client.ask(DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(list(keys)), 0)
    return [each.transaction_state for each in answer.transaction_states]


def transactions_listed(client: WireClient) -> Iterator[Answer]:
    """ListTransactions with every filter."""
    steps = _filled(client)

    def ask(label: str, version: int, **filters: Any) -> Answer:
        answer = client.ask(LIST_TRANSACTIONS, ListTransactionsRequest(**filters), version)
        answer.transaction_states = [
            each for each in answer.transaction_states if each.transactional_id.startswith("view-")
        ]
        return f"list v{version}, {label}", comparable(answer)

    mine, _ = steps.producers["view-open"]
    for version in range(3):
        yield ask("all", version)
        for state in STATES:
            yield ask(f"in {state}", version, state_filters=[state])
        yield ask("in two states", version, state_filters=["Empty", "Ongoing"])
        for state in ("Dead", "PrepareEpochFence", "ongoing", "Nonsense", ""):
            yield ask(f"in state {state!r}", version, state_filters=["Ongoing", state])
            yield ask(f"only in state {state!r}", version, state_filters=[state])
        yield ask("of a producer", version, producer_id_filters=[mine])
        yield ask("of nobody", version, producer_id_filters=[2**60])
    for version in (1, 2):
        yield ask("longer than -1", version, duration_filter=-1)
        yield ask("open for longer than 0", version, duration_filter=0, state_filters=["Ongoing"])
        for duration_ms in (0, HOUR_MS):
            yield ask(f"longer than {duration_ms}", version, duration_filter=duration_ms)
    for pattern in PATTERNS:
        yield ask(f"like {pattern!r}", 2, transactional_id_pattern=pattern)


def transactions_described(client: WireClient) -> Iterator[Answer]:
    """DescribeTransactions; the client that only we tell is left out."""
    _filled(client)
    keys = ["view-open", "view-done", "view-aborted", "view-new", "nobody", "", "view-new"]
    for label, asked in (("none", []), ("all", keys), ("one", keys[:1]), ("nobody", ["nobody"])):
        answer = client.ask(DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(asked), 0)
        for each in answer.transaction_states:
            each.client_id = each.client_host = None
        yield f"describe {label}", comparable(answer)
