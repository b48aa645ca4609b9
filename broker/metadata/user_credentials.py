"""Changes of the users of SCRAM, one at a time with all other changes of metadata.

A login does not outlive what it was proved by: when a credential is changed or deleted, sessions
that were begun with it end at once, before the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.security.sasl.scram_users import USERS_MAX, Owner, ScramUsers
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.metastore.difference import Difference
from barnabas.storage.metastore.interface import ScramRow

if TYPE_CHECKING:
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.security.session import Session
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

EndSessions: TypeAlias = Callable[[Callable[["Session"], bool]], None]
"""Closes the connections whose session is one of those that it is told."""


class UserCredentials:
    """The users of one broker, as clients see and change them."""

    def __init__(
        self,
        users: ScramUsers,
        metastore: MetaStore,
        changes: Changes,
        end_sessions: EndSessions,
    ) -> None:
        """``end_sessions`` is for changes that no connection of this broker has asked for."""
        self.users = users
        self._metastore = metastore
        self._changes = changes
        self._end_sessions = end_sessions
        self._end_sessions_now = end_sessions
        """For the change under way."""
        changes.join(self)

    async def alter(
        self,
        upserted: Mapping[str, ScramRow],
        deleted: Mapping[str, Owner],
        end_sessions: EndSessions,
    ) -> dict[str, KafkaError]:
        """Set and delete credentials, one of each user, in one commit; in force when this returns.

        Returns the errors of users who cannot be changed; the others are. ``end_sessions`` knows
        whose answer is still to leave: that of who has asked for this.
        """

        async def change() -> dict[str, KafkaError]:
            errors = {
                name: KafkaError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
                for name, owner in deleted.items()
                if owner not in self.users
            }
            gone = [owner for name, owner in deleted.items() if name not in errors]
            rows = tuple(upserted.values())
            self._check_number(rows)
            if rows or gone:
                await self._changes.commit(
                    partial(self._metastore.change_scram_credentials, rows, gone)
                )
                self._end_sessions_now = end_sessions
                try:
                    await self._changes.show(
                        Difference(scram_deleted=tuple(gone), scram_upserted=rows)
                    )
                finally:
                    self._end_sessions_now = self._end_sessions
            return errors

        return await self._changes.run(change)

    # ----------------------------------------------------------------------- called by ``Changes``

    async def show(self, difference: Difference) -> None:
        """Log users in by other credentials, and end the sessions that old ones began."""
        deleted = [Owner(*each) for each in difference.scram_deleted]
        ended = self.users.change(difference.scram_upserted, deleted)
        if ended:
            self._end_sessions_now(lambda session: _owner_of(session) in ended)

    async def shown_in(self, image: MetadataImage) -> MetadataImage:
        """Return an image with the credentials that users log in by."""
        return replace(image, scram_credentials=tuple(self.users.rows()))

    # ------------------------------------------------------------------------------------- details

    def _check_number(self, upserted: Sequence[ScramRow]) -> None:
        new = sum(Owner(row.user, row.mechanism) not in self.users for row in upserted)
        if new and len(self.users) + new > USERS_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"The limit of {USERS_MAX} credentials is reached."
            )


def _owner_of(session: Session) -> Owner | None:
    if session.mechanism is None:
        return None
    return Owner(session.principal.name, session.mechanism)
