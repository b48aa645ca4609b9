"""kafka-python as an oracle: imported past the deprecation warnings that its import raises."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec
    from kafka.record import MemoryRecords, MemoryRecordsBuilder

__all__ = ["MemoryRecords", "MemoryRecordsBuilder", "codec"]
