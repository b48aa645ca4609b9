"""Changes of quotas, one at a time with all other changes of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.quotas.quota_limits import entity_of, entity_text
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.difference import Difference
from barnabas.storage.metastore.interface import QuotaRow

if TYPE_CHECKING:
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.security.quotas.quota_limits import QuotaLimits
    from barnabas.broker.security.quotas.quotas import Change, Quotas
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

ENTITIES_MAX: Final = 10_000
"""Maximum number of entities with limits, all of which are in memory."""


class QuotaRules:
    """The limits of one broker."""

    def __init__(self, quotas: Quotas, metastore: MetaStore, changes: Changes) -> None:
        self._quotas = quotas
        self._metastore = metastore
        self._changes = changes
        changes.join(self)

    @property
    def limits(self) -> QuotaLimits:
        """Return all limits that were set."""
        return self._quotas.limits

    async def change(self, wanted: Sequence[Change]) -> None:
        """Set and remove quotas, all or none; in force when this returns.

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
            values = [
                QuotaRow(entity_text(named), key, value)
                for named, key, value in wanted
                if value is not None
            ]
            removed = [(entity_text(named), key) for named, key, value in wanted if value is None]
            await self._changes.commit(partial(self._metastore.change_quotas, values, removed))
            await self._changes.show(
                Difference(quotas_removed=tuple(removed), quotas_set=tuple(values))
            )

        await self._changes.run(change)

    # ----------------------------------------------------------------------- called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Apply changed quotas from now on."""
        if not difference.quotas_removed and not difference.quotas_set:
            return
        removed: list[Change] = [
            (entity_of(text), key, None) for text, key in difference.quotas_removed
        ]
        values = [(entity_of(row.entity), row.key, row.value) for row in difference.quotas_set]
        self._quotas.change([*removed, *values])

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the limits that are in force."""
        return replace(
            image,
            quotas=tuple(
                QuotaRow(entity_text(named), key, value)
                for named, values in self.limits.items()
                for key, value in values.items()
            ),
        )
