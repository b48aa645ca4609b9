"""What an append returns."""

from barnabas.storage.journal.journal import CommitGroup


class Appended:
    """The place of a batch. ``group`` is None if it is durable already (an old duplicate)."""

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
