"""Lookups by time while other threads need the interpreter; test_partition_log has the results."""

from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.time_lookup import offset_for_timestamp, run
from barnabas.storage.runtime.clock import counter_seconds, sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from tests.storage.stores import NOW_MS, Host, batch

RECORDS = 200_000


def test_others_run_while_a_crowd_of_records_is_looked_through():
    host = Host(LogConfig(max_message_bytes=1 << 26))
    host.boot()
    host.append(batch(RECORDS, key=None, value=None, step_ms=1))
    over = new_event()
    turns = []

    def turn():
        while not over.is_set():
            turns.append(counter_seconds())
            sleep(0.001)

    other = start_thread("other", turn)
    try:
        begun = counter_seconds()
        found = run(offset_for_timestamp(host.log, NOW_MS + RECORDS - 1))
        ended = counter_seconds()
    finally:
        over.set()
        other.join()
    assert found.offset == RECORDS - 1
    assert sum(begun < turn < ended for turn in turns) >= 5
