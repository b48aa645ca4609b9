"""Changes of the ACLs, one at a time with all other changes of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acls.authorizer import acl_of, row_of
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.difference import Difference

if TYPE_CHECKING:
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.security.acls.acls import Acl, AclFilter
    from barnabas.broker.security.acls.authorizer import Authorizer
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

ACLS_MAX: Final = 100_000
"""ACLs that there may be: they are in memory, and one more must not fill it."""


class AccessRules:
    """The ACLs of one broker; everything raises KafkaError SECURITY_DISABLED where it has none."""

    def __init__(
        self, authorizer: Authorizer | None, metastore: MetaStore, changes: Changes
    ) -> None:
        self._authorizer = authorizer
        self._metastore = metastore
        self._changes = changes
        changes.join(self)

    @property
    def are_enforced(self) -> bool:
        """Return whether there is access control."""
        return self._authorizer is not None

    @property
    def authorizer(self) -> Authorizer:
        """Return what decides by them."""
        if self._authorizer is None:
            raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        return self._authorizer

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter means."""
        return self.authorizer.matching(wanted)

    async def add(self, acls: Sequence[Acl]) -> None:
        """Add ACLs, all or none; in force when this returns."""
        authorizer = self.authorizer

        async def change() -> None:
            if len(authorizer.acls) + len(acls) > ACLS_MAX:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION, f"The limit of {ACLS_MAX} ACLs is reached."
                )
            await self._commit([acl for acl in dict.fromkeys(acls) if acl not in authorizer.acls])

        await self._changes.run(change)

    async def remove(self, filters: Sequence[AclFilter], most: int) -> list[list[Acl]]:
        """Remove what filters mean, all or none; return it by filter.

        Raises KafkaError INVALID_REQUEST where that is more than ``most`` ACLs.
        """
        authorizer = self.authorizer

        async def change() -> list[list[Acl]]:
            found = [authorizer.matching(wanted) for wanted in filters]
            doomed = list(dict.fromkeys(acl for acls in found for acl in acls))
            if len(doomed) > most:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"The filters match {len(doomed)} ACLs; at most {most} go in one request.",
                )
            await self._commit(removed=doomed)
            return found

        return await self._changes.run(change)

    async def _commit(self, added: Sequence[Acl] = (), removed: Sequence[Acl] = ()) -> None:
        """Add ACLs that are not there, remove some that are."""
        if not added and not removed:
            return
        new, gone = tuple(map(row_of, added)), tuple(map(row_of, removed))
        await self._changes.commit(partial(self._metastore.change_acls, new, gone))
        await self._changes.show(Difference(acls_removed=gone, acls_added=new))

    # ----------------------------------------------------------------------- called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Have ACLs count, or count no more, from the next request on."""
        if self._authorizer is not None and (difference.acls_added or difference.acls_removed):
            self._authorizer.change(
                list(map(acl_of, difference.acls_added)),
                list(map(acl_of, difference.acls_removed)),
            )

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the ACLs that count; there are none without access control."""
        acls = () if self._authorizer is None else tuple(map(row_of, self._authorizer.acls))
        return replace(image, acls=acls)
