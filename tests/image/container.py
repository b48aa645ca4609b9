"""A container without an engine: the image's own command, user, variables and volumes, in
namespaces for processes, mounts, network, host name and IPC, as the first process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.image.image import Image
from tests.image.ports import PublishedPort

INSIDE = Path(__file__).with_name("inside.py")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc")
START_TIMEOUT_S = 60
END_TIMEOUT_S = 60


class Container:
    """``with Container(image, directory) as container:`` a running container.

    ``volumes`` are directories of this machine by where they are mounted; the image's volumes that
    are not among them get empty ones below ``directory``, with the ownership of the image's.
    """

    def __init__(
        self,
        image: Image,
        directory: Path,
        *,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        volumes: Mapping[str, Path] | None = None,
        user: tuple[int, int] | None = None,
        read_only: bool = False,
        host_name: str = "7f3a9c51d2e4",
    ) -> None:
        self.image = image
        self.host_name = host_name
        self.environment = {"PATH": DEFAULT_PATH, **image.environment, **(environment or {})}
        self.environment.setdefault("HOSTNAME", self.host_name)
        entry_point = image.config.get("Entrypoint") or []
        self.command = list(command or [*entry_point, *image.config["Cmd"]])
        self.volumes = dict(volumes or {})
        self._user = user
        self._read_only = read_only
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.output_file = directory / "stdout"
        self.errors_file = directory / "stderr"
        self._ports: list[PublishedPort] = []

    def __enter__(self) -> Self:
        self._make_volumes()
        self._start()
        try:
            self.process_id = self._wait_for_command()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Not `unshare` itself, whose death its child outlives: the kernel forgets the signal asked
        # for (--kill-child) when that changes its user. With the first process go all others.
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            if first := self._first_process():
                os.kill(first, signal.SIGKILL)
            else:
                self._unshare.kill()
        self._unshare.wait()
        for port in self._ports:
            port.close()

    # ------------------------------------------------------------------------------ looking at it

    @property
    def root(self) -> Path:
        """The root directory of the running container."""
        return Path(f"/proc/{self.process_id}/root")

    def command_line(self) -> list[str]:
        """Return the command line of the first process."""
        return Path(f"/proc/{self.process_id}/cmdline").read_text().split("\0")

    @property
    def is_running(self) -> bool:
        """Whether its first process has not ended."""
        return self._unshare.poll() is None

    @property
    def output(self) -> str:
        """The standard output of the container."""
        return self.output_file.read_text()

    @property
    def log(self) -> str:
        """All output of the container, as in `docker logs`."""
        return self.output + self.errors_file.read_text()

    def wait_for_log(self, pattern: str, timeout_s: float = START_TIMEOUT_S) -> float:
        """Wait until a pattern is in the log; return how many seconds it took."""
        began = time.monotonic()
        while not re.search(pattern, self.log):
            assert self._unshare.poll() is None, f"it ended: {self.log}"
            assert time.monotonic() < began + timeout_s, self.log
            time.sleep(0.02)
        return time.monotonic() - began

    # ------------------------------------------------------------------------------- doing things

    def publish(self, port: int) -> int:
        """Return a port of this machine that leads to one of the container's."""
        self._ports.append(PublishedPort(self.process_id, port))
        return self._ports[-1].port

    def execute(self, *command: str, timeout_s: float = 90) -> subprocess.CompletedProcess[str]:
        """Run another command inside, as `docker exec` does."""
        user_id, group_id = self.user
        return subprocess.run(
            [
                *("nsenter", f"--target={self.process_id}", *NAMESPACES),
                *("--root", f"--setuid={user_id}", f"--setgid={group_id}", "/usr/bin/env"),
                *("--ignore-environment", f"--chdir={self.image.config['WorkingDir']}"),
                *(f"{name}={value}" for name, value in self.environment.items()),
                *command,
            ],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def put(self, path: str, text: str, mode: int = 0o755) -> None:
        """Copy a file in, as `docker cp` does, but whole: a shell inside waits for its name."""
        target = self.root / path.lstrip("/")
        unready = target.with_name(f".{target.name}")
        with open(unready, "w", encoding="utf-8", newline="\n") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
        os.replace(unready, target)

    def signal(self, number: int) -> None:
        """Send a signal to the first process."""
        os.kill(self.process_id, number)

    def stop(self, timeout_s: float = END_TIMEOUT_S) -> int:
        """End it as `docker stop` does, with SIGTERM; return the exit code."""
        self.signal(getattr(signal, self.image.config.get("StopSignal") or "SIGTERM"))
        return self.wait(timeout_s)

    def kill(self) -> None:
        """End it as `docker kill` does."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, timeout_s: float = END_TIMEOUT_S) -> int:
        """Wait for the end and return the exit code."""
        return self._unshare.wait(timeout=timeout_s)

    # -------------------------------------------------------------------------------- starting it

    @property
    def user(self) -> tuple[int, int]:
        """User and group id of its processes: the requested ones, else the image's."""
        if self._user is not None:
            return self._user
        for line in (self.image.root / "etc/passwd").read_text().splitlines():
            name, _, user_id, group_id, *_ = line.split(":")
            if self.image.config["User"] in {name, user_id}:
                return int(user_id), int(group_id)
        raise AssertionError(f"no user {self.image.config['User']!r} in the image")

    def _start(self) -> None:
        root = self.directory / "root"
        root.mkdir(exist_ok=True)
        specification = self.directory / "specification.json"
        specification.write_text(
            json.dumps(
                {
                    "image": str(self.image.root),
                    "directory_of_root": str(root),
                    "volumes": {inside: str(path) for inside, path in self.volumes.items()},
                    "read_only": self._read_only,
                    "host_name": self.host_name,
                    "user": self.user,
                    "directory": self.image.config["WorkingDir"],
                    "command": self.command,
                    "environment": self.environment,
                }
            )
        )
        with open(self.output_file, "a") as output, open(self.errors_file, "a") as errors:
            self._unshare = subprocess.Popen(
                [
                    *("unshare", *NAMESPACES, "--fork", "--kill-child"),
                    *(sys.executable, "-I", str(INSIDE), str(specification)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )

    def _wait_for_command(self) -> int:
        """Return the first process once it has become the command; 0 if that has ended already."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._unshare.poll() is None:
            assert time.monotonic() < deadline, self.log
            try:
                first = self._first_process()
                command = Path(f"/proc/{first}/cmdline").read_text() if first else ""
                # Nothing can be read of a process that is becoming another one at this moment.
                if command and INSIDE.name not in command:
                    return first
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            time.sleep(0.005)
        return 0

    def _first_process(self) -> int:
        """Return the first process inside; 0 if there is none yet or any more."""
        if self._unshare.poll() is not None:
            return 0
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        return int((children.read_text().split() or ["0"])[0])

    def _make_volumes(self) -> None:
        for inside in self.image.config.get("Volumes") or {}:
            if inside in self.volumes:
                continue
            volume = self.directory / inside.strip("/").replace("/", "-")
            if not volume.exists():
                volume.mkdir()
                owned = (self.image.root / inside.lstrip("/")).stat()
                os.chown(volume, owned.st_uid, owned.st_gid)
                volume.chmod(owned.st_mode & 0o7777)
            self.volumes[inside] = volume
