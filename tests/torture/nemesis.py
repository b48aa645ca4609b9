"""Faults of a broker that is a process, of its clients and their connections."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Sequence
from random import Random

from barnabas.broker.cli.proving.faults import Cure, Fault
from barnabas.broker.cli.proving.proxy import Proxy
from barnabas.protocol.messages.create_acls import AclCreation
from tests.broker.security.access_users import add_acls, remove_acls
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.workload.fleet import Fleet, Member
from tests.workload.settings import TRANSACTION_TIMEOUT_MS

CLIENT_FAULTS = {"kill_client": 3, "add_twin": 2, "pause_client": 3, "cut": 3}
BROKER_FAULTS = {"kill_broker": 3, "kill_again": 1, "pause_broker": 1}
RIGHTS_FAULTS = {"take_right": 24}
PAUSE_S = (1.5 * TRANSACTION_TIMEOUT_MS / 1000, 3 * TRANSACTION_TIMEOUT_MS / 1000)
SHORT_PAUSE_S = (0.2, 1.5)
REST_S = (0.1, 1.0)
"""The pause between two faults."""


class ClientFaults:
    """Performs faults on a fleet of clients and their connections."""

    def __init__(self, fleet: Fleet, proxy: Proxy) -> None:
        self._fleet = fleet
        self._proxy = proxy

    def draw(self, kind: str, chance: Random, _harmed: Collection[int]) -> Fault | None:
        if kind == "cut":
            return Fault(kind, share=chance.choice((0.2, 0.5, 1.0)))
        roles = {"kill_client": ("writer", "transformer"), "add_twin": ("writer",)}.get(kind)
        if roles is None:
            roles = (chance.choice(("writer", "transformer")),)
            if any(member.is_paused for member in self._fleet.of("transformer")):
                # Another member has to take over the partitions of the paused one.
                roles = ("writer",)
        running = [m for m in self._fleet.of(*roles) if m.is_running]
        if kind == "add_twin":
            running = [member for member in running if not member.has_twin]
        if not running:
            return None
        seconds = chance.uniform(*PAUSE_S) if kind == "pause_client" else 0
        return Fault(kind, seconds, client=chance.choice(running).name)

    def begin(self, fault: Fault) -> Cure | None:
        if fault.kind == "cut":
            self._proxy.cut(fault.share)
            return None
        member = self._member(fault.client)
        match fault.kind:
            case "kill_client":
                member.kill()
            case "add_twin":
                # A second process with the id of a running one: a zombie that does not know it.
                member.add_twin()
            case "pause_client":
                # For longer than its transaction's time; it continues as if nothing had happened.
                member.pause()
                return member.resume
        return None

    def supervise(self, _harmed: Collection[int]) -> None:
        for member in self._fleet.members:
            member.restart_if_ended()

    def finish(self) -> None:
        """Undo all faults, since none heals by itself."""

    def _member(self, name: str) -> Member:
        return next(each for each in self._fleet.members if each.name == name)


class BrokerFaults(ClientFaults):
    """Performs faults on a broker, too, and takes rights away."""

    def __init__(
        self,
        broker: BrokerProcess,
        fleet: Fleet,
        proxy: Proxy,
        rights: Sequence[AclCreation] = (),
    ) -> None:
        super().__init__(fleet, proxy)
        self._broker = broker
        self._rights = rights

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        if kind in CLIENT_FAULTS:
            return super().draw(kind, chance, harmed)
        if harmed:
            return None
        match kind:
            case "kill_broker":
                return Fault(kind, chance.choice((0, 0, 0.5)), (0,))
            case "kill_again":
                return Fault(kind, share=chance.randint(2, 3))
            case "take_right":
                number = chance.randrange(len(self._rights))
                return Fault(kind, chance.uniform(*SHORT_PAUSE_S), (0,), share=number)
        return Fault(kind, chance.uniform(*SHORT_PAUSE_S), (0,))

    def begin(self, fault: Fault) -> Cure | None:
        match fault.kind:
            case "kill_broker":
                self._broker.kill()
                return self._broker.restart
            case "kill_again":
                # As soon as it answers, with everything to be recovered.
                for _ in range(int(fault.share)):
                    self._broker.kill()
                    self._broker.restart()
            case "pause_broker":
                os.kill(self._broker.pid, signal.SIGSTOP)
                return lambda: os.kill(self._broker.pid, signal.SIGCONT)
            case "take_right":
                # A permission that all clients need is denied for a while.
                return self._take(self._rights[int(fault.share)])
            case _:
                return super().begin(fault)
        return None

    def supervise(self, harmed: Collection[int]) -> None:
        assert harmed or self._broker.is_running, f"the broker ended: {self._broker.output()}"
        super().supervise(harmed)

    def _take(self, right: AclCreation) -> Cure:
        with WireClient(self._broker) as admin:
            remove_acls(admin, [right])

        def give_back() -> None:
            with WireClient(self._broker) as admin:
                add_acls(admin, [right])

        return give_back
