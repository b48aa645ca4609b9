"""A classic group whose members all join again, and again, as fast as the broker lets them."""

import gc
import select
import struct
import time
from array import array
from collections.abc import Callable, Iterable

from tests.bench.end_to_end import Peer
from tests.bench.frames import (
    JoinAnswer,
    join_group_answer,
    join_group_frame,
    sync_group_error_position,
    sync_group_frame,
)
from tests.bench.load import Measurement, RequestFailed, summarise
from tests.counterparts.usage import CpuTime

FORM_TIMEOUT_S = 60
QUIET_S = 0.5
ASSIGNMENT_BYTES = 60


class Rebalance:
    """Members with a connection each; one rebalance is a JoinGroup and SyncGroup of all members."""

    def __init__(self, port: int, topic: str, members: int) -> None:
        self._group = f"{topic}-{time.time_ns()}"
        self._topic = topic
        self._peers = [Peer(port) for _ in range(members)]
        self._member_ids = [""] * members
        self._round = 0

    def run(
        self, warm_up_s: float, duration_s: float, broker_cpu: Callable[[], CpuTime]
    ) -> Measurement:
        """Form the group, then time whole rebalances one after the other."""
        latencies = array("d")
        gc.disable()
        try:
            self._form()
            self._turn_until(time.perf_counter() + warm_up_s, array("d"))
            cpu_before, own_before = broker_cpu().total_s, time.process_time()
            started = time.perf_counter()
            ended = self._turn_until(started + duration_s, latencies)
            cpu_s, own_s = broker_cpu().total_s - cpu_before, time.process_time() - own_before
        finally:
            gc.enable()
            for peer in self._peers:
                peer.close()
        # Everything else here is per request; a rebalance is two of each member.
        cpu_s /= 2 * len(self._peers)
        return summarise(latencies, ended - started, cpu_s, own_s)

    def _form(self) -> None:
        """Join until one generation has all members: a first one may start without the rest."""
        deadline = time.monotonic() + FORM_TIMEOUT_S
        waiting = set(self._peers)
        generations: dict[int, int] = {}
        self._send_join(waiting)
        while max(generations.values(), default=0) < len(self._peers):
            if time.monotonic() > deadline:
                raise RequestFailed("the group did not come together")
            ready, _, _ = select.select(list(waiting), [], [], QUIET_S)
            for peer in ready:
                answer = self._joined(peer)
                generations[answer.generation] = generations.get(answer.generation, 0) + 1
                waiting.discard(peer)
            if not ready:
                again = set(self._peers) - waiting
                self._send_join(again)
                waiting |= again

    def _turn_until(self, deadline: float, latencies: "array[float]") -> float:
        now = time.perf_counter()
        while now < deadline:
            started = now
            self._rebalance()
            now = time.perf_counter()
            latencies.append(now - started)
        return now

    def _rebalance(self) -> None:
        # The subscription of a member changes: else the coordinator would return the current
        # state.
        self._round += 1
        self._send_join(self._peers)
        answers = [self._joined(peer) for peer in self._peers]
        (generation,) = {answer.generation for answer in answers}
        leader = answers[0].leader
        for peer, member_id in zip(self._peers, self._member_ids, strict=True):
            to = self._member_ids if member_id == leader else []
            assignments = [(each, bytes(ASSIGNMENT_BYTES)) for each in to]
            peer.send(sync_group_frame(self._group, generation, member_id, assignments))
        for peer in self._peers:
            (error,) = struct.unpack_from(">h", peer.receive(), sync_group_error_position())
            if error:
                raise RequestFailed(f"SyncGroup answered error code {error}")

    def _send_join(self, peers: Iterable[Peer]) -> None:
        chosen = set(peers)
        for peer, member_id in zip(self._peers, self._member_ids, strict=True):
            if peer in chosen:
                peer.send(join_group_frame(self._group, member_id, self._topic, self._round))

    def _joined(self, peer: Peer) -> JoinAnswer:
        answer = join_group_answer(peer.receive())
        if answer.error:
            raise RequestFailed(f"JoinGroup answered error code {answer.error}")
        self._member_ids[self._peers.index(peer)] = answer.member_id
        return answer
