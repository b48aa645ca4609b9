"""The result of an append."""

from barnabas.storage.journal.journal import CommitGroup


class Appended:
    """Offsets and times of an appended batch. ``durable`` is None for an old, durable duplicate."""

    __slots__ = ("base_offset", "durable", "log_append_time_ms", "log_start_offset")

    def __init__(
        self,
        base_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        durable: CommitGroup | None,
    ) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.durable = durable
