"""The BlobStore in PostgreSQL: each method is one call of a function of ``migrations``.

Once a flush names an upload, its bytes belong to the index, and are not found by the key any more.
Those of a packed segment are found as long as a log has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from barnabas.storage.objects.blob_store import BlobNotFound, claim_of
from barnabas.storage.postgresql.schema import bring_up_to_date
from barnabas.storage.replicated.log_index import IndexMisused

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import Buffer
    from barnabas.storage.postgresql.primary import Primary

_PUT: Final = "SELECT barnabas.put_upload(%s, %s, %b)"
_GET: Final = "SELECT barnabas.read_object(%s, %s::integer, %s::integer)"
_LIST: Final = "SELECT * FROM barnabas.list_uploads(%s, %s, %s::integer)"
_DELETE: Final = "SELECT barnabas.delete_uploads(%s::text[])"


class PostgreSqlBlobStore:
    """A BlobStore on one connection."""

    repeats_calls: Final = True
    is_object_store: Final = False

    def __init__(self, primary: Primary, warning: str | None) -> None:
        """Use a started connection; call ``begin`` to create the object."""
        self._primary = primary
        self.warning = warning
        """Warning for the operator about the server's durability, or None."""

    @classmethod
    def begin(cls, primary: Primary) -> Self:
        """Connect, and bring the schema to this release's form; as ``PostgreSqlLogIndex.begin``."""
        return cls(primary, primary.start(bring_up_to_date))

    def check(self, name: str) -> None:
        """Accept the store: it is the index itself."""

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """Store an object."""
        claim = claim_of(key)
        if claim is None:
            raise IndexMisused(f"{key} is not the key of an object")
        self._primary.execute(_PUT, (claim.session, key, b"".join(body)))

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """Return bytes of an upload that no flush has named, or of a packed segment."""
        ((data,),) = self._primary.execute(_GET, (key, position, length), binary=True)
        if data is None:
            raise BlobNotFound(key)
        return bytes(data)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete uploads that no flush has named."""
        self._primary.execute(_DELETE, (list(keys),))

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """Return keys of uploads that no flush has named."""
        return [key for (key,) in self._primary.execute(_LIST, (prefix, after, most))]

    def close(self) -> None:
        """End the call that waits, on any thread."""
        self._primary.close()
