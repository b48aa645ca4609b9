"""What happens to the broker, its clients and their connections, by a seed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence

from barnabas.protocol.messages.create_acls import AclCreation
from tests.broker.security.access_users import add_acls, remove_acls
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.workload.fleet import Fleet, Member
from tests.workload.proxy import Proxy
from tests.workload.settings import TRANSACTION_TIMEOUT_MS

CLIENT_FAULTS = {"kill_client": 3, "add_twin": 2, "pause_client": 3, "cut": 3}
BROKER_FAULTS = {"kill_broker": 3, "kill_again": 1, "pause_broker": 1}
RIGHTS_FAULTS = {"take_right": 24}
PAUSE_S = (1.5 * TRANSACTION_TIMEOUT_MS / 1000, 3 * TRANSACTION_TIMEOUT_MS / 1000)
SHORT_PAUSE_S = (0.2, 1.5)
REST_S = (0.1, 1.0)
"""From one fault to the next."""
NOT_NOW = "not now"
"""What a fault returns that has done nothing."""


class Nemesis:
    """Makes one fault after another; what it paused goes on when its time has come."""

    def __init__(
        self,
        broker: BrokerProcess,
        fleet: Fleet,
        proxy: Proxy,
        seed: int,
        *,
        harms_broker: bool,
        rights: Sequence[AclCreation] = (),
        say: Callable[[str], None],
    ) -> None:
        self.faults: Counter[str] = Counter()
        self._broker = broker
        self._fleet = fleet
        self._proxy = proxy
        self._chance = random.Random(seed)
        self._say = say
        self._rights = rights
        self._rest_s = REST_S
        self._weights = CLIENT_FAULTS | (BROKER_FAULTS if harms_broker else {})
        if rights:
            self._weights |= RIGHTS_FAULTS
        self._resumes: list[tuple[float, Member]] = []

    def run(self, duration_s: float) -> None:
        """Make faults until the time is up, then heal everything."""
        until_s = time.monotonic() + duration_s
        while time.monotonic() < until_s:
            time.sleep(self._chance.uniform(*self._rest_s))
            fault = self._chance.choices(list(self._weights), list(self._weights.values()))[0]
            self._say(f"  {fault}")
            if getattr(self, fault)() is NOT_NOW:
                self._say(f"  {NOT_NOW}")
            else:
                self.faults[fault] += 1
            self._supervise()
        for _, member in self._resumes:
            member.resume()
        self._supervise()

    def kill_client(self) -> None:
        running = [m for m in self._fleet.of("writer", "transformer") if m.is_running]
        if running:
            self._chance.choice(running).kill()

    def add_twin(self) -> None:
        """A second process with the id of one that lives: a zombie that does not know it."""
        running = [m for m in self._fleet.of("writer") if m.is_running and not m.has_twin]
        if running:
            self._chance.choice(running).add_twin()

    def pause_client(self) -> None:
        """For longer than its transaction's time; it goes on as if nothing had happened."""
        role = self._chance.choice(("writer", "transformer"))
        if any(member.is_paused for member in self._fleet.of("transformer")):
            # Somebody has to take over the partitions of the one that is paused.
            role = "writer"
        running = [m for m in self._fleet.of(role) if m.is_running]
        if running:
            member = self._chance.choice(running)
            member.pause()
            self._resumes.append((time.monotonic() + self._chance.uniform(*PAUSE_S), member))

    def cut(self) -> None:
        self._proxy.cut(self._chance.choice((0.2, 0.5, 1.0)))

    def kill_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._chance.choice((0, 0, 0.5)))
        self._broker.restart()

    def kill_again(self) -> None:
        """Kill it again as soon as it answers, with everything to be recovered."""
        for _ in range(self._chance.randint(2, 3)):
            self._broker.kill()
            self._broker.restart()

    def pause_broker(self) -> None:
        os.kill(self._broker.pid, signal.SIGSTOP)
        time.sleep(self._chance.uniform(*SHORT_PAUSE_S))
        os.kill(self._broker.pid, signal.SIGCONT)

    def take_right(self) -> None:
        """Something that everybody needs is denied to all for a while."""
        right = self._chance.choice(self._rights)
        with WireClient(self._broker) as admin:
            remove_acls(admin, [right])
            time.sleep(self._chance.uniform(*SHORT_PAUSE_S))
            add_acls(admin, [right])

    def _supervise(self) -> None:
        assert self._broker.is_running, f"the broker ended: {self._broker.output()}"
        self._supervise_clients()

    def _supervise_clients(self) -> None:
        now_s = time.monotonic()
        for entry in [each for each in self._resumes if each[0] < now_s]:
            entry[1].resume()
            self._resumes.remove(entry)
        for member in self._fleet.members:
            member.restart_if_ended()
