"""The result of an append."""

from barnabas.storage.journal.journal import CommitGroup


class Appended:
    """Offsets and times of an appended batch. ``group`` is None for an old, durable duplicate."""

    __slots__ = ("base_offset", "group", "log_append_time_ms", "log_start_offset")

    def __init__(
        self,
        base_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        group: CommitGroup | None,
    ) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.group = group
