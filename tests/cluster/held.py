"""Responses of a coordinator to other brokers, which a test holds back."""

from __future__ import annotations

import contextlib
from typing import Any

from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.testing import Broker, World
from tests.waiting import wait_until

SENT_S = 0.1
"""Simulated time after which a response has been sent."""


class HeldResponses(contextlib.ExitStack):
    """Verifications that a broker receives from other brokers.

    Once one of them is held, all that the broker sends is on its way: its link is half-open.
    """

    def __init__(self, world: World, broker: Broker) -> None:
        super().__init__()
        self._world = world
        self._port = broker.address[1]
        self._is_held = False
        self.asked: list[Any] = []
        """Requests of other brokers."""
        self.enter_context(broker.intercept(ADD_PARTITIONS_TO_TXN, answer=self._ask))
        self.callback(self.let_go)

    def _ask(self, _context: object, request: Any) -> None:
        if request.transactions:  # Not of a client.
            self.asked.append(request)
            if self._is_held:
                self._world.network.cut(self._port, there=False)

    def hold(self) -> None:
        """Hold the responses to all requests from now on."""
        self._is_held = True

    def wait_for_one(self) -> None:
        """Wait until a response is held."""
        wait_until(lambda: self.asked)
        self._world.sleep(SENT_S)

    def let_go(self) -> None:
        """Send all held responses."""
        self._is_held = False
        self._world.network.mend(self._port)
