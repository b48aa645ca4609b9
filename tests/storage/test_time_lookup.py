"""Look-ups by time while others want the interpreter; what they find is in test_partition_log."""

import threading
import time

from barnabas.storage.config import LogConfig
from barnabas.storage.time_lookup import offset_for_timestamp, run
from tests.storage.stores import NOW_MS, Host, batch

RECORDS = 200_000


def test_others_run_while_a_crowd_of_records_is_looked_through():
    host = Host(LogConfig(max_message_bytes=1 << 26))
    host.boot()
    host.append(batch(RECORDS, key=None, value=None, step_ms=1))
    over = threading.Event()
    turns = []

    def turn():
        while not over.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=turn)
    other.start()
    try:
        begun = time.perf_counter()
        found = run(offset_for_timestamp(host.log, NOW_MS + RECORDS - 1))
        ended = time.perf_counter()
    finally:
        over.set()
        other.join()
    assert found.offset == RECORDS - 1
    assert sum(begun < turn < ended for turn in turns) >= 5
