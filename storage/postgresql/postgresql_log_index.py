"""The LogIndex in PostgreSQL: each method is one call of a function of ``migrations``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Self

from barnabas.storage.errors import ObjectDamaged
from barnabas.storage.objects.blob_store import claim_of
from barnabas.storage.postgresql.log_rows import HALVINGS_MOST, beginnings_of, extent_of, fewer
from barnabas.storage.postgresql.primary import PATIENCE_S, Primary, Row
from barnabas.storage.postgresql.schema import bring_up_to_date
from barnabas.storage.replicated.log_index import (
    ANY_BYTES,
    Extent,
    ExtentSize,
    Flush,
    FlushAnswer,
    Lane,
    LogBeginning,
    LogPart,
    LogSnapshot,
    Outcome,
    PackedExtents,
    PartitionState,
    SegmentExtent,
    StoredSpace,
)
from barnabas.storage.replicated.wal_object import headers_in

if TYPE_CHECKING:
    from barnabas.storage.replicated.object_reading import ObjectReader
    from barnabas.storage.replicated.wal_object import FooterBatch

_FLUSH: Final = (
    "SELECT outcome, refused FROM barnabas.commit_flush(%s, %s::smallint, %s, %s, %b,"
    " %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::integer[], %s::integer[],"
    " %s::bigint[], %s::integer[], %s::bigint[]"
)
_COMMIT_FLUSH: Final = f"{_FLUSH})"
_COMMIT_OBJECT: Final = f"{_FLUSH}, %s::bigint, %s::bigint)"
_EXTENTS: Final = "SELECT * FROM barnabas.read_placed_extents(%s, %s, %s::integer, %s::bigint)"
_BEGINNINGS: Final = (
    "SELECT * FROM barnabas.read_placed_beginnings(%s::bigint[], %s::integer, %s::bigint)"
)
_RECENT_BEGINNINGS: Final = (
    "SELECT * FROM barnabas.read_recent_placed_beginnings(%s::bigint[], %s::integer, %s::bigint)"
)
_EXTENT_SIZES: Final = "SELECT * FROM barnabas.read_extent_keys(%s, %s, %s::integer)"
_PUT_SNAPSHOT: Final = "SELECT barnabas.put_snapshot(%s, %s, %s::integer, %s, %b, %b)"
_PUT_SNAPSHOT_AND_PARTS: Final = (
    "SELECT barnabas.put_snapshot(%s, %s, %s::integer, %s, %b, %b,"
    " %s::bigint[], %s::bigint[], %b::bytea[])"
)
_PARTS: Final = "SELECT * FROM barnabas.read_log_parts(%s::bigint[], %s::bigint[], %s::integer)"
_REPLACE_EXTENTS: Final = (
    "SELECT barnabas.replace_extents(%s, %s, %s::integer, %s::bigint[], %s::bigint[],"
    " %s::integer[], %s::integer[], %s::integer[], %b, %s)"
)
_APPEND_SEGMENT: Final = (
    "SELECT barnabas.append_segment(%s, %s, %s::integer, %s, %s, %s, %s::integer, %s::integer, %s)"
)
_REPLACE_BY_SEGMENT: Final = (
    "SELECT barnabas.replace_by_segment(%s, %s, %s::integer, %s, %s, %s, %s::integer,"
    " %s::integer, %s, %s)"
)
_PACK_EXTENTS: Final = "SELECT * FROM barnabas.pack_extents(%s::integer, %s::bigint, %s)"
_SPACE: Final = "SELECT * FROM barnabas.read_space(%s)"
_DEAD_KEYS: Final = (
    "SELECT barnabas.dead_keys(%s::text[], %s::bigint[], %s::smallint[], %s::bigint[], %s::text[])"
)
_TAKE_DEAD_KEYS: Final = "SELECT * FROM barnabas.take_dead_keys(%s::integer, %s)"
_PARTITION: Final = "SELECT * FROM barnabas.read_partition(%s)"


class PostgreSqlLogIndex:
    """A LogIndex on one connection; callers on several threads create several."""

    def __init__(
        self, primary: Primary, warning: str | None, objects: ObjectReader | None = None
    ) -> None:
        """Use started connections; call ``open`` to create the object."""
        self._primary = primary
        self._objects = objects
        self._halvings = 0
        """Halvings of the amount read at once, as long as the server was recently too slow for
        more."""
        self.warning = warning
        """Warning for the operator about the server's durability, or None."""

    @classmethod
    def open(cls, address: str, *, patience_s: float = PATIENCE_S) -> Self:
        """Connect, and bring the schema to this release's form.

        Waits for a server that takes writes. Raises NotDurable, SchemaTooNew.
        """
        primary = Primary(address, patience_s=patience_s)
        try:
            return cls.begin(primary)
        except BaseException:
            primary.close()
            raise

    @classmethod
    def begin(cls, primary: Primary, objects: ObjectReader | None = None) -> Self:
        """Open like ``open`` on the caller's connection, which the caller closes after an error.

        ``objects`` reads the object store, or is None if the cluster has none.
        """
        return cls(primary, primary.start(bring_up_to_date), objects)

    @property
    def attempts_failed(self) -> int:
        """Return the number of calls repeated so far."""
        return self._primary.attempts_failed

    @property
    def last_error(self) -> str:
        """Return the reason why the last call has no response yet, or ""."""
        return self._primary.last_error

    def add_partition(self, partition_id: int, first_epoch: int = 0) -> None:
        """Create an empty partition, unless it exists."""
        statement = "SELECT barnabas.add_partitions(%s, 1, %s::integer)"
        self._primary.execute(statement, (partition_id, first_epoch))

    def commit_flush(self, session: int, flush: Flush) -> FlushAnswer:
        """Commit a flush."""
        items = [list(column) for column in zip(*flush.items, strict=True)] or [[]] * 6
        starts = [list(column) for column in zip(*flush.starts, strict=True)] or [[]] * 3
        arguments = (session, flush.lane.value, flush.number, flush.key, flush.payload)
        statement, columns = _COMMIT_FLUSH, [*arguments, *items, *starts]
        if flush.size is not None:
            statement = _COMMIT_OBJECT
            columns += (flush.size.size_bytes, flush.size.footer_at)
        ((outcome, refused),) = self._primary.execute(statement, columns)
        answer = FlushAnswer(Outcome(outcome), frozenset(refused))
        if answer.outcome is Outcome.COMMITTED and flush.lane is Lane.INLINE:
            self._primary.witness.flush_committed(session, flush.number)
        return answer

    def partition(self, partition_id: int) -> PartitionState | None:
        """Return the state of a partition, or None if it does not exist."""
        rows = self._primary.execute(_PARTITION, (partition_id,))
        return PartitionState(*rows[0]) if rows else None

    def extents(
        self, partition_id: int, from_offset: int, *, most: int, most_bytes: int = ANY_BYTES
    ) -> list[Extent]:
        """Return up to ``most`` extents that reach beyond an offset, in order."""
        named = (partition_id, from_offset)
        return [extent_of(*row) for row in self._read(_EXTENTS, named, most, most_bytes)]

    def bodies(self, extents: Sequence[Extent], within_s: float | None = None) -> list[Extent]:
        """Return ``extents``, each with its bytes."""
        if self._objects is not None:
            return self._objects.bodies(extents, within_s)
        self._require_here(extents)
        return list(extents)

    def headers(self, extents: Sequence[Extent]) -> list[Sequence[FooterBatch]]:
        """Return the headers of the batches in each extent, in the form of an object's footer."""
        if self._objects is not None:
            return self._objects.headers(extents)
        self._require_here(extents)
        return [headers_in(each.data) for each in extents]

    @staticmethod
    def _require_here(extents: Sequence[Extent]) -> None:
        missing = next((each.place.key for each in extents if each.place is not None), None)
        if missing is not None:
            raise ObjectDamaged(f"object {missing} is in an object store, which is not configured")

    def beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """Return partitions with their first extents that are needed."""
        named = (list(partition_ids),)
        return beginnings_of(self._read(_BEGINNINGS, named, most, most_bytes))

    def recent_beginnings(
        self, partition_ids: Sequence[int], *, most: int, most_bytes: int
    ) -> list[LogBeginning]:
        """Return partitions with their first extents that their parts do not make needless."""
        named = (list(partition_ids),)
        return beginnings_of(self._read(_RECENT_BEGINNINGS, named, most, most_bytes))

    def _read(
        self, statement: str, named: tuple[object, ...], most: int, most_bytes: int
    ) -> list[Row]:
        """Request rows; halve the amount after each timeout."""
        primary, halvings_before = self._primary, self._halvings

        def in_time(silences: int) -> Sequence[object]:
            self._halvings = min(halvings_before + silences, HALVINGS_MOST)
            return *named, *fewer(most, most_bytes, self._halvings)

        rows = primary.execute(statement, in_time, does_without=True, binary=True)
        expected_s = 2 * primary.took_s
        while self._halvings and expected_s < primary.patience_s:
            self._halvings -= 1
            expected_s *= 2
        return rows

    def put_snapshot(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        snapshot: LogSnapshot,
        parts: Sequence[LogPart] | None = None,
    ) -> bool:
        """Replace a snapshot by a newer one; return False if another broker leads."""
        named = (session, partition_id, epoch, *snapshot)
        if parts is None:
            return self._primary.value(bool, _PUT_SNAPSHOT, *named)
        columns = map(list, zip(*parts, strict=True)) if parts else ([], [], [])
        return self._primary.value(bool, _PUT_SNAPSHOT_AND_PARTS, *named, *columns)

    def parts(self, from_offsets: Mapping[int, int], *, most: int) -> dict[int, list[LogPart]]:
        """Return the parts of partitions that reach beyond an offset each, in order."""
        named = ([*from_offsets], [*from_offsets.values()], most)
        rows = self._primary.execute(_PARTS, named, does_without=True, binary=True)
        found: dict[int, list[LogPart]] = {}
        for partition_id, *part in rows:
            found.setdefault(partition_id, []).append(LogPart(*part))
        return found

    def collect_garbage(self, most: int) -> int:
        """Delete up to ``most`` unneeded extents, and return their number."""
        return self._primary.value(int, "SELECT barnabas.collect_garbage(%s::integer)", most)

    def pack_extents(self, most: int, most_bytes: int, rest_ms: int) -> PackedExtents:
        """Copy extents out of sparse payloads: half as many after each timeout."""

        def in_time(silences: int) -> Sequence[object]:
            return *fewer(most, most_bytes, min(silences, HALVINGS_MOST)), rest_ms

        (row,) = self._primary.execute(_PACK_EXTENTS, in_time, does_without=True)
        return PackedExtents(*row)

    def space(self, rest_ms: int) -> StoredSpace:
        """Return the space that deleted extents take now."""
        (row,) = self._primary.execute(_SPACE, (rest_ms,), does_without=True)
        return StoredSpace(*row)

    def dead_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """Return the keys of objects that no flush has named and none can name later."""
        claims = {key: claim for key in keys if (claim := claim_of(key)) is not None}
        columns = [list(column) for column in zip(*claims.values(), strict=True)] or [[]] * 4
        return self._primary.value(list, _DEAD_KEYS, list(claims), *columns)

    def dereferenced_keys(self, most: int, rest_ms: int) -> Sequence[str]:
        """Return keys whose objects have no extents any more."""
        return [key for (key,) in self._primary.execute(_TAKE_DEAD_KEYS, (most, rest_ms))]

    def forget_keys(self, keys: Sequence[str]) -> None:
        """Drop dereferenced keys whose objects are deleted."""
        self._primary.execute("SELECT barnabas.forget_keys(%s::text[])", (list(keys),))

    def forget(self, most: int, kept_ms: int) -> int:
        """Delete rows that ended ``kept_ms`` ago, and return their number."""
        statement = "SELECT barnabas.forget(%s::integer, %s)"
        return self._primary.value(int, statement, most, kept_ms)

    def extent_sizes(self, partition_id: int, from_offset: int, *, most: int) -> list[ExtentSize]:
        """Return up to ``most`` extents that reach beyond an offset, in order."""
        rows = self._primary.execute(_EXTENT_SIZES, (partition_id, from_offset, most))
        return [ExtentSize(*row) for row in rows]

    def replace_extents(
        self,
        session: int,
        partition_id: int,
        epoch: int,
        extents: Sequence[Extent],
        *,
        keeps_size: bool = False,
    ) -> bool:
        """Replace extents; return False if another broker leads or the log starts later."""
        bases, nexts, epochs, bodies, _ = map(list, zip(*extents, strict=True))
        lengths = list(map(len, bodies))
        positions = [0, *accumulate(lengths[:-1])]
        columns = (bases, nexts, epochs, positions, lengths, b"".join(bodies), keeps_size)
        return self._primary.value(bool, _REPLACE_EXTENTS, session, partition_id, epoch, *columns)

    def replace_by_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """Replace extents by a packed segment; return False as ``replace_extents``."""
        led = (session, partition_id, epoch)
        return self._primary.value(bool, _REPLACE_BY_SEGMENT, *led, number, *segment)

    def append_segment(
        self, session: int, partition_id: int, epoch: int, number: int, segment: SegmentExtent
    ) -> bool:
        """Append a packed segment of the object store to a log."""
        assert segment.in_object_store, "an import without an object store has no segments"
        led = (session, partition_id, epoch)
        return self._primary.value(bool, _APPEND_SEGMENT, *led, number, *segment[:-1])

    def skip_number(self, session: int, number: int) -> None:
        """Use up a number of the session's packing lane without a segment."""
        self._primary.execute("SELECT barnabas.skip_number(%s, %s)", (session, number))

    def close(self) -> None:
        """End every wait, on any thread."""
        self._primary.close()
