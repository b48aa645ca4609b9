"""kcat, the command-line producer and consumer on librdkafka."""

import os
import shutil
import subprocess

from tests.counterparts.errors import MissingCounterpart


def kcat() -> str:
    """Return the path of `kcat`, installing the system package where that is allowed."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _find()
    if found is None:
        raise MissingCounterpart("kcat is needed: `apt-get install kcat` (or kafkacat)")
    return found


def run_kcat(arguments: list[str], *, stdin: bytes = b"", timeout_s: float = 60) -> bytes:
    """Run kcat and return its standard output; raise CalledProcessError when it fails."""
    answer = subprocess.run(
        [kcat(), *arguments], input=stdin, capture_output=True, timeout=timeout_s, check=True
    )
    return answer.stdout


def _find() -> str | None:
    return shutil.which("kcat") or shutil.which("kafkacat")


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "kcat"]):
        subprocess.run(
            ["apt-get", "--quiet", *arguments],
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
        )
