"""Changes of partitions, counted against their client's quota (KIP-599)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.quotas.quotas import throttle_time_ms
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext


class Mutations:
    """Changes of one request: numbers of partitions, in the order of the request."""

    def __init__(self, context: RequestContext, *, strict_since: int) -> None:
        """``strict_since`` is the first version that gets a refusal; earlier ones are throttled."""
        self._quota = context.quota
        self._strict = context.api_version >= strict_since
        self.throttle_time_ms = 0
        """Throttle time for the response."""

    def count(self, partitions: int) -> None:
        """Count partitions to change; raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        if self._quota is None:
            return
        throttle_ms = self._quota.mutated(partitions, strict=self._strict)
        if throttle_ms is None:
            self.throttle_time_ms = throttle_time_ms(self._quota.mutations_owed_ms())
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self.throttle_time_ms = max(self.throttle_time_ms, throttle_time_ms(throttle_ms))
