"""A gateway to an S3 server of others that fails by a script, as ``ScriptedS3`` does.

Requests and responses pass as they are, so the server checks the signatures. A client that signs
for the address of another port before this one reaches the server, too: its `Host` passes.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from http.client import HTTPConnection, HTTPException
from urllib.parse import unquote

from tests.counterparts.object_stores import ObjectServer
from tests.counterparts.s3 import client_of
from tests.counterparts.scripted_s3 import (
    Bucket,
    Fault,
    Kind,
    Response,
    ScriptedHandler,
    ScriptedS3,
)

TIMEOUT_S = 60
NEWEST = 100
"""Maximum number of objects that a late listing lacks."""
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
ENTRY = re.compile(rb"<Contents>.*?<Key>(.*?)</Key>.*?</Contents>", re.DOTALL)


class ForwardingHandler(ScriptedHandler):
    """One connection of a client, and one to the server."""

    server_of_test: S3Gateway

    def setup(self) -> None:
        super().setup()
        self.upstream = HTTPConnection(
            "127.0.0.1", self.server_of_test.upstream.port, timeout=TIMEOUT_S
        )

    def finish(self) -> None:
        self.upstream.close()
        super().finish()

    def apply(self, method: str, keys: list[str], content: bytes, fault: Fault | None) -> Response:
        """Send the request on; an error of the connection closes that of the client, too."""
        try:
            response = self._forward(content)
        except (OSError, HTTPException) as error:
            raise ConnectionError("no response of the server") from error
        if method == "PUT" and response.status == 200:
            self.server_of_test.newest.append(keys[0])
        if method == "LIST" and fault is not None and fault.kind is Kind.STALE:
            response = self._without_newest(response, fault.later)
        return response

    def _forward(self, content: bytes) -> Response:
        self.upstream.close()  # A server that was killed leaves no connection to be found dead.
        self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            self.upstream.putheader(name, value)
        self.upstream.endheaders(content)
        with contextlib.closing(self.upstream.getresponse()) as found:
            headers = {
                name: value for name, value in found.getheaders() if name.lower() not in HOP_BY_HOP
            }
            if self.command == "HEAD":
                headers["Content-Length"] = found.headers["Content-Length"]
            return Response(found.status, found.read(), headers)

    def _without_newest(self, response: Response, count: int) -> Response:
        hidden = set(list(self.server_of_test.newest)[-count:])

        def kept(entry: re.Match[bytes]) -> bytes:
            return b"" if unquote(entry[1].decode()) in hidden else entry[0]

        return response._replace(body=ENTRY.sub(kept, response.body))


class Forwarded(Bucket):
    """The bucket of the server, into which ghosts are put."""

    def __init__(self, name: str, upstream: ObjectServer) -> None:
        super().__init__(name, exists=True)
        self._upstream = upstream

    def put(self, key: str, content: bytes) -> None:
        server = self._upstream
        with client_of(server.url, server.access_key, server.secret_key) as client:
            client.put_object(Bucket=self.name, Key=key, Body=content)


class S3Gateway(ScriptedS3):
    """`with S3Gateway(server, bucket) as gateway:` passes requests for one bucket on."""

    handler = ForwardingHandler

    def __init__(self, upstream: ObjectServer, bucket: str) -> None:
        self.access_key, self.secret_key = upstream.access_key, upstream.secret_key
        super().__init__()
        self.upstream = upstream
        self.bucket = Forwarded(bucket, upstream)
        self.newest: deque[str] = deque(maxlen=NEWEST)
        """Keys of the objects that were put last."""
