"""Ends of sessions and transactions of dead and paused processes, without waiting for timeouts.

A coordinator removes a dead member after its session timeout and aborts an open transaction after
the transaction timeout: 45 s and a minute by default. The command does both at once, by requests
that any administrator can send, so that a run of a minute sees many of these ends.
"""

from __future__ import annotations

from barnabas.broker.admin.exchange import Coordinator, Rejected, send
from barnabas.broker.admin.transactions import fence
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.cli.proving.wiretap import Wiretap
from barnabas.broker.cli.transaction_view import ONGOING, Filters, list_reachable
from barnabas.broker.client.brokers import GROUP
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.leave_group import (
    LEAVE_GROUP,
    LeaveGroupRequest,
    MemberIdentity,
)
from barnabas.storage.runtime.clock import monotonic

_INTERVAL_S = 0.5
"""Time between two searches for transactions of dead processes."""


class Passage:
    """Ends memberships and transactions of processes that are dead or paused."""

    def __init__(
        self, cluster: Cluster, wiretap: Wiretap, instances: Instances, timeline: Timeline
    ) -> None:
        self._cluster = cluster
        self._wiretap = wiretap
        self._instances = instances
        self._timeline = timeline
        self._due: list[str] = []
        self._checked_s = 0.0

    def expire(self, process: str) -> None:
        """End the membership of a paused process, as its session timeout would."""
        self._due.append(process)

    def step(self) -> None:
        """End what is due; what fails while the broker is unavailable is tried again later."""
        self._due += self._instances.take_gone()
        try:
            while self._due:
                self._remove(self._due[0])
                del self._due[0]
            if monotonic() - self._checked_s > _INTERVAL_S:
                self._checked_s = monotonic()
                self._abort_orphans()
        except (Unreachable, Rejected, CommandError, KafkaError):
            self._cluster.close()

    def _remove(self, process: str) -> None:
        """Remove a member from its group, unless a successor gets its static membership."""
        found = self._wiretap.members.pop(process, None)
        if found is None or (found.instance_id and self._instances.has_successor(process)):
            return
        member = MemberIdentity(found.member, found.instance_id or None, "session timeout")
        request = LeaveGroupRequest(found.group, found.member, [member])
        answer = self._cluster.run(send(LEAVE_GROUP, request, Coordinator(GROUP, found.group)))
        if not answer.error_code and not any(each.error_code for each in answer.members):
            self._timeline.note(process, f"its session timeout expired in group {found.group}")

    def _abort_orphans(self) -> None:
        """Abort open transactions whose last producer is dead."""
        living = {each.name for each in self._instances.processes}
        for each in list_reachable(self._cluster, Filters((ONGOING,))).transactions:
            owner = self._wiretap.owners.get(each.transactional_id)
            if owner is not None and owner not in living:
                self.abort(each.transactional_id, owner)

    def abort(self, transactional_id: str, process: str) -> None:
        """Abort a transaction as its timeout would; raises Rejected, Unreachable."""
        self._cluster.run(fence(transactional_id, 60_000))
        self._timeline.note(process, f"the transaction of {transactional_id} timed out")

    def time_out(self, process: str) -> bool:
        """Abort the open transactions of a process; return whether there was one."""
        ids = {each for each, owner in self._wiretap.owners.items() if owner == process}
        found = False
        try:
            for each in list_reachable(self._cluster, Filters((ONGOING,))).transactions:
                if each.transactional_id in ids:
                    self.abort(each.transactional_id, process)
                    found = True
        except (Unreachable, Rejected, CommandError, KafkaError):
            self._cluster.close()
        return found
