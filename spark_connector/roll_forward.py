"""Committing the transactions of a decided batch, as often as needed (C5, and C2 after a crash)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode
from spark_connector.cluster import Cluster
from spark_connector.entries import Entry, Listed
from spark_connector.errors import BatchInDoubt
from spark_connector.failpoints import reach
from spark_connector.requests import end_all, refused
from spark_connector.sweep import describe

_LOST: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
}
"""The transaction has ended otherwise: it timed out, or somebody has aborted it by hand."""


def roll_forward(
    cluster: Cluster, entry: Entry, accepted_batch_id: int | None, *, middle: str
) -> bool:
    """Commit all transactions of a decided batch; False if every one of them was lost.

    In that case nothing of the batch is visible and it can be written again. Where only a part was
    lost BatchInDoubt is raised, unless that batch was accepted as it is. ``middle`` names the place
    at which the first one is committed and the others are not.
    """
    codes = _commit(cluster, entry.transactions[:1])
    if codes:
        reach(middle)
    codes += _commit(cluster, entry.transactions[1:])
    if entry.is_pinned and _LOST.intersection(codes):
        codes = _commit_as_described(cluster, entry.transactions, codes)
    lost = sum(code in _LOST for code in codes)
    # An id that nobody knows any more has completed and expired: what is pinned stays open until
    # it is ended. Without the pin it may have timed out before it was forgotten.
    unknown = codes.count(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    for code in codes:
        if code not in _LOST and code not in {
            ErrorCode.NONE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        }:
            raise refused(f"Committing batch {entry.batch_id}, which is decided,", code)
    if lost and lost == len(codes):
        return False
    doubtful = lost + (0 if entry.is_pinned else unknown)
    if doubtful and entry.batch_id != accepted_batch_id:
        raise BatchInDoubt(
            f"Batch {entry.batch_id} was decided, but {doubtful} of its {len(codes)} transactions "
            "ended before they were committed, because they were open for longer than "
            "transactionTimeoutMs and this broker cannot pin them, or because somebody aborted "
            "them: their records are not visible; look at what is missing, then set "
            f"the option acceptLostBatch to {entry.batch_id} to go on without them."
        )
    return True


def _commit(cluster: Cluster, transactions: Sequence[Listed]) -> list[ErrorCode]:
    if not transactions:
        return []
    identities = {each.transactional_id: each.identity for each in transactions}
    answers = end_all(cluster, identities, commit=True)
    return [ErrorCode(answers[each.transactional_id].error_code) for each in transactions]


def _commit_as_described(
    cluster: Cluster, transactions: Sequence[Listed], codes: Sequence[ErrorCode]
) -> list[ErrorCode]:
    """Commit what is open still: a request to pin that arrived late has given it a later epoch.

    Nobody but the decider may end a pinned transaction, so what is listed and open is the batch's.
    """
    refused_ids = [
        each.transactional_id
        for each, code in zip(transactions, codes, strict=True)
        if code in _LOST
    ]
    still_open = describe(cluster, refused_ids)
    again = [Listed(key, *identity) for key, identity in still_open.items()]
    ended = dict(zip(still_open, _commit(cluster, again), strict=True))
    return [
        ended.get(each.transactional_id, code)
        for each, code in zip(transactions, codes, strict=True)
    ]
