"""Connection to a broker from within its process, without its listeners and their logins."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.socket_server import Listener
from barnabas.broker.runtime.simulated import simulated_host

if TYPE_CHECKING:
    from barnabas.broker.network.socket_server import SocketServer

_NOWHERE: Final = ("inside", 0)


class InsideClient(WireClient):
    """Client over a socket pair whose other end belongs to a broker of this process."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        super().__init__(_NOWHERE)

    def _connected(self, address: tuple[str, int]) -> socket.socket:  # noqa: ARG002
        return self._end


async def connect_inside(sockets: SocketServer) -> socket.socket:
    """Return one end of a connection that needs no login and has all permissions.

    Call it on the broker's loop; use the blocking end on another thread.
    """
    host = simulated_host()
    ours, theirs = socket.socketpair() if host is None else host.pair()
    try:
        theirs.setblocking(False)
        listener = Listener("INSIDE", *_NOWHERE, advertised=_NOWHERE)
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(sockets, listener), theirs
        )
    except BaseException:
        ours.close()
        theirs.close()
        raise
    return ours
