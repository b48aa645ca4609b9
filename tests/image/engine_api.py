"""The part of Docker's HTTP API that test libraries need to start a container of the image.

It is a socket that they take for a Docker engine; behind it are containers of `container.py`. There
is one image, which has any name.
"""

from __future__ import annotations

import io
import json
import re
import secrets
import socketserver
import struct
import subprocess
import tarfile
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlparse

from tests.image.container import Container
from tests.image.image import Image

API_VERSION = "1.44"
BRIDGE = {
    "Id": "0" * 64,
    "Name": "bridge",
    "Driver": "bridge",
    "IPAM": {"Config": [{"Gateway": "127.0.0.1", "Subnet": "192.0.2.0/24"}]},
}
STREAM = "application/vnd.docker.multiplexed-stream"


class EngineContainer:
    """A container as the API knows it: created first, started later."""

    def __init__(self, image: Image, directory: Path, name: str, wanted: dict[str, Any]) -> None:
        self.id = secrets.token_hex(32)
        self.name = name
        self.wanted = wanted
        self.host_name = wanted.get("Hostname") or self.id[:12]
        entry_point = wanted.get("Entrypoint") or image.config.get("Entrypoint") or []
        command = wanted.get("Cmd") or ([] if wanted.get("Entrypoint") else image.config["Cmd"])
        self.run = Container(
            image,
            directory / self.id[:12],
            command=[*entry_point, *command],
            environment=dict(each.split("=", 1) for each in wanted.get("Env") or []),
            host_name=self.host_name,
        )
        self.ports: dict[str, int] = {}
        self.started = False

    def start(self) -> None:
        """Start it and publish the requested ports."""
        self.run.__enter__()
        self.started = True
        bound = (self.wanted.get("HostConfig") or {}).get("PortBindings") or {}
        for port in {*bound, *(self.wanted.get("ExposedPorts") or {})}:
            self.ports[port] = self.run.publish(int(port.partition("/")[0]))

    def remove(self) -> None:
        """End it."""
        if self.started:
            self.run.__exit__()
            self.started = False

    def inspect(self) -> dict[str, Any]:
        """Describe it as `docker inspect` does."""
        running = self.started and self.run.is_running
        ports = {port: [{"HostIp": "127.0.0.1", "HostPort": str(number)}]
                 for port, number in self.ports.items()}  # fmt: skip
        network = {"IPAddress": "127.0.0.1", "Gateway": "127.0.0.1", "Aliases": []}
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Image": "sha256:" + "0" * 64,
            "Created": "2026-01-01T00:00:00Z",
            "State": {"Status": "running" if running else "created", "Running": running},
            "Config": {
                **{key: self.wanted.get(key) for key in ("Image", "Labels", "Cmd", "Entrypoint")},
                "Env": [f"{name}={value}" for name, value in self.run.environment.items()],
                "Hostname": self.host_name,
                "ExposedPorts": self.wanted.get("ExposedPorts") or {},
                "Tty": False,
            },
            "HostConfig": {"NetworkMode": "bridge"},
            "NetworkSettings": {"Ports": ports, "Networks": {"bridge": network}},
        }


class EngineApi(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """``with EngineApi(image, directory) as api:`` a socket at ``api.url``."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, image: Image, directory: Path) -> None:
        self.image = image
        self.directory = directory
        self.containers: dict[str, EngineContainer] = {}
        self.commands: dict[str, tuple[EngineContainer, list[str], int]] = {}
        self.refused: list[str] = []
        """Requests that are not understood here: none, if the test is to mean anything."""
        # Not below pytest's directory: the name of a socket must be short.
        self._socket_directory = tempfile.TemporaryDirectory(prefix="engine-")
        path = f"{self._socket_directory.name}/engine.sock"
        self.url = f"unix://{path}"
        super().__init__(path, _Handler)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for container in self.containers.values():
            container.remove()
        self.shutdown()
        self._thread.join()
        self.server_close()
        self._socket_directory.cleanup()


class _Handler(BaseHTTPRequestHandler):
    server: EngineApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._route("GET")

    def do_HEAD(self) -> None:
        self._route("HEAD")

    def do_POST(self) -> None:
        self._route("POST")

    def do_PUT(self) -> None:
        self._route("PUT")

    def do_DELETE(self) -> None:
        self._route("DELETE")

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep quiet."""

    def address_string(self) -> str:
        """A Unix socket's peer has no address."""
        return "local"

    # ------------------------------------------------------------------------------------ routes

    def _route(self, method: str) -> None:
        url = urlparse(self.path)
        self.query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        path = re.sub(r"^/v[0-9.]+", "", unquote(url.path))
        body = self._body()
        for verb, pattern, answer in _ROUTES:
            match = re.fullmatch(pattern, path)
            if verb == method and match:
                answer(self, *match.groups(), body)
                return
        self.server.refused.append(f"{method} {path}")
        self._json(501, {"message": f"{method} {path} is not known here"})

    def _ping(self, _: bytes) -> None:
        self._json(200, "OK")

    def _version(self, _: bytes) -> None:
        self._json(200, {"Version": "27.0.0", "ApiVersion": API_VERSION, "MinAPIVersion": "1.24",
                         "Os": "linux", "Arch": "amd64"})  # fmt: skip

    def _info(self, _: bytes) -> None:
        self._json(200, {"ServerVersion": "27.0.0", "OperatingSystem": "Linux", "OSType": "linux",
                         "MemTotal": 1 << 33, "NCPU": 2, "Labels": []})  # fmt: skip

    def _networks(self, _: bytes) -> None:
        self._json(200, [BRIDGE])

    def _network(self, _: bytes) -> None:
        self._json(200, BRIDGE)

    def _image(self, name: str, _: bytes) -> None:
        config = self.server.image.config
        self._json(200, {"Id": "sha256:" + "0" * 64, "RepoTags": [name], "Config": config,
                         "Architecture": "amd64", "Os": "linux"})  # fmt: skip

    def _images(self, _: bytes) -> None:
        self._json(200, [])

    def _prune(self, _what: str, _: bytes) -> None:
        self._json(200, {"SpaceReclaimed": 0})

    def _list(self, _: bytes) -> None:
        asked = json.loads(self.query.get("filters", "{}")).get("id", [])
        listed = [
            {
                **{key: each.inspect()[key] for key in ("Id", "HostConfig", "NetworkSettings")},
                "Names": [f"/{each.name}"],
                "Image": each.wanted["Image"],
                "Created": 1_767_225_600,
                "State": "running",
            }
            for each in self.server.containers.values()
            if not asked or each.id in asked
        ]
        self._json(200, listed)

    def _create(self, body: bytes) -> None:
        server = self.server
        made = EngineContainer(
            server.image, server.directory, self.query.get("name", "some_name"), json.loads(body)
        )
        server.containers[made.id] = made
        self._json(201, {"Id": made.id, "Warnings": []})

    def _start(self, name: str, _: bytes) -> None:
        self.server.containers[name].start()
        self._empty(204)

    def _inspect(self, name: str, _: bytes) -> None:
        self._json(200, self.server.containers[name].inspect())

    def _kill(self, name: str, _what: str, _: bytes) -> None:
        self.server.containers[name].run.kill()
        self._empty(204)

    def _delete(self, name: str, _: bytes) -> None:
        self.server.containers[name].remove()
        self._empty(204)

    def _put_archive(self, name: str, body: bytes) -> None:
        run = self.server.containers[name].run
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    path = f"{self.query['path']}/{member.name}"
                    run.put(path, content.read().decode(), member.mode)
        self._empty(200)

    def _logs(self, name: str, _: bytes) -> None:
        """Send the output so far and, on request, the later output until the end."""
        self._start_stream()
        try:
            self._send_logs(self.server.containers[name])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # it has seen enough

    def _send_logs(self, container: EngineContainer) -> None:
        files = [(1, container.run.output_file), (2, container.run.errors_file)]
        wanted = {1: self.query.get("stdout"), 2: self.query.get("stderr")}
        sent = {1: 0, 2: 0}
        while True:
            running = container.started and container.run.is_running
            for stream, file in files:
                if wanted[stream] in {"1", "true"} and file.exists():
                    new = file.read_bytes()[sent[stream] :]
                    sent[stream] += len(new)
                    if new:
                        self._chunk(struct.pack(">BxxxI", stream, len(new)) + new)
            if not running or self.query.get("follow") not in {"1", "true"}:
                break
            time.sleep(0.02)
        self._chunk(b"")

    def _create_command(self, name: str, body: bytes) -> None:
        command = secrets.token_hex(32)
        wanted = json.loads(body)["Cmd"]
        self.server.commands[command] = (self.server.containers[name], wanted, 0)
        self._json(201, {"Id": command})

    def _start_command(self, name: str, _: bytes) -> None:
        container, wanted, _code = self.server.commands[name]
        done: subprocess.CompletedProcess[str] = container.run.execute(*wanted)
        self.server.commands[name] = (container, wanted, done.returncode)
        output = (done.stdout + done.stderr).encode()
        self.send_response(200)
        self.send_header("Content-Type", STREAM)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(struct.pack(">BxxxI", 1, len(output)) + output)
        self.close_connection = True

    def _inspect_command(self, name: str, _: bytes) -> None:
        container, _wanted, code = self.server.commands[name]
        self._json(200, {"ID": name, "Running": False, "ExitCode": code,
                         "ContainerID": container.id})  # fmt: skip

    # ------------------------------------------------------------------------------------- bytes

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _json(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Api-Version", API_VERSION)
        self.send_header("Ostype", "linux")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", STREAM)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


_NAME = "([0-9a-f]{64})"
_ROUTES = (
    ("GET", "/_ping", _Handler._ping),
    ("HEAD", "/_ping", _Handler._ping),
    ("GET", "/version", _Handler._version),
    ("GET", "/info", _Handler._info),
    ("GET", "/networks", _Handler._networks),
    ("GET", "/networks/bridge", _Handler._network),
    ("GET", "/images/json", _Handler._images),
    ("POST", "/(containers|images|networks|volumes)/prune", _Handler._prune),
    ("GET", "/images/(.+)/json", _Handler._image),
    ("GET", "/containers/json", _Handler._list),
    ("POST", "/containers/create", _Handler._create),
    ("POST", f"/containers/{_NAME}/start", _Handler._start),
    ("GET", f"/containers/{_NAME}/json", _Handler._inspect),
    ("POST", f"/containers/{_NAME}/(kill|stop)", _Handler._kill),
    ("DELETE", f"/containers/{_NAME}", _Handler._delete),
    ("PUT", f"/containers/{_NAME}/archive", _Handler._put_archive),
    ("GET", f"/containers/{_NAME}/logs", _Handler._logs),
    ("POST", f"/containers/{_NAME}/exec", _Handler._create_command),
    ("POST", "/exec/([0-9a-f]{64})/start", _Handler._start_command),
    ("GET", "/exec/([0-9a-f]{64})/json", _Handler._inspect_command),
)
