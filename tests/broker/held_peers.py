"""What a broker asks the others with, holding back their answers for as long as a test likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.peers.interface import Peers
from barnabas.testing import Broker
from tests.waiting import wait_until


class HeldPeers:
    """Asks at once; an answer waits in ``held`` until ``let_go`` if answers are held."""

    def __init__(self, broker: Broker) -> None:
        """Stand in front of what the broker asks coordinators with, until ``leave``."""
        self._broker = broker
        self._remote_coordinators: Any = broker.server.remote_coordinators
        self._peers: Peers = self._remote_coordinators._peers
        self.holds = False
        self.asked: list[Any] = []
        """The requests."""
        self.held: list[Callable[[], None]] = []
        broker.call(lambda: setattr(self._remote_coordinators, "_peers", self))

    def leave(self) -> None:
        self._broker.call(lambda: setattr(self._remote_coordinators, "_peers", self._peers))

    def ask(self, node_id, purpose, api, version, request, on_answer, *, timeout_ms) -> None:
        def answered(answer: Any) -> None:
            if self.holds:
                self.held.append(lambda: on_answer(answer))
            else:
                on_answer(answer)

        self.asked.append(request)
        self._peers.ask(node_id, purpose, api, version, request, answered, timeout_ms=timeout_ms)

    def wait_for_one(self) -> None:
        """Wait until an answer is held."""
        wait_until(lambda: self.held)

    def let_go(self) -> None:
        """Let all come that is held, and what comes later."""

        def let_go() -> None:
            self.holds = False
            held, self.held = self.held, []
            for answer in held:
                answer()

        self._broker.call(let_go)
