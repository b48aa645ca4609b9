"""Common parts of all writers of records for the console: results, and the quota."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from barnabas.broker.console.actions.wire import check
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.actions.wire import WireClient
    from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse


def check_written(answer: ProduceResponse) -> list[PartitionProduceResponse]:
    """Return the results of a write; raises KafkaError if a part failed."""
    found = [each for topic in answer.responses for each in topic.partition_responses]
    for each in found:
        check(each.error_code, each.error_message)
    return found


def check_quota(wire: WireClient) -> None:
    """Raise KafkaError if the user has exceeded the quota and must wait."""
    owed_ms = wire.produced(0)
    if owed_ms >= 1:
        words = f"producer_byte_rate: more can be written in {math.ceil(owed_ms / 1000)} s"
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, words)
