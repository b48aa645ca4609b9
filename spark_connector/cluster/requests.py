"""InitProducerId and EndTxn, for one transactional ID or many, and the meaning of their errors.

Both can be repeated. EndTxn sends the same producer ID and epoch each time: with transaction
protocol v1 the epoch stays, and with v2 (KIP-890) the broker recognises the previous epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.broker.client.brokers import TRANSACTION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.spark_connector.cluster.cluster import Cluster, name_of
from barnabas.spark_connector.errors import (
    Fenced,
    NotAllowed,
    SinkError,
    TransactionLost,
    WrongOption,
)

TRANSACTIONS_V2: Final = 2
"""The level of `transaction.version` from which on each transaction has an epoch (KIP-890)."""

END_CLASSIC: Final = 4
END_V2: Final = 5
INIT_CLASSIC: Final = 5
"""The last version of InitProducerId without two-phase commit."""
INIT_TWO_PHASE: Final = 6

_FENCED: Final = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
_NOT_ALLOWED: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_LOST: Final = {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}


class Identity(NamedTuple):
    """Producer ID and epoch, which a producer sends with each request."""

    producer_id: int
    epoch: int


NO_IDENTITY: Final = Identity(-1, -1)


def refused(action: str, code: int) -> SinkError:
    """Return the exception for an error code that is not retriable."""
    error = ErrorCode(code)
    if error in _FENCED:
        return Fenced(
            f"{action} was refused because another driver of this sink has begun since, or the "
            f"transaction was open for longer than transactionTimeoutMs ({error.name}); nothing of "
            "it is visible, so make sure that only one driver runs and no other query has this "
            "sinkId, then start the query again."
        )
    if error in _LOST:
        return TransactionLost(
            f"{action} failed because the broker has given its transaction up: {name_of(code)}; "
            "nothing of it is visible, so start the query again."
        )
    if error in _NOT_ALLOWED:
        return NotAllowed(f"{action} is not allowed: {name_of(code)}; grant it on the broker.")
    return SinkError(f"{action} failed: {name_of(code)}.")


def initialize(
    cluster: Cluster, transactional_id: str, timeout_ms: int, expected: Identity = NO_IDENTITY
) -> Identity:
    """Become the only producer of an ID: fence its predecessors and abort their transactions.

    With ``expected``, only if no other producer has taken over the ID since.
    """
    action = f"Beginning as {transactional_id}"
    request = InitProducerIdRequest(transactional_id, timeout_ms, *expected)
    answer = cluster.ask(
        action,
        cluster.coordinator_of(TRANSACTION, transactional_id),
        INIT_PRODUCER_ID,
        request,
        error_of=_error_of,
        at_most=INIT_CLASSIC,
    )
    if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        raise WrongOption(
            f"The option transactionTimeoutMs is {timeout_ms}, which is more than the broker's "
            "transaction.max.timeout.ms; lower the one or raise the other."
        )
    if answer.error_code:
        raise refused(action, answer.error_code)
    return Identity(answer.producer_id, answer.producer_epoch)


def speaks_of_pins(cluster: Cluster) -> bool:
    """Return whether the broker supports pinning; a missing permission shows when it is used."""
    connection = cluster.until("Connecting", cluster.deadline(), cluster.any_node)
    return connection.speaks(INIT_PRODUCER_ID, INIT_TWO_PHASE)


def take_over(
    cluster: Cluster, transactional_ids: Iterable[str], timeout_ms: int
) -> dict[str, InitProducerIdResponse]:
    """Pin open transactions (KIP-939): their writers are fenced, their timeouts are lifted."""
    requests = {
        key: InitProducerIdRequest(key, timeout_ms, enable2_pc=True, keep_prepared_txn=True)
        for key in transactional_ids
    }
    return cluster.ask_coordinators(
        "Pinning the transactions of a batch", INIT_PRODUCER_ID, requests, error_of=_error_of
    )


def end_all(
    cluster: Cluster, transactions: Mapping[str, Identity], *, commit: bool
) -> dict[str, EndTxnResponse]:
    """Commit or abort transactions of many IDs; each response has the result of its own."""
    is_v2 = cluster.transaction_version() >= TRANSACTIONS_V2
    return cluster.ask_coordinators(
        f"{'Committing' if commit else 'Aborting'} the transactions of a batch",
        END_TXN,
        {key: EndTxnRequest(key, *each, commit) for key, each in transactions.items()},
        error_of=_error_of,
        at_most=END_V2 if is_v2 else END_CLASSIC,
    )


def _error_of(response: InitProducerIdResponse | EndTxnResponse) -> int:
    return response.error_code
