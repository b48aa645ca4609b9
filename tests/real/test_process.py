"""In processes of their own: these settings are for the whole process."""

import ctypes
import resource
import subprocess
import sys

import pytest

from barnabas.broker.runtime import process
from tests.checkout import ROOT

PREFER_LARGE_BLOCKS = """
import resource
from barnabas.broker.runtime.process import tune_allocator

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [bytearray(1 << 20) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
untuned = faults()
print(tune_allocator())
faults()
print(untuned, faults())
"""


GIVE_BACK = """
import time
from barnabas.broker.runtime.process_usage import memory_bytes
from barnabas.broker.runtime.process import return_freed_memory, tune_allocator

print(tune_allocator())
return_freed_memory(quiet_seconds=0.2)
blocks = [bytes([1]) * 100_000 for _ in range(2000)]
kept = blocks[-1]
del blocks
held = memory_bytes()[1]
deadline = time.monotonic() + 100
while memory_bytes()[1] > held // 2 and time.monotonic() < deadline:
    until = time.thread_time() + {work_s}
    while time.thread_time() < until:
        pass
    time.sleep(0.05)
print(held, memory_bytes()[1])
"""


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_freed_memory_stays_with_the_process():
    tuned, untuned_faults, tuned_faults = run(PREFER_LARGE_BLOCKS)
    if tuned == "True":
        # 50 times four responses of 1 MiB are 51,200 pages; the process requests none of them
        # again.
        assert int(tuned_faults) < 1000
        assert int(untuned_faults) > 10_000


IN_USE_FIRST = GIVE_BACK.replace("kept = blocks[-1]", "time.sleep(1)\nkept = blocks[-1]")


@pytest.mark.parametrize("work_s", [0.0, 0.005], ids=["quiet", "not busy"])
def test_memory_that_was_in_use_at_first_is_given_back_too(work_s):
    tuned, held_bytes, left_bytes = run(IN_USE_FIRST.replace("{work_s}", str(work_s)))
    if tuned == "True":
        assert int(held_bytes) > 150_000_000
        assert int(left_bytes) < 80_000_000


@pytest.mark.parametrize("work_s", [0.0, 0.005], ids=["quiet", "not busy"])
def test_freed_memory_is_given_back_after_the_load(work_s):
    tuned, held_bytes, left_bytes = run(GIVE_BACK.replace("{work_s}", str(work_s)))
    if tuned == "True":
        assert int(held_bytes) > 150_000_000
        assert int(left_bytes) < 80_000_000


IDLE = """
import ctypes
from barnabas.broker.runtime.process import idle_bytes, tune_allocator

tune_allocator()
library = ctypes.CDLL(None)
print(idle_bytes(library))
blocks = [bytes([1]) * 100_000 for _ in range(2000)]
print(idle_bytes(library))
kept = blocks[-1]
del blocks
print(idle_bytes(library))
"""

MEGABYTE = 1 << 20


def due_looks(watch, count, *, cpu_share=0.0, resident=200 * MEGABYTE):
    """Return the numbers of the checks that search for freed memory; none is found."""
    found = []
    for number in range(count):
        if watch.is_due(cpu_share, resident):
            found.append(number)
            watch.trimmed(resident, resident)
    return found


def test_memory_that_was_in_use_when_it_was_looked_for_is_looked_for_again_less_and_less_often():
    watch = process.MemoryWatch(50 * MEGABYTE)
    assert due_looks(watch, 400) == [0, 24, 72, 168, 288]
    watch.trimmed(200 * MEGABYTE, 60 * MEGABYTE)
    assert due_looks(watch, 20) == [0]  # Grown again.


def test_memory_is_looked_for_again_in_quiet_only():
    watch = process.MemoryWatch(50 * MEGABYTE)
    assert due_looks(watch, 400, cpu_share=0.1) == [process.PATIENCE_CHECKS - 1]
    assert due_looks(watch, 400, cpu_share=0.9, resident=300 * MEGABYTE) == []
    assert due_looks(watch, 1, resident=300 * MEGABYTE) == [0]


def test_blocks_in_use_are_not_idle():
    idle_bytes, with_blocks_bytes, freed_bytes = map(int, run(IDLE))
    assert with_blocks_bytes - idle_bytes < 20_000_000
    if hasattr(ctypes.CDLL(None), "mallinfo2"):
        assert freed_bytes - with_blocks_bytes > 150_000_000


def test_a_process_that_has_not_grown_is_left_alone():
    assert due_looks(process.MemoryWatch(200 * MEGABYTE), 400) == []


@pytest.mark.parametrize(
    ("environment", "set_limits"),
    [
        ({}, [(-3, 268_435_456), (-1, 536_870_912)]),
        ({"MALLOC_MMAP_THRESHOLD_": "131072"}, [(-1, 536_870_912)]),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}, [(-3, 268_435_456)]),
        ({"MALLOC_MMAP_THRESHOLD_": "1", "MALLOC_TRIM_THRESHOLD_": "1"}, []),
    ],
    ids=["nothing", "variable", "tunable", "all"],
)
def test_memory_limits_of_the_environment_are_kept(environment, set_limits, monkeypatch):
    calls = []

    class Library:
        gnu_get_libc_version = None

        def mallopt(self, *arguments):
            calls.append(arguments)
            return 1

    monkeypatch.setattr(process.ctypes, "CDLL", lambda _: Library())
    assert process.tune_allocator(environment) is bool(set_limits)
    assert calls == set_limits


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(process.ctypes, "CDLL", lambda _: object())
    assert process.tune_allocator({}) is False


def test_all_open_files_that_are_allowed():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = (
        "import resource\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))\n"
        "from barnabas.broker.runtime.process import raise_open_files_limit\n"
        "print(raise_open_files_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    assert run(code) == [str(hard)] * 3


def test_the_interpreter_switches_threads_sooner():
    code = "import sys; from barnabas.broker.runtime.process import tune_process; tune_process()\n"
    (interval,) = run(code + "print(sys.getswitchinterval())")
    assert float(interval) == pytest.approx(0.0005)
