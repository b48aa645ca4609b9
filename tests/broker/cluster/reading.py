"""Content of one log in a cluster's store, for inspection."""

import contextlib

from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.storage.replicated.loading import DurableLog, LongLog, LongReading


def read_stored(logs: StoredLogs, partition_id: int, leader_epoch: int) -> DurableLog:
    """Return all of a log; it stays as it is. Raises as ``DurableLogs.reading``."""
    long: LongReading | None = None
    while True:
        try:
            with (
                contextlib.ExitStack() as memory,
                logs.reading(partition_id, leader_epoch, memory, long) as log,
            ):
                return log._replace(batches=[*log.batches])
        except LongLog as found:
            long = found.reading
