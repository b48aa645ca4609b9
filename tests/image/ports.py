"""Published ports: a port of this machine whose connections end in a container's network."""

from __future__ import annotations

import ctypes
import os
import socket
import threading

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class PublishedPort:
    """Forwards a free port of 127.0.0.1 to a port of the network that a process lives in."""

    def __init__(self, process_id: int, inside_port: int) -> None:
        self._network = os.open(f"/proc/{process_id}/ns/net", os.O_RDONLY)
        self._inside_port = inside_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        """End every connection and the threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            _shut(connection, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        for connection in self._connections:
            connection.close()
        os.close(self._network)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        # A socket belongs to the network of its thread at its creation, and stays there.
        if _libc.setns(self._network, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        while True:
            try:
                outside, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(outside)
            try:
                inside = socket.create_connection(("127.0.0.1", self._inside_port), timeout=60)
            except OSError:
                outside.close()
                continue
            inside.settimeout(None)
            self._connections.append(inside)
            self._start(_pump, outside, inside)
            self._start(_pump, inside, outside)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        _shut(source, socket.SHUT_RDWR)
    _shut(sink, socket.SHUT_WR)


def _shut(connection: socket.socket, how: int) -> None:
    try:
        connection.shutdown(how)
    except OSError:
        return  # the other side was quicker
