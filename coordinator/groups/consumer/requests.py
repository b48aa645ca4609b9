"""Errors in a ConsumerGroupHeartbeat itself, independent of the group."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordinator.groups.consumer.member import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

NOT_GIVEN = -1
MEMBER_ID_MAX_BYTES = 32_767
"""Maximum length of an id in the key of a record; a request could have a longer one."""
SUBSCRIPTION_MAX_CHARACTERS = 1 << 20
"""Maximum size of all names that a member subscribes to, since they are kept as long as the
member."""
MEMBERS_NAME_THEMSELVES_SINCE = 1
"""First version in which a member generates its id (KIP-1082)."""


def problem_of(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]
) -> Refusal | None:
    """Return the first problem of a request, or None."""
    for words in _problems(request, version):
        return Refusal(ErrorCode.INVALID_REQUEST, words)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        return Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {request.server_assignor!r} here, only {', '.join(assignors)}",
        )
    return None


def _problems(request: ConsumerGroupHeartbeatRequest, version: int) -> Iterator[str]:
    epoch = request.member_epoch
    named = version >= MEMBERS_NAME_THEMSELVES_SINCE or epoch > JOINING or epoch == LEAVING
    if named and _is_blank(request.member_id):
        yield "the member id is empty"
    for what, text in (
        ("group id", request.group_id),
        ("instance id", request.instance_id),
        ("rack id", request.rack_id),
    ):
        if _is_blank(text):
            yield f"the {what} is empty"
    if is_too_long(request.member_id):
        yield f"the member id is longer than {MEMBER_ID_MAX_BYTES} bytes"
    if sum(map(len, request.subscribed_topic_names or ())) > SUBSCRIPTION_MAX_CHARACTERS:
        yield f"the names of the subscription have more than {SUBSCRIPTION_MAX_CHARACTERS} letters"
    if epoch == JOINING:
        yield from _problems_of_joining(request)
    elif epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        yield "only a member with an instance id can leave for a while"
    elif epoch < LEAVING_FOR_A_WHILE:
        yield f"there is no member epoch {epoch}"


def _problems_of_joining(request: ConsumerGroupHeartbeatRequest) -> Iterator[str]:
    if request.rebalance_timeout_ms == NOT_GIVEN:
        yield "the first request has to name a rebalance timeout"
    if request.topic_partitions is None or request.topic_partitions:
        yield "a member that joins owns no partitions, and has to say so"
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        yield "a member that joins has to subscribe, by names or by a regular expression"


def is_too_long(member_id: str) -> bool:
    """Return whether the member's ID is too long for a record's key."""
    most = MEMBER_ID_MAX_BYTES
    return len(member_id) > most or len(member_id.encode(errors="surrogatepass")) > most


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()
