"""Application of metadata that other brokers of the cluster have committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.cluster.membership.membership import REFRESH_EVERY_S

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.membership import Membership
    from barnabas.broker.metadata.changes import Changes
    from barnabas.broker.runtime.host import Host


class MetadataFollower:
    """Follows the metadata versions that polls of the cluster find; on the event loop."""

    def __init__(
        self,
        host: Host,
        membership: Membership,
        changes: Changes,
        on_shown: Callable[[], None],
    ) -> None:
        """``on_shown`` is called whenever all metadata that was found is applied."""
        self._host = host
        self._membership = membership
        self._changes = changes
        self._on_shown = on_shown
        self._followed_version = 0
        """Version up to which every metadata image was applied."""
        self.is_under_way = False
        """Whether newer metadata may exist that is not applied yet."""

    def follow_next(self) -> None:
        """Apply newer metadata, if the view has found any."""
        if not self.is_under_way:
            self.is_under_way = True
            self._host.spawn(self._follow(), "follow the metadata")

    async def _follow(self) -> None:
        while self._seen_version < self._membership.metadata_version:
            wanted_version = self._membership.metadata_version
            image = await self._changes.image()
            await self._changes.follow(image)
            self._followed_version = image.version
            if image.version < wanted_version:
                # A former primary's commit was found and is lost; a later one will get its version.
                await self._host.clock.sleep(REFRESH_EVERY_S)
        self.is_under_way = False
        self._on_shown()

    @property
    def _seen_version(self) -> int:
        return max(self._followed_version, self._changes.shown_version)
