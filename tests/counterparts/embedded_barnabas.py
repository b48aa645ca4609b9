"""Barnabas inside the process of the tests, for those that need no process of its own."""

from __future__ import annotations

import time
from typing import Self

from barnabas.testing import Broker
from tests.counterparts.broker_process import BrokerProcess

MOMENT_S = 0.005


class EmbeddedBarnabas(BrokerProcess):
    """`with EmbeddedBarnabas() as broker:` a broker on a thread, with the settings of a process."""

    name = "Barnabas, embedded"

    def __init__(self, *arguments: object, **overrides: str) -> None:
        super().__init__(*arguments, **overrides)  # type: ignore[arg-type]
        self._broker: Broker | None = None
        self._begin_s: float | None = None

    def begin_at(self, seconds: float) -> None:
        """Start the broker later with its clock at ``seconds`` since the epoch."""
        self._begin_s = seconds

    def start(self) -> Self:
        """Start the broker on its ports."""
        config = {"listeners": self.listeners, **self.overrides}
        broker = Broker(storage=self.data_directory, config=config)
        if self._begin_s is not None:
            broker.clock.jump(seconds=self._begin_s - broker.clock.now_ms() / 1000)
        broker.__enter__()
        self._broker = broker
        return self

    def kill(self) -> None:
        """Stop the broker."""
        if self._broker is not None:
            self._broker.__exit__(None, None, None)
            self._broker = None

    def now_ms(self) -> int:
        """Return the broker's time in milliseconds since the epoch."""
        assert self._broker is not None, "not started"
        return self._broker.clock.now_ms()

    def let_pass(self, seconds: float) -> None:
        """Move the broker's clock, and wait a moment for threads of the broker."""
        assert self._broker is not None, "not started"
        self._broker.clock.advance(seconds=seconds)
        time.sleep(MOMENT_S)

    def terminate(self) -> int:
        """Stop the broker; return the exit code of a process that ends so."""
        self.kill()
        return 0
