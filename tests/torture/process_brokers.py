"""Brokers that are processes on one PostgreSQL, for tests in which they die in turn."""

from __future__ import annotations

from collections.abc import Sequence

from tests.postgresql.brokers import Member, start
from tests.waiting import wait_until

READY = 200
LOOK_S = 0.05


class ProcessBrokers:
    """Members of one cluster; their creator ends them."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.count = len(members)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(each.bootstrap_servers for each in self.members)

    def kill(self) -> None:
        for each in self.members:
            each.kill()

    def restart(self) -> None:
        start(self.members)

    def kill_one(self, number: int) -> None:
        self.members[number].kill()

    def stop_one(self, number: int) -> None:
        member = self.members[number]
        status = member.terminate()
        assert status == 0, f"broker {number} ended with {status}: {member.output()}"

    def start_one(self, number: int) -> None:
        self.members[number].restart()

    def wait_until_ready(self) -> None:
        def are_ready() -> bool:
            return all(each.probe("/readyz") == READY for each in self.members)

        wait_until(are_ready, "every broker is ready", pause_s=LOOK_S)

    def failure(self) -> str | None:
        ended = [each for each in self.members if not each.is_running]
        return f"a broker ended: {ended[0].output()}" if ended else None
