"""InitProducerId 0-6: a producer gets its id and epoch.

Version notes: v3 lets a producer name the id and epoch it had (KIP-360); from v4 on a fenced
producer receives PRODUCER_FENCED, before it INVALID_PRODUCER_EPOCH; v6 brought two-phase commit
(KIP-939) and is offered where that is enabled. Without a transactional id
everything else in the request means nothing: the producer gets a new id.
"""

from __future__ import annotations

import logging

from barnabas.broker.api.checks import (
    CLUSTER,
    CLUSTER_DENIED,
    IDEMPOTENT_WRITE,
    TOPIC,
    TRANSACTIONAL_ID,
    TRANSACTIONAL_ID_DENIED,
    TWO_PHASE_COMMIT,
    WRITE,
)
from barnabas.broker.api.dispatch import RequestContext, Routes, serves
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.metadata.producer_ids import ProducerIds
from barnabas.broker.runtime.host import Host
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.coordinator.transactions.commands import InitProducer, Outcome
from barnabas.coordinator.transactions.state import NEVER_MS
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

logger = logging.getLogger(__name__)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FENCED_SINCE = 4
TWO_PHASE_SINCE = 6


def refuse_init_producer_id(
    request: InitProducerIdRequest, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    """Return an error with an id and epoch that cannot be used."""
    del request, message
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)


@serves(INIT_PRODUCER_ID, versions=(0, 6), refuse=refuse_init_producer_id, short=True)
async def init_producer_id(
    producer_ids: ProducerIds,
    transactions: Transactions,
    host: Host,
    context: RequestContext,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse:
    """Return a producer ID that was never assigned before (S10), with epoch 0."""
    code = _denial(context.access, request)
    if code:
        raise KafkaError(code)
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _init_transactional(
            producer_ids, transactions, host, context, request, request.transactional_id
        )
    try:
        producer_id = await producer_ids.next()
    except KafkaError as error:
        raise _no_producer_id(error) from error
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _denial(access: Access, request: InitProducerIdRequest) -> ErrorCode:
    """Return the error of a client that may not have this producer, or NONE.

    Without a transactional id one topic that the client may write to is enough (KIP-679).
    """
    key = request.transactional_id
    if key is not None:
        needed = (WRITE, TWO_PHASE_COMMIT) if request.enable2_pc else (WRITE,)
        if all(access.may(operation, TRANSACTIONAL_ID, key) for operation in needed):
            return ErrorCode.NONE
        return TRANSACTIONAL_ID_DENIED
    if access.may_see(CLUSTER, CLUSTER_NAME, IDEMPOTENT_WRITE) or access.may_some(WRITE, TOPIC):
        return ErrorCode.NONE
    access.may(IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)  # For the audit log.
    return CLUSTER_DENIED


async def _init_transactional(
    producer_ids: ProducerIds,
    transactions: Transactions,
    host: Host,
    context: RequestContext,
    request: InitProducerIdRequest,
    transactional_id: str,
) -> InitProducerIdResponse:
    """Fence the previous producer of the transactional ID, and abort its open transaction."""
    timeout_ms = request.transaction_timeout_ms
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc or request.keep_prepared_txn:
        _refuse_two_phase_commit_unless(request, enabled=host.config.offers_two_phase_commit)
    if request.enable2_pc:
        timeout_ms = NEVER_MS
    elif not 0 < timeout_ms <= host.config.transaction_max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    try:
        await transactions.ensure()
        await producer_ids.ensure()
    except KafkaError as error:
        raise _no_producer_id(error) from error

    def command() -> InitProducer | Outcome:
        code = _denial(context.access, request)  # It may have had to wait.
        if code:
            return Outcome(code)
        return InitProducer(
            transactional_id,
            timeout_ms,
            request.producer_id,
            request.producer_epoch,
            request.keep_prepared_txn,
            transactions.fresh_producer_id,
            producer_ids.era_start,
        )

    outcome = await transactions.outcome_of(command, key=transactional_id, context=context)
    code = outcome.error
    if code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_SINCE:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=code,
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
        ongoing_txn_producer_id=outcome.ongoing_producer_id,
        ongoing_txn_producer_epoch=outcome.ongoing_epoch,
    )


def _refuse_two_phase_commit_unless(request: InitProducerIdRequest, *, enabled: bool) -> None:
    """Refuse as Apache Kafka does if two-phase commit is off (measured)."""
    if enabled:
        return
    if request.enable2_pc:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _no_producer_id(error: KafkaError) -> KafkaError:
    # Clients treat a storage error here as final, but they do wait for a loading coordinator.
    logger.warning("producer id not assigned reason=%s", error)
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def limit_init_producer_id(routes: Routes, config: BrokerConfig) -> None:
    """Do not advertise the version of two-phase commit where that is off, as Apache Kafka."""
    route = routes.get(INIT_PRODUCER_ID.key)
    if route is not None and not config.offers_two_phase_commit:
        routes.replace(route.copy(max_version=min(route.max_version, TWO_PHASE_SINCE - 1)))
