"""A MetaStore that is away when a test says so, as one in another place may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.storage.metastore.interface import MetaStoreError, Outdated
from barnabas.storage.runtime.threads import new_event, thread_id


class AwayStore:
    """A store before which every call waits while it is away; ``close`` ends what waits."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.identity = store.identity
        self.calls: list[str] = []
        """The methods that were called, in order, be they answered or not."""
        self.threads: set[int] = set()
        """That have called one since it was cut off for the first time."""
        self.is_closed = False
        self._based_on: int | None = None
        self._was_cut = False
        self._is_there = new_event()
        self._is_there.set()

    def cut(self) -> None:
        """Be away from now on."""
        self._was_cut = True
        self._is_there.clear()

    def mend(self) -> None:
        """Be there again."""
        self._is_there.set()

    @property
    def version(self) -> int:
        version: int = self.store.version
        return version

    def based_on(self, version: int, change: Callable[[], Any]) -> Any:
        """Make a change, which comes this way, too, and is compared when it arrives."""
        self._based_on = version
        try:
            return change()
        finally:
            self._based_on = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if self._was_cut:
                self.threads.add(thread_id())
            assert self._is_there.wait(60), "nobody has mended it"
            if self.is_closed:
                raise MetaStoreError("the metadata store was closed")
            if self._based_on is not None and self.store.version > self._based_on:
                raise Outdated
            return method(*arguments)

        return call

    def close(self) -> None:
        """End whatever waits; the store behind it stays open."""
        self.is_closed = True
        self._is_there.set()
