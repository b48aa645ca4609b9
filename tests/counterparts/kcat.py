"""kcat, the command-line producer and consumer on librdkafka."""

import shutil
import subprocess

from tests.counterparts.debian import install
from tests.counterparts.errors import MissingCounterpart


def kcat() -> str:
    """Return the path of `kcat`, installing the system package where that is allowed."""
    found = _find()
    if found is None:
        install("kcat")
        found = _find()
    if found is None:
        raise MissingCounterpart("kcat is needed: `apt-get install kcat` (or kafkacat)")
    return found


def run_kcat(arguments: list[str], *, stdin: bytes = b"", timeout_s: float = 60) -> bytes:
    """Run kcat and return its standard output; raise CalledProcessError when it fails."""
    # By itself it waits five seconds for metadata, which a busy machine may let pass.
    command = [kcat(), "-m", str(int(timeout_s)), *arguments]
    answer = subprocess.run(
        command, input=stdin, capture_output=True, timeout=timeout_s, check=True
    )
    return answer.stdout


def _find() -> str | None:
    return shutil.which("kcat") or shutil.which("kafkacat")
