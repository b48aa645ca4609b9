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

_LOST: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
}
"""The transaction has ended otherwise: it timed out, or somebody has aborted it by hand."""


def roll_forward(cluster: Cluster, entry: Entry, accepted_batch_id: int | None) -> bool:
    """Commit all transactions of a decided batch; False if every one of them was lost.

    In that case nothing of the batch is visible and it can be written again. Where only a part was
    lost BatchInDoubt is raised, unless that batch was accepted as it is.
    """
    codes = _commit(cluster, entry.transactions[:1])
    if codes:
        reach("C5-middle")
    codes += _commit(cluster, entry.transactions[1:])
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
    return [ErrorCode(answer.error_code) for answer in answers.values()]
