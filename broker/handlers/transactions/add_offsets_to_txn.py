"""AddOffsetsToTxn 0-4: a group's offsets become part of a transaction.

Not among the compiled modules: a compiled coroutine does not say what its parameters are called,
and by their names a handler is given its services. Version notes: as in ``transactions.py``.
"""

from __future__ import annotations

from barnabas.broker.api.checks import transaction_denial
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.coordination.groups import Groups
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.handlers.transactions.transactions import error_of_version, offsets_partition
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.coordinator.transactions.commands import AddPartitions, Outcome
from barnabas.coordinator.transactions.state import CLASSIC
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)


def refuse_add_offsets(
    _request: AddOffsetsToTxnRequest, code: ErrorCode, _message: str | None
) -> AddOffsetsToTxnResponse:
    """Return an error."""
    return AddOffsetsToTxnResponse(error_code=code)


@serves(ADD_OFFSETS_TO_TXN, versions=(0, 4), refuse=refuse_add_offsets, short=True)
async def add_offsets_to_txn(
    catalogue: Catalogue,
    groups: Groups,
    transactions: Transactions,
    context: RequestContext,
    request: AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse:
    """Add the partition of ``__consumer_offsets`` that a group's commits go to."""
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    try:
        await groups.ensure()
    except KafkaError as error:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
    partition = offsets_partition(catalogue, request.group_id)

    def command() -> AddPartitions | Outcome:
        code = transaction_denial(context.access, request.transactional_id, request.group_id)
        if code:
            return Outcome(code)
        return AddPartitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({partition}),
            CLASSIC,
        )

    outcome = await transactions.outcome_of(command, key=request.transactional_id, context=context)
    return AddOffsetsToTxnResponse(error_code=error_of_version(outcome.error, context.api_version))
