"""Commit of a decided batch's transactions, repeated if needed (C5, and C2 after a crash)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.requests import end_all, refused
from barnabas.spark_connector.errors import BatchInDoubt
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.ledger.entries import Entry, Listed
from barnabas.spark_connector.ledger.sweep import can_list, describe_all
from barnabas.spark_connector.settings.acceptance import lost_batch
from barnabas.spark_connector.settings.options import SinkOptions

_LOST: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
}
"""Errors of a transaction that may have ended already: by its timeout or by an operator."""


def roll_forward(
    cluster: Cluster, query_id: str, entry: Entry, options: SinkOptions | None, *, middle: str
) -> bool:
    """Commit all transactions of a decided batch; return false if all of them were lost.

    In that case no record of the batch is visible, and the batch can be written again. If only a
    part was lost, raise BatchInDoubt unless ``options`` accept that; `None` accepts any loss.
    ``middle`` is the failpoint after the commit of the first transaction.
    """
    codes = _commit(cluster, entry.transactions[:1])
    if codes:
        reach(middle)
    codes += _commit(cluster, entry.transactions[1:])
    if _LOST.intersection(codes) and can_list(cluster):
        codes = _as_described(cluster, entry, codes)
    lost = sum(code in _LOST for code in codes)
    # An unknown ID has completed and expired: a pinned transaction stays open until a commit or an
    # abort. Without a pin it may have timed out before the coordinator forgot it.
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
    if doubtful and options is not None and not options.accepts_lost(query_id, entry.batch_id):
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
    """Return the results of refused commits, after committing those that are still open.

    A refusal alone does not prove a loss. A committed transaction is refused, too, if the broker's
    `transaction.version` has changed since, or if a late request has pinned the ID again. Such a
    request also gives an open transaction a later epoch. Only the decider may end a pinned
    transaction, so an open one in the entry belongs to the batch.
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
            # Committed, or a later transaction hides the result of this one.
            is_committed = key in found and found[key].is_committed
            known[key] = ErrorCode.NONE if is_committed else ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return [
        known.get(each.transactional_id, code)
        for each, code in zip(entry.transactions, codes, strict=True)
    ]
