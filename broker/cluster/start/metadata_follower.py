"""Shows what other brokers of the cluster have committed to its metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.cluster.membership.membership import REFRESH_EVERY_S

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.membership import Membership
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.runtime.host import Host


class MetadataFollower:
    """Follows the versions of the metadata that looks at the cluster find; on the loop."""

    def __init__(
        self,
        host: Host,
        membership: Membership,
        changes: Changes,
        on_shown: Callable[[], None],
    ) -> None:
        """``on_shown`` is called whenever everything is shown that was seen."""
        self._host = host
        self._membership = membership
        self._changes = changes
        self._on_shown = on_shown
        self._followed_version = 0
        """Every image up to that of this version of the metadata was looked at."""
        self.is_under_way = False
        """Whether something may be committed, and seen, that is not shown yet."""

    def look(self) -> None:
        """Show what is newer than what is shown, if the view knows of any."""
        if not self.is_under_way:
            self.is_under_way = True
            self._host.spawn(self._follow(), "follow the metadata")

    async def _follow(self) -> None:
        while self._seen_version < self._membership.metadata_version:
            asked = self._membership.metadata_version
            image = await self._changes.image()
            await self._changes.follow(image)
            self._followed_version = image.version
            if image.version < asked:
                # What was seen of a primary is gone with it; another change will have its number.
                await self._host.clock.sleep(REFRESH_EVERY_S)
        self.is_under_way = False
        self._on_shown()

    @property
    def _seen_version(self) -> int:
        return max(self._followed_version, self._changes.shown_version)
