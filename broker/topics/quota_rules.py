"""Changes of quotas, one at a time with all other changes of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.security.quota_limits import QuotaLimits
    from barnabas.broker.security.quotas import Change, Quotas
    from barnabas.broker.topics.changes import Changes
    from barnabas.storage.metastore.interface import MetaStore

ENTITIES_MAX: Final = 10_000
"""Entities with limits that there may be: they are in memory."""


class QuotaRules:
    """The limits of one broker."""

    def __init__(self, quotas: Quotas, metastore: MetaStore, changes: Changes) -> None:
        self._quotas = quotas
        self._metastore = metastore
        self._changes = changes

    @property
    def limits(self) -> QuotaLimits:
        """Return all limits that were set."""
        return self._quotas.limits

    async def change(self, wanted: Sequence[Change]) -> None:
        """Set limits and take others away, all or none; in force when this returns.

        Raises KafkaError.
        """

        async def change() -> None:
            known = self._quotas.limits
            new = {named for named, _, value in wanted if value is not None and not known.of(named)}
            if len(known) + len(new) > ENTITIES_MAX:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"No more than {ENTITIES_MAX} entities can have quotas.",
                )
            self._quotas.change(self._metastore, wanted)

        await self._changes.run(change)
