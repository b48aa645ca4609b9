"""Cost of a shape for others: processor time of the loop in one turn, and resident memory.

A shape that exceeds a limit is sent again with new texts: a fault costs as much each time, while a
cold module, a full collection or another user of the machine costs once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from tests.attack.peer import frame
from tests.attack.process import AttackedBroker
from tests.attack.scenario import MIB
from tests.attack.shapes.caller import SMALL_BUFFER_BYTES, Caller
from tests.attack.shapes.shape import STRANGER, Shape
from tests.attack.shapes.size import SHARE
from tests.attack.shapes.world import World

HELD_MS_MOST = 250.0
KEPT_BYTES_MOST = 64 * MIB
PEAK_BYTES_MOST = 400 * MIB
ATTEMPTS = 5
CERTAIN = 4
"""Factor of a limit from which a second attempt is not needed."""
SETTLE_S = 10.0
QUIET_ROUNDS = 20
QUIET_BYTES = MIB // 4
METADATA_REQUEST = frame(METADATA, 9, MetadataRequest([]))
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Limits(NamedTuple):
    """The most that a shape may cost."""

    held_ms: float
    kept_bytes: float
    peak_bytes: float

    def of_part(self, share: float) -> Limits:
        """Return the limits of a share of the entries: what is fixed, and a share of the rest."""
        return Limits(
            *(fixed + (most - fixed) * share for fixed, most in zip(FIXED, self, strict=True))
        )


MOST = Limits(HELD_MS_MOST, KEPT_BYTES_MOST, PEAK_BYTES_MOST)
FIXED = Limits(25.0, 8 * MIB, 32 * MIB)
"""Costs of a request of any size: other work of the loop, and the allocator."""


def limits_of(shape: Shape) -> Limits:
    """Return the limits of a shape."""
    return MOST.of_part(SHARE) if shape.is_part else MOST


@dataclass
class Cost:
    """The cost of one attempt."""

    limits: Limits
    busy_ms: float
    """The longest turn of the loop, in processor time of its thread."""
    held_ms: float
    """The longest time between two turns, in processor time of the whole process."""
    kept_bytes: int
    peak_bytes: int
    response_bytes: int
    cpu_s: float

    @property
    def problems(self) -> list[str]:
        """Limits that the shape exceeds."""
        found = []
        if self.held_ms >= self.limits.held_ms:
            found.append(f"held the loop for {self.held_ms:.0f} ms ({self.busy_ms:.0f} on it)")
        if self.kept_bytes >= self.limits.kept_bytes:
            found.append(f"keeps {self.kept_bytes / MIB:.0f} MiB")
        if self.peak_bytes >= self.limits.peak_bytes:
            found.append(f"needed {self.peak_bytes / MIB:.0f} MiB")
        return found

    @property
    def is_certain(self) -> bool:
        """Whether another attempt would find nothing else."""
        return not self.problems or (
            self.held_ms >= CERTAIN * self.limits.held_ms
            or self.peak_bytes >= CERTAIN * self.limits.peak_bytes
        )

    def __str__(self) -> str:
        return (
            f"{self.held_ms:.0f} ms ({self.busy_ms:.0f} on the loop), keeps "
            f"{self.kept_bytes / MIB:.0f} MiB of {self.peak_bytes / MIB:.0f}, "
            f"response of {self.response_bytes:,} bytes, processor {self.cpu_s:.2f} s"
        )


class Meter:
    """Sends shapes to one broker, one after the other."""

    def __init__(self, broker: AttackedBroker, world: World) -> None:
        self._broker = broker
        self._world = world
        self._seen_bytes = 0
        self._received_bytes = 0
        self._innocent = Caller(broker.port)

    def close(self) -> None:
        self._innocent.close()

    def cost_of(self, shape: Shape, *, is_http: bool) -> Cost:
        """Return the cost of the best of a few attempts."""
        best = self._attempt(shape, is_http=is_http)
        for _ in range(ATTEMPTS - 1):
            if best.is_certain:
                break
            again = self._attempt(shape, is_http=is_http)
            if len(again.problems) <= len(best.problems):
                best = again
        return best

    def _attempt(self, shape: Shape, *, is_http: bool) -> Cost:
        requests = list(shape.make(self._world))
        limits = limits_of(shape)
        self._others_are_served()
        self._turns()
        before_bytes, before_s = self._forget_peak(), self._broker.cpu_time().total_s
        self._received_bytes = 0
        send = self._send_http if is_http else self._send
        kept_bytes = send(shape, requests) - before_bytes
        peak_bytes = self._broker.memory()["peak_bytes"] - before_bytes
        if kept_bytes >= limits.kept_bytes and shape.is_read:
            kept_bytes = self._settled(before_bytes + limits.kept_bytes) - before_bytes
        self._others_are_served()
        turns = self._turns()
        busy_ms = max((busy_ms for busy_ms, _ in turns), default=0.0)
        held_ms = max((held_ms for _, held_ms in turns), default=0.0)
        cpu_s = self._broker.cpu_time().total_s - before_s
        return Cost(limits, busy_ms, held_ms, kept_bytes, peak_bytes, self._received_bytes, cpu_s)

    def _send(self, shape: Shape, requests: list[bytes]) -> int:
        """Send frames; return the resident bytes afterwards, or while nothing is read."""
        port = self._broker.login_port
        buffer_bytes = 0 if shape.is_read else SMALL_BUFFER_BYTES
        with Caller(port, receive_buffer_bytes=buffer_bytes) as caller:
            if shape.user != STRANGER:
                caller.log_in(shape.user)
            if not shape.is_read:
                return self._unread(caller, requests)
            for request in requests:
                size = caller.ask(request)
                self._received_bytes += size
                if not size:
                    break
        return self._resident_bytes

    def _send_http(self, shape: Shape, requests: list[bytes]) -> int:
        for request in requests:
            buffer_bytes = 0 if shape.is_read else SMALL_BUFFER_BYTES
            with Caller(self._broker.http_port, receive_buffer_bytes=buffer_bytes) as caller:
                if not shape.is_read:
                    return self._unread(caller, requests)
                self._received_bytes += caller.ask_http(request)
        return self._resident_bytes

    def _unread(self, caller: Caller, requests: list[bytes]) -> int:
        caller.send_unread(requests)
        resident_bytes = self._quiet()
        caller.reset()
        return resident_bytes

    def _quiet(self) -> int:
        """Wait until memory grows no more while others are served; return it."""
        until_s = time.monotonic() + SETTLE_S
        most_bytes, rounds = self._resident_bytes, 0
        while rounds < QUIET_ROUNDS and time.monotonic() < until_s:
            self._others_are_served()
            resident_bytes = self._resident_bytes
            rounds = 0 if resident_bytes > most_bytes + QUIET_BYTES else rounds + 1
            most_bytes = max(most_bytes, resident_bytes)
            time.sleep(0.02)
        return most_bytes

    def _settled(self, enough_bytes: float) -> int:
        until_s = time.monotonic() + SETTLE_S
        while self._resident_bytes >= enough_bytes and time.monotonic() < until_s:
            self._others_are_served()
            time.sleep(0.05)
        return self._resident_bytes

    def _others_are_served(self) -> None:
        """Wait for two turns of the loop: the first one is in the file by then."""
        assert self._innocent.ask(METADATA_REQUEST), "another client lost its connection"
        with Caller(self._broker.http_port) as caller:
            assert caller.ask_http(LIVEZ), "/livez did not respond"

    def _turns(self) -> list[tuple[float, float]]:
        """Return the turns that have been noted since the last call."""
        with self._broker.loop_lag_path.open("rb") as file:
            file.seek(self._seen_bytes)
            lines = file.read()
        whole, _, _ = lines.rpartition(b"\n")
        self._seen_bytes += len(whole) + bool(whole)
        found = [tuple(map(float, line.split())) for line in whole.splitlines()]
        return [(busy_ms, held_ms) for _, busy_ms, held_ms in found]

    @property
    def _resident_bytes(self) -> int:
        return self._broker.memory()["resident_bytes"]

    def _forget_peak(self) -> int:
        """Reset the kernel's peak of the process; return the resident bytes."""
        Path(f"/proc/{self._broker.pid}/clear_refs").write_text("5")
        return self._resident_bytes
