"""OffsetCommit 2-10, OffsetFetch 1-10, OffsetDelete 0: the offsets that groups have committed.

Version notes. OffsetCommit: v2-4 may ask for a time of expiry, v7 brought static members, v9 the
errors of consumer groups (KIP-848), v10 topic ids. OffsetFetch: v2 may ask for all topics and has
an error for the whole group, v7 waits for what is under way (RequireStable), v8 asks for several
groups, v9 says who asks, v10 has topic ids.
``offset_fetch_errors.py`` has the errors of a group: two libraries need more than Kafka sends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from barnabas.broker.api.checks import (
    DESCRIBE,
    GROUP,
    GROUP_DENIED,
    READ,
    TOPIC,
    TOPIC_DENIED,
)
from barnabas.broker.api.dispatch import CloseConnection, Deferred, RequestContext, serves
from barnabas.broker.api.division import by, in_parts, join, parts
from barnabas.broker.api.driver import Run
from barnabas.broker.api.offset_fetch_errors import (
    FETCH_GROUPS_SINCE,
    NOT_HERE,
    fetch_response,
    needs_new_connection,
)
from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
from barnabas.broker.coordination.groups import Groups, caller_of
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.acls.access import Access
from barnabas.coordinator.groups.commands import (
    LongOffsetCommit,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
)
from barnabas.coordinator.groups.offsets import nothing_found, refuse_commit
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from barnabas.broker.api.client_seen import ClientSeen
    from barnabas.broker.api.waits import GiveUp, Ticket

COMMIT_TOPIC_IDS_SINCE: Final = 10
FETCH_TOPIC_IDS_SINCE: Final = 10
PARTITIONS_AT_ONCE: Final = 2000
"""A commit of more is handled in slices; topics count, too."""
GROUPS_PER_REQUEST_MAX: Final = 10_000
"""Groups that one OffsetFetch may ask for."""


# ------------------------------------------------------------------------------------ OffsetCommit

BY_PARTITION: Final = by("topics.partitions")
BY_GROUP: Final = by("groups.topics.partition_indexes", "topics.partition_indexes")


async def _commit_in_slices(
    catalogue: Catalogue,
    groups: Groups,
    context: RequestContext,
    request: OffsetCommitRequest,
    mark: int,
) -> OffsetCommitResponse:
    """Commit existing ones of very many partitions as one batch: all, or none.

    ``mark`` is that of the client's access before the first slice: rights may change between two.
    """
    slices: list[tuple[OffsetCommitRequest, bool, OffsetCommitResponse]] = []
    for part, continues in parts(request, BY_PARTITION):
        slices.append((part, continues, _take_out_unknown_of_commit(catalogue, context, part)))
        await next_turn()
    known = [part for part, _, _ in slices if part.topics]
    committed = await _commit_long(groups, context, known, mark) if known else []
    answers = iter(committed if isinstance(committed, list) else ())
    response = OffsetCommitResponse()
    for part, continues, beside in slices:
        answer = OffsetCommitResponse()
        if part.topics:
            answer = (
                refuse_commit(part, committed)
                if isinstance(committed, ErrorCode)
                else next(answers)
            )
        join(response, _merged(beside, answer), continues=continues)
        await next_turn()
    return response


async def _commit_long(
    groups: Groups,
    context: RequestContext,
    known: list[OffsetCommitRequest],
    mark: int,
) -> list[OffsetCommitResponse] | ErrorCode:
    """Submit all parts to the group; return the response to each, or one error for all.

    ``mark`` is the mark of the client's access at the check of the parts' permissions.
    """
    group_id = known[0].group_id
    code = groups.refusal(group_id)
    if code:
        return code
    pending: Deferred[list[OffsetCommitResponse] | ErrorCode] = Deferred()
    command = LongOffsetCommit(caller_of(context), tuple(known))
    admit = partial(_denial_since, context.access, mark, known)
    groups.submit(group_id, command, pending.complete, lambda code: code, admit=admit)
    return await pending


@serves(OFFSET_COMMIT, versions=(2, 10), in_slices=True, short=True)
def offset_commit(
    catalogue: Catalogue, groups: Groups, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse] | Run[OffsetCommitResponse]:
    """Commit offsets of existing partitions; every other partition gets an error."""
    if sum(map(_count_partitions, request.topics)) > PARTITIONS_AT_ONCE:
        mark = context.access.mark
        return Run(_commit_in_slices(catalogue, groups, context, request, mark), is_large=True)
    refused = _take_out_unknown_of_commit(catalogue, context, request)
    return _commit(groups, context, request, refused) if request.topics else refused


def _count_partitions(topic: OffsetCommitRequestTopic) -> int:
    return 1 + len(topic.partitions)


def _take_out_unknown_of_commit(
    catalogue: Catalogue, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    """Keep existing topics in the request, with names and ids; return the response for the rest."""
    by_id = context.api_version >= COMMIT_TOPIC_IDS_SINCE
    response = OffsetCommitResponse()
    known: list[OffsetCommitRequestTopic] = []
    for asked in request.topics:
        topic = catalogue.topic_by_id(asked.topic_id) if by_id else catalogue.topic(asked.name)
        code = ErrorCode.NONE
        if topic is None and by_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.access.may(READ, TOPIC, asked.name if topic is None else topic.name):
            code = TOPIC_DENIED
        elif topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None or code:
            response.topics.append(_commit_errors(asked, asked.partitions, code))
            continue
        asked.name = topic.name
        asked.topic_id = topic.topic_id
        count = len(topic.partitions)
        unknown = [each for each in asked.partitions if not 0 <= each.partition_index < count]
        if unknown:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.topics.append(_commit_errors(asked, unknown, code))
            asked.partitions = [
                each for each in asked.partitions if 0 <= each.partition_index < count
            ]
        if asked.partitions:
            known.append(asked)
    request.topics = known
    return response


def _commit(
    groups: Groups,
    context: RequestContext,
    request: OffsetCommitRequest,
    refused: OffsetCommitResponse,
) -> Deferred[OffsetCommitResponse]:
    """Submit the existing topics to the group; ``refused`` becomes part of the response."""
    pending: Deferred[OffsetCommitResponse] = Deferred()

    def respond(response: OffsetCommitResponse) -> None:
        pending.complete(_merged(refused, response))

    def refuse(code: ErrorCode) -> OffsetCommitResponse:
        return refuse_commit(request, code)

    code = groups.refusal(request.group_id)
    if code:
        respond(refuse(code))
    else:
        command = OffsetCommit(caller_of(context), request)
        access = context.access
        admit = None if access.is_open else partial(_denial_since, access, access.mark, [request])
        groups.submit(request.group_id, command, respond, refuse, admit=admit)
    return pending


def _denial_since(access: Access, mark: int, parts: Iterable[OffsetCommitRequest]) -> ErrorCode:
    """Return the error of a permission lost during a wait, or NONE.

    ``mark`` is that of ``access`` before the wait; while it is unchanged nothing is checked.
    """
    if access.mark == mark:
        return ErrorCode.NONE
    for part in parts:
        if not access.may(READ, GROUP, part.group_id):
            return GROUP_DENIED
        if not all(access.may(READ, TOPIC, topic.name) for topic in part.topics):
            return TOPIC_DENIED
    return ErrorCode.NONE


def _merged(refused: OffsetCommitResponse, response: OffsetCommitResponse) -> OffsetCommitResponse:
    """Merge two responses: each topic once, with its refused partitions first, as in Kafka."""
    if not refused.topics and len(response.topics) == 1:
        return response  # As nearly always.
    topics = {(topic.name, topic.topic_id): topic for topic in refused.topics}
    for topic in response.topics:
        earlier = topics.setdefault((topic.name, topic.topic_id), topic)
        if earlier is not topic:
            earlier.partitions.extend(topic.partitions)
    return OffsetCommitResponse(topics=list(topics.values()))


def _commit_errors(
    topic: OffsetCommitRequestTopic,
    partitions: Iterable[OffsetCommitRequestPartition],
    code: ErrorCode,
) -> OffsetCommitResponseTopic:
    answers = [OffsetCommitResponsePartition(each.partition_index, code) for each in partitions]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)


# ------------------------------------------------------------------------------------- OffsetFetch


class _GroupAnswers:
    """The responses of the groups that a request names, collected until the last one arrives.

    It is complete when each group has answered, or one with an error that closes the connection.
    The connection handles nothing else meanwhile: a request of 30 bytes has all offsets of a group
    copied, so a client could otherwise have a thousand copies in memory at a time.
    """

    __slots__ = ("_missing", "_seen", "_ticket", "answers", "is_closed")

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = True

    def __init__(self, count: int, seen: ClientSeen) -> None:
        self.answers: list[OffsetFetchResponseGroup] = [OffsetFetchResponseGroup()] * count
        self.is_closed = False
        """Whether the client's connection closes in place of a response."""
        self._missing = count
        self._seen = seen
        self._ticket: Ticket | None = None

    def __await__(self) -> Generator[Any, Any, None]:
        yield self

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        self._ticket = ticket
        self._settle_if_complete()
        return None

    def answer(self, number: int, group: OffsetFetchResponseGroup) -> None:
        """Receive the response of one of the groups."""
        self.is_closed = self.is_closed or needs_new_connection(group.error_code, self._seen)
        self.answers[number] = group
        self._missing -= 1
        self._settle_if_complete()

    def _settle_if_complete(self) -> None:
        if self._ticket is not None and (self.is_closed or not self._missing):
            self._ticket.settle()


def refuse_offset_fetch(
    request: OffsetFetchRequest, code: ErrorCode, _message: str | None
) -> OffsetFetchResponse:
    """Return one error for every group, in the form of each version."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(index, -1, -1, "", code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
        error_code=code,
        groups=[
            OffsetFetchResponseGroup(each.group_id, error_code=code) for each in request.groups
        ],
    )


@serves(
    OFFSET_FETCH,
    versions=(1, 10),
    refuse=refuse_offset_fetch,
    in_slices=True,
)
def offset_fetch(
    catalogue: Catalogue,
    groups: Groups,
    leadership_check: LeadershipCheck | None,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse | Run[OffsetFetchResponse]:
    """Collect the committed offsets of every group in the request.

    In a cluster no offset is returned before this broker is sure to be the group's coordinator
    still: a client that continued from an older offset would see everything since then once more.
    """
    count = len(_asked_groups(request, context.api_version))
    if count > GROUPS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"more than {GROUPS_PER_REQUEST_MAX} groups in one request"
        )
    if not count:
        return OffsetFetchResponse()
    handle = partial(_offset_fetch, catalogue, groups, leadership_check, context)
    return Run(in_parts(request, BY_GROUP, handle))


async def _offset_fetch(
    catalogue: Catalogue,
    groups: Groups,
    leadership_check: LeadershipCheck | None,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse:
    asked = _asked_groups(request, context.api_version)
    client = context.connection.seen
    found = _GroupAnswers(len(asked), client)
    in_full = [each.group_id for each in asked if each.topics is None]
    is_one_of_many = groups.has_many_offsets(in_full)
    seen: set[str] = set()
    for number, group in enumerate(asked):
        if group.group_id in seen:
            # Apache Kafka answers again; that would let a small request ask for any amount.
            found.answer(number, _fetch_error(group, ErrorCode.INVALID_REQUEST))
            continue
        seen.add(group.group_id)
        command = OffsetFetch(
            caller_of(context),
            group,
            request.require_stable,
            groups.image,
            is_one_of_many,
        )
        respond = partial(found.answer, number)
        _fetch_group(catalogue, groups, leadership_check, context, command, respond)
    await found
    if found.is_closed:
        raise CloseConnection(NOT_HERE)
    return fetch_response(request, found.answers, context.api_version, client)


def _asked_groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """Return the groups of a request in the form of version 8."""
    if version >= FETCH_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(request.group_id, topics=topics)]


def _fetch_group(
    catalogue: Catalogue,
    groups: Groups,
    leadership_check: LeadershipCheck | None,
    context: RequestContext,
    command: OffsetFetch,
    respond: Callable[[OffsetFetchResponseGroup], None],
) -> None:
    """Fetch offsets of one group, for topics that exist and may be described."""
    group, access = command.request, context.access
    if not access.may(DESCRIBE, GROUP, group.group_id):
        respond(_fetch_error(group, GROUP_DENIED))
        return
    code = groups.refusal(group.group_id)
    if code:
        respond(_fetch_error(group, code))
        return
    by_id = context.api_version >= FETCH_TOPIC_IDS_SINCE
    refused = _take_out_unknown_of_fetch(catalogue, access, group, by_id=by_id)
    finish = partial(_finish_fetch, group, access, refused, respond)
    submit = partial(_submit_fetch, groups, group, command, finish)
    partition_id = None if leadership_check is None else groups.log.partition_id_of(group.group_id)
    if leadership_check is None or partition_id is None:
        submit()
    else:
        leadership_check.check(partition_id, partial(_fetch_checked, group, submit, respond))


# Functions with their arguments, not nested functions: compiled, those form cycles.


def _finish_fetch(
    group: OffsetFetchRequestGroup,
    access: Access,
    refused: list[OffsetFetchResponseTopics],
    respond: Callable[[OffsetFetchResponseGroup], None],
    answer: OffsetFetchResponseGroup,
) -> None:
    if not answer.error_code:
        # For all topics: hidden ones are omitted.
        if group.topics is None and not access.is_open:
            answer.topics = [each for each in answer.topics if access.may_see(TOPIC, each.name)]
        answer.topics += refused
    respond(answer)


def _submit_fetch(
    groups: Groups,
    group: OffsetFetchRequestGroup,
    command: OffsetFetch,
    finish: Callable[[OffsetFetchResponseGroup], None],
) -> None:
    groups.submit(group.group_id, command, finish, partial(_fetch_error, group))


def _fetch_checked(
    group: OffsetFetchRequestGroup,
    submit: Callable[[], object],
    respond: Callable[[OffsetFetchResponseGroup], None],
    is_led: bool,  # noqa: FBT001  A callback's only argument.
) -> None:
    if is_led:
        submit()
    else:
        respond(_fetch_error(group, ErrorCode.NOT_COORDINATOR))


def _take_out_unknown_of_fetch(
    catalogue: Catalogue, access: Access, group: OffsetFetchRequestGroup, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    """Keep describable topics in the request, with names; return the response for the rest.

    A topic requested by name need not exist: its offsets may outlive it for a moment.
    """
    if group.topics is None or (access.is_open and not by_id):
        return []
    refused = []
    known = []
    for asked in group.topics:
        topic = catalogue.topic_by_id(asked.topic_id) if by_id else None
        code = ErrorCode.NONE
        if topic is not None:
            asked.name = topic.name
        elif by_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        if not code and not access.may(DESCRIBE, TOPIC, asked.name):
            code = TOPIC_DENIED
        if not code:
            known.append(asked)
            continue
        answers = [nothing_found(index, code) for index in asked.partition_indexes]
        name = "" if by_id else asked.name
        refused.append(OffsetFetchResponseTopics(name, asked.topic_id, answers))
    group.topics = known
    return refused


def _fetch_error(group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group.group_id, error_code=code)


# ------------------------------------------------------------------------------------ OffsetDelete


def refuse_offset_delete(
    _request: OffsetDeleteRequest, code: ErrorCode, _message: str | None
) -> OffsetDeleteResponse:
    """Return an error for the group."""
    return OffsetDeleteResponse(code)


@serves(OFFSET_DELETE, versions=(0, 0), refuse=refuse_offset_delete, in_slices=True)
def offset_delete(
    catalogue: Catalogue, groups: Groups, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse] | Run[OffsetDeleteResponse]:
    """Delete offsets of existing topics; every other partition gets an error."""
    handle = partial(_offset_delete, catalogue, groups, context)
    if BY_PARTITION.is_long(request):
        return Run(in_parts(request, BY_PARTITION, handle))
    return handle(request)


def _offset_delete(
    catalogue: Catalogue, groups: Groups, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    if not request.group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    code = groups.refusal(request.group_id)
    if code:
        return OffsetDeleteResponse(code)
    refused = _take_out_unknown(catalogue, context.access, request)
    pending: Deferred[OffsetDeleteResponse] = Deferred()

    def respond(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = _merged_deletions(refused, response.topics)
        pending.complete(response)

    groups.submit(
        request.group_id, OffsetDelete(caller_of(context), request), respond, OffsetDeleteResponse
    )
    return pending


def _take_out_unknown(
    catalogue: Catalogue, access: Access, request: OffsetDeleteRequest
) -> list[OffsetDeleteResponseTopic]:
    """Keep existing partitions in the request; return the response for the rest."""
    refused = []
    known = []
    for asked in request.topics:
        is_allowed = access.may(READ, TOPIC, asked.name)
        topic = catalogue.topic(asked.name) if is_allowed else None
        count = 0 if topic is None else len(topic.partitions)
        unknown = [each for each in asked.partitions if not 0 <= each.partition_index < count]
        if unknown:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_allowed else TOPIC_DENIED
            answers = [
                OffsetDeleteResponsePartition(each.partition_index, code) for each in unknown
            ]
            refused.append(OffsetDeleteResponseTopic(asked.name, answers))
            asked.partitions = [
                each for each in asked.partitions if 0 <= each.partition_index < count
            ]
        if asked.partitions:
            known.append(asked)
    request.topics = known
    return refused


def _merged_deletions(
    refused: list[OffsetDeleteResponseTopic], topics: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Merge two responses: each topic once, with its refused partitions first."""
    merged = {topic.name: topic for topic in refused}
    for topic in topics:
        earlier = merged.setdefault(topic.name, topic)
        if earlier is not topic:
            earlier.partitions.extend(topic.partitions)
    return list(merged.values())
