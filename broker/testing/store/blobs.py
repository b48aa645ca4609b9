"""The connection of one broker to the objects in memory (``uploads.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.testing.store.unreliable_calls import Link, Way

if TYPE_CHECKING:
    from barnabas.broker.testing.store.uploads import MemoryUploads
    from barnabas.storage.files.file_system import Buffer


class MemoryBlobStore(Way):
    """``BlobStore`` in memory: the calls of one broker, each repeated until it gets a result."""

    repeats_calls: Final = True
    is_object_store: Final = False

    def __init__(
        self,
        uploads: MemoryUploads,
        on_put: Callable[[str], None] = lambda _key: None,
        link: Link | None = None,
    ) -> None:
        """``on_put`` is called with the key before each attempt, which takes as long as that call.

        ``link``: see ``Way``.
        """
        super().__init__(link)
        self._uploads = uploads
        self._on_put = on_put

    def check(self, name: str) -> None:
        """Accept the store: it is the index itself."""

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """See ``BlobStore``."""
        self._ask(self._attempt_put, key, body)

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """See ``BlobStore``."""
        return self._ask(self._uploads.get_range, key, position, length)

    def delete(self, keys: Sequence[str]) -> None:
        """See ``BlobStore``."""
        self._ask(self._uploads.delete, keys)

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """See ``BlobStore``."""
        return self._ask(self._uploads.list, prefix, after, most)

    def _attempt_put(self, key: str, body: Sequence[Buffer]) -> None:
        self._on_put(key)
        self._uploads.put(key, b"".join(body))
