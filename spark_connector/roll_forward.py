"""Committing the transactions of a decided batch, as often as needed (C5, and C2 after a crash)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.spark_connector.acceptance import lost_batch
from barnabas.spark_connector.cluster import Cluster
from barnabas.spark_connector.entries import Entry, Listed
from barnabas.spark_connector.errors import BatchInDoubt
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.requests import end_all, refused
from barnabas.spark_connector.sweep import can_list, describe_all

_LOST: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
}
"""The transaction may have ended otherwise: it timed out, or was aborted by hand."""


def roll_forward(
    cluster: Cluster, query_id: str, entry: Entry, *, is_loss_accepted: bool, middle: str
) -> bool:
    """Commit all transactions of a decided batch; False if every one of them was lost.

    In that case nothing of the batch is visible and it can be written again. Where only a part was
    lost BatchInDoubt is raised, unless ``is_loss_accepted``. ``middle`` names the place
    at which the first one is committed and the others are not.
    """
    codes = _commit(cluster, entry.transactions[:1])
    if codes:
        reach(middle)
    codes += _commit(cluster, entry.transactions[1:])
    if _LOST.intersection(codes) and can_list(cluster):
        codes = _as_described(cluster, entry, codes)
    lost = sum(code in _LOST for code in codes)
    # An id that no coordinator knows any more has completed and expired: what is pinned stays open
    # until it is ended. Without the pin it may have timed out before it was forgotten.
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
    if doubtful and not is_loss_accepted:
        raise BatchInDoubt(
            f"Batch {entry.batch_id} was decided, but {doubtful} of its {len(codes)} transactions "
            "ended before they were committed, because they were open for longer than "
            "transactionTimeoutMs and this broker cannot pin them, or because a client aborted "
            "them: their records are not visible; check what is missing, then set "
            f"the option acceptLostBatch to {lost_batch(query_id, entry.batch_id)} to continue"
            " without them."
        )
    return True


def _commit(cluster: Cluster, transactions: Sequence[Listed]) -> list[ErrorCode]:
    if not transactions:
        return []
    identities = {each.transactional_id: each.identity for each in transactions}
    answers = end_all(cluster, identities, commit=True)
    return [ErrorCode(answers[each.transactional_id].error_code) for each in transactions]


def _as_described(cluster: Cluster, entry: Entry, codes: Sequence[ErrorCode]) -> list[ErrorCode]:
    """What became of transactions whose commit was refused; what is open still is committed.

    A refusal alone does not tell: it also meets what was committed before the broker's
    `transaction.version` was changed, or before a request to pin arrived late. Such a request
    gives what is open a later epoch. Only the decider may end a pinned transaction, so what
    is listed and open is the batch's.
    """
    refused_ids = [
        each.transactional_id
        for each, code in zip(entry.transactions, codes, strict=True)
        if code in _LOST
    ]
    found = describe_all(cluster, refused_ids)
    again = [
        Listed(key, *each.identity)
        for key, each in found.items()
        if each.is_open and entry.is_pinned
    ]
    known = {
        each.transactional_id: code
        for each, code in zip(again, _commit(cluster, again), strict=True)
    }
    for key in set(refused_ids).difference(known):
        if key not in found or not (found[key].is_open or found[key].is_aborted):
            # Committed; or begun anew since, and how it ended before that is forgotten.
            is_committed = key in found and found[key].is_committed
            known[key] = ErrorCode.NONE if is_committed else ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return [
        known.get(each.transactional_id, code)
        for each, code in zip(entry.transactions, codes, strict=True)
    ]
