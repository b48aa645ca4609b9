"""Descriptions of the groups that a request names, as far as one response has room for them.

A short request can name one large group thousands of times, so the size of a response has a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from barnabas.broker.api.waits import Turn
from barnabas.protocol.errors import ErrorCode, KafkaError

Described = TypeVar("Described")

GROUPS_PER_REQUEST_MAX: Final = 10_000
"""Groups that one request may name."""


def refuse_too_many_groups(count: int) -> None:
    """Raise KafkaError for a request with too many groups."""
    if count > GROUPS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"at most {GROUPS_PER_REQUEST_MAX} groups per request"
        )


async def describe_while_room(
    group_ids: Iterable[str],
    describe: Callable[[str], Described],
    refuse: Callable[[str], Described],
    size_of: Callable[[Described], int],
    size_max: int,
) -> list[Described]:
    """Describe groups, one in each turn of the loop, until they have ``size_max`` together.

    The others are refused.
    """
    described: list[Described] = []
    size = 0
    for number, group_id in enumerate(group_ids):
        if number:
            await Turn()
        group = describe(group_id) if size < size_max else refuse(group_id)
        size += size_of(group)
        described.append(group)
    return described
