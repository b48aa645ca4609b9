"""The machine and the versions a measurement belongs to."""

import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.jars import KAFKA_VERSION

_SYNCS = 50


def describe(
    directory: Path,
    *,
    barnabas: str = "one fsync before each answer",
    kafka: str = "default configuration (page cache), 1 GiB heap",
) -> list[tuple[str, str]]:
    """Return facts about the run, in order: the machine, and the settings of each side."""
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("kernel", platform.release()),
        ("fdatasync of 4 KiB", f"{_fdatasync_s(directory) * 1e6:,.0f} us (median)"),
        ("Python of Barnabas", _interpreter()),
        ("Barnabas", f"{_own_version()}, {_compiled()}, {barnabas}"),
        ("Apache Kafka", f"{KAFKA_VERSION}, {kafka}"),
    ]


def _interpreter() -> str:
    """Return which Python ran the broker, how it was built, and on which event loop."""
    code = (
        "import importlib.metadata, sys; print(sys.version.replace(chr(10), ' '),"
        " getattr(sys, '_base_executable', sys.executable),"
        " 'uvloop ' + importlib.metadata.version('uvloop'), sep=', ')"
    )
    return _asked(code)


def _compiled() -> str:
    """Return whether the broker was compiled, as the image's is."""
    code = "import barnabas.storage.log.partition_log as one; print(one.__file__)"
    return "compiled" if _asked(code).endswith(".so") else "not compiled"


def _asked(code: str) -> str:
    """Return the output of the broker's Python."""
    command = [BarnabasProcess.interpreter, "-c", code]
    environment = BarnabasProcess.python_environment()
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout.strip()


def _own_version() -> str:
    from barnabas.broker.version import __version__

    return __version__


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _fdatasync_s(directory: Path) -> float:
    """Return the median time of an fdatasync after 4 KiB, on the file system of the brokers."""
    path = directory / "fdatasync-probe"
    times = []
    with path.open("wb") as file:
        for _ in range(_SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    path.unlink()
    return statistics.median(times)
