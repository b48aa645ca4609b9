"""Brokers of a cluster in this process, for the torture's turns."""

from __future__ import annotations

from barnabas.testing import Cluster


class EmbeddedBrokers:
    """The brokers of a `Cluster`; the others wait for the lease of one that was killed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.count = len(cluster.brokers)

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    def kill(self) -> None:
        for number in range(self.count):
            self._cluster.kill(number)

    def restart(self) -> None:
        for number in range(self.count):
            self._cluster.restart(number)

    def kill_one(self, number: int) -> None:
        self._cluster.kill(number, expire=False)

    def stop_one(self, number: int) -> None:
        self._cluster.stop(number)

    def start_one(self, number: int) -> None:
        self._cluster.restart(number)

    def wait_until_ready(self) -> None:
        self._cluster.wait_until_served()

    def failure(self) -> str | None:
        failures = [each.failure for each in self._cluster.brokers if each.failure is not None]
        return repr(failures[0]) if failures else None
