"""InitProducerId 0-5 for idempotent producers, those without a transactional id.

Version notes: v3 lets a producer name the id and epoch it had; without a transactional id that
changes nothing, it gets a new id. The transaction timeout means nothing either (clients send
anything from 0 to 2^31 - 1).
Knowingly absent: transactional ids, refused with UNSUPPORTED_VERSION until transactions exist.
"""

from __future__ import annotations

import logging

from broker.dispatch import RequestContext, serves
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

logger = logging.getLogger(__name__)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def refuse_init_producer_id(
    request: InitProducerIdRequest, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    """Answer an error with an id and epoch that nobody can use."""
    del request, message
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)


@serves(INIT_PRODUCER_ID, versions=(0, 5), refuse=refuse_init_producer_id)
async def init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Give a producer an id that nobody had before it (S10), with epoch 0."""
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    try:
        producer_id = await context.broker.catalogue.next_producer_id()
    except KafkaError as error:
        # Clients treat a storage error here as final, but they do wait for a loading coordinator.
        logger.warning("no producer id reason=%s", error)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
