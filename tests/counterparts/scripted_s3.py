"""An S3 server of the tests that fails by a script, request by request.

It has PUT, GET with a range, HEAD, DELETE, DeleteObjects and ListObjectsV2 with ``start-after`` in
one bucket, and no multipart upload. Objects are in memory. ``script`` has the faults that are to
come; each is taken by the first request that it fits, so a test knows which request failed and how:

    with ScriptedS3() as server:
        server.create_bucket("bucket")
        server.script.append(Fault("PUT", Kind.ERROR_AFTER_EFFECT, status=500))

`tests/interop/test_object_stores.py` compares it with servers of others. The wire is
real: a client resets, times out and reads short responses as it would at any server.
"""

from __future__ import annotations

import enum
import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.http_server import HttpServerForTests

PAGE = 1000
WRITTEN_AT = "2026-01-01T00:00:00.000Z"
"""The time that listings report for each object, since no test waits for another one."""
SLOW_PIECES = 16


class Kind(enum.Enum):
    """A way to fail."""

    ERROR = "an error instead of the effect"
    ERROR_AFTER_EFFECT = "an error although the request had its effect"
    RESET = "no response and no effect"
    RESET_AFTER_EFFECT = "no response although the request had its effect"
    LOST = "success without the effect"
    GHOST = "an error at once; the effect comes after ``later`` more requests"
    CUT = "half of the body of the response"
    DAMAGED = "one bit of the body is another one"
    SLOW = "the response takes ``seconds``"
    STALE = "a listing without the last ``later`` objects that were written"


@dataclass(eq=False)
class Fault:
    """A fault of the next ``times`` requests of one method whose key contains ``key``.

    ``LIST`` and ``DELETE`` are methods here, too, however the client sends them. The key of a
    listing is its prefix.
    """

    method: str
    kind: Kind
    status: int = 503
    code: str = "SlowDown"
    key: str = ""
    times: int = 1
    later: int = 1
    seconds: float = 0.0

    def fits(self, method: str, key: str) -> bool:
        """Return whether the fault is for a request."""
        return self.times > 0 and method == self.method and self.key in key


class Request(NamedTuple):
    """A request that came."""

    method: str
    key: str


class Response(NamedTuple):
    """A response to send."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - a constant


@dataclass
class Ghost:
    """An object that is to appear, after some more requests."""

    key: str
    content: bytes
    later: int


@dataclass
class Bucket:
    """The objects, in the order in which they were written, and what is still to come."""

    name: str
    objects: dict[str, bytes] = field(default_factory=dict)
    ghosts: list[Ghost] = field(default_factory=list)
    exists: bool = False

    def put(self, key: str, content: bytes) -> None:
        """Write an object; it is the newest one from now on."""
        self.objects.pop(key, None)
        self.objects[key] = content

    def tick(self) -> None:
        """Count a request, and let the ghosts appear whose time has come."""
        for ghost in list(self.ghosts):
            ghost.later -= 1
            if ghost.later <= 0:
                self.ghosts.remove(ghost)
                self.put(ghost.key, ghost.content)


class ScriptedHandler(BaseHTTPRequestHandler):
    """One connection."""

    server_of_test: ScriptedS3
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    """Head and body leave at once: in two packets, the second waits 40 ms for the client's ACK."""

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        self._serve("GET" if self._key else "LIST")

    def do_HEAD(self) -> None:
        self._serve("HEAD")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def do_POST(self) -> None:
        self._serve("DELETE")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).partition("/")[2].partition("/")[2]

    @property
    def _query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}

    def _serve(self, method: str) -> None:
        server = self.server_of_test
        content = self._content()
        keys = _keys_of(content) if self.command == "POST" else [self._key]
        if method == "LIST":
            keys = [self._query.get("prefix", "")]
        with server.lock:
            fault = server.take_fault(method, keys[0] if keys else "")
            refusal = self._refusal()
        if refusal is not None:
            fault = None
        response = refusal or self._response(method, keys, content, fault)
        self._send(response, fault)

    def _response(
        self, method: str, keys: list[str], content: bytes, fault: Fault | None
    ) -> Response:
        """Apply the request unless the fault prevents it; return the response."""
        kind = fault.kind if fault is not None else None
        if kind is Kind.GHOST and fault is not None:
            with self.server_of_test.lock:
                self.server_of_test.bucket.ghosts.append(Ghost(keys[0], content, fault.later))
        without = {Kind.ERROR, Kind.RESET, Kind.GHOST}
        response = Response(200)
        if kind is Kind.LOST:
            response = Response(200, headers={"ETag": _tag(content)})
        elif kind not in without:
            response = self.apply(method, keys, content, fault)
        if fault is not None and kind in {Kind.ERROR, Kind.ERROR_AFTER_EFFECT, Kind.GHOST}:
            response = _error(fault.status, fault.code)
        return response

    def apply(self, method: str, keys: list[str], content: bytes, fault: Fault | None) -> Response:
        """Apply a request, and return the response of a server without faults."""
        with self.server_of_test.lock:
            return self._done(method, keys, content, fault)

    def _done(self, method: str, keys: list[str], content: bytes, fault: Fault | None) -> Response:
        bucket = self.server_of_test.bucket
        if method == "LIST":
            hidden = fault.later if fault is not None and fault.kind is Kind.STALE else 0
            return self._listing(list(bucket.objects)[: len(bucket.objects) - hidden])
        if method == "DELETE":
            for key in keys:
                bucket.objects.pop(key, None)
            return Response(200, _deleted(keys)) if self.command == "POST" else Response(204)
        if method == "PUT":
            if self.headers.get("If-None-Match") == "*" and keys[0] in bucket.objects:
                return _error(412, "PreconditionFailed")
            bucket.put(keys[0], content)
            return Response(200, headers={"ETag": _tag(content)})
        found = bucket.objects.get(keys[0])
        return _error(404, "NoSuchKey") if found is None else self._part(found)

    def _part(self, content: bytes) -> Response:
        """Return an object, or the range of it that the client asks for."""
        headers = {
            "ETag": _tag(content),
            "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            "Accept-Ranges": "bytes",
        }
        wanted = self.headers.get("Range")
        if wanted is None:
            return Response(200, content, headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, stop = int(first), min(int(last or len(content)) + 1, len(content))
        if start >= len(content):
            return _error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
        return Response(206, content[start:stop], headers)

    def _listing(self, keys: Iterable[str]) -> Response:
        """Return a page of ListObjectsV2; its token is the last key of the page before."""
        query = self._query
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        most = int(query.get("max-keys", PAGE))
        found = sorted(key for key in keys if key.startswith(prefix) and key > after)
        page = found[:most]
        entries, common = [], set()
        for key in page:
            head, between, _ = key[len(prefix) :].partition(delimiter or "\0")
            if between:
                common.add(prefix + head + between)
                continue
            content = self.server_of_test.bucket.objects[key]
            entries.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{WRITTEN_AT}</LastModified>"
                f"<ETag>{escape(_tag(content))}</ETag><Size>{len(content)}</Size></Contents>"
            )
        entries += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(common)
        ]
        is_cut = len(found) > len(page)
        token = page[-1] if is_cut else ""
        body = (
            f"<ListBucketResult><Name>{self.server_of_test.bucket.name}</Name>"
            f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
            f"{''.join(entries)}</ListBucketResult>"
        )
        return Response(200, body.encode(), {"Content-Type": "application/xml"})

    def _refusal(self) -> Response | None:
        """Return the error for a wrong access key, or for a bucket that does not exist."""
        server = self.server_of_test
        credential = self.headers.get("Authorization", "").partition("Credential=")[2]
        if credential.partition("/")[0] not in server.accepted_keys:
            return _error(403, "InvalidAccessKeyId")
        named = unquote(urlsplit(self.path).path).split("/")[1]
        if not server.bucket.exists or named != server.bucket.name:
            return _error(404, "NoSuchBucket")
        return None

    def _send(self, response: Response, fault: Fault | None) -> None:
        kind = fault.kind if fault is not None else None
        if kind in {Kind.RESET, Kind.RESET_AFTER_EFFECT}:
            self.close_connection = True
            return
        body = response.body
        if kind is Kind.DAMAGED and body:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in response.headers:
            self.send_header("Content-Length", str(len(body)))
        sent = b"" if self.command == "HEAD" else body
        if kind is Kind.SLOW and fault is not None:
            self._send_slowly(sent, fault.seconds)
            return
        self.end_headers()
        if kind is Kind.CUT:
            sent = sent[: len(sent) // 2]
            self.close_connection = True
        self.wfile.write(sent)

    def _send_slowly(self, body: bytes, seconds: float) -> None:
        """Send half of the time nothing, then the body in pieces; stop with the server."""
        closing = self.server_of_test.closing
        if closing.wait(seconds / 2):
            return
        self.end_headers()
        size = -(-len(body) // SLOW_PIECES) or 1
        for start in range(0, len(body), size):
            self.wfile.write(body[start : start + size])
            self.wfile.flush()
            if closing.wait(seconds / 2 / SLOW_PIECES):
                return

    def _content(self) -> bytes:
        """Return the body of the request, also of one in signed chunks."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raise AssertionError("the client sends HTTP chunks, which the server does not read")
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
            raise AssertionError("the client sends signed chunks, which the server does not read")
        return content


class ScriptedS3(HttpServerForTests):
    """`with ScriptedS3() as server:` serves one bucket until the end of the block."""

    access_key, secret_key = "scripted", "secret"
    handler: ClassVar = ScriptedHandler

    def __init__(self) -> None:
        self.bucket = Bucket("")
        self.script: list[Fault] = []
        self.requests: list[Request] = []
        self.accepted_keys = {self.access_key}
        """The access keys that are accepted. Signatures are not checked."""
        self.closing = threading.Event()
        self.lock = threading.Lock()
        outer = self

        class Handler(self.handler):
            server_of_test = outer

        super().__init__(_Server(("127.0.0.1", 0), Handler))

    def __exit__(self, *error: object) -> None:
        self.closing.set()
        super().__exit__(*error)

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def create_bucket(self, name: str) -> None:
        """Create the one bucket."""
        self.bucket = Bucket(name, exists=True)

    def count(self, method: str, key: str = "") -> int:
        """Return the number of requests of a method so far, for keys that contain ``key``."""
        return sum(each.method == method and key in each.key for each in self.requests)

    def take_fault(self, method: str, key: str) -> Fault | None:
        """Note a request; return the fault that it gets."""
        self.requests.append(Request(method, key))
        self.bucket.tick()
        for fault in self.script:
            if fault.fits(method, key):
                fault.times -= 1
                if not fault.times:
                    self.script.remove(fault)
                return fault
        return None


class _Server(ThreadingHTTPServer):
    """The server; a client that has closed its connection is no error of a test."""

    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: tests have clients that give up."""


def _keys_of(content: bytes) -> list[str]:
    """Return the keys of a DeleteObjects request."""
    return [each.text or "" for each in ET.fromstring(content).iter() if _is_key(each.tag)]


def _is_key(tag: str) -> bool:
    return tag.rpartition("}")[2] == "Key"


def _deleted(keys: list[str]) -> bytes:
    entries = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
    return f"<DeleteResult>{entries}</DeleteResult>".encode()


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _error(status: int, code: str) -> Response:
    body = f"<Error><Code>{code}</Code><Message>{code} by the script</Message></Error>"
    return Response(status, body.encode(), {"Content-Type": "application/xml"})
