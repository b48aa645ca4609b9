"""Processor time of the rebalance of a large group."""

from __future__ import annotations

from barnabas.storage.runtime.clock import monotonic, processor_seconds, sleep
from tests.broker.handlers.test_groups import broker, member

__all__ = ["broker", "member"]


def test_200_members_rebalance_quickly(member, capsys):
    members = [member() for _ in range(200)]
    members[0].join()
    started, used_s = monotonic(), processor_seconds()
    for each in members[1:]:
        each.send_join(3)
    watcher = member()
    while len(watcher.describe().members) < len(members):
        sleep(0.01)
    members[0].send_join(3)
    joined = [each.joined() for each in members]
    assert {each.generation_id for each in joined} == {2}
    assert [len(each.members) for each in joined] == [200] + [0] * 199
    for each in members[1:]:
        each.send_sync()
    members[0].send_sync([(each.id, each.id.encode()) for each in members])
    assert all(each.receive().assignment == each.id.encode() for each in members)
    took_s = monotonic() - started
    with capsys.disabled():
        print(f"\n  200 members, from their first JoinGroup to the last assignment: {took_s:.2f} s")
    # Broker and members are this process: what others take from it does not count.
    assert processor_seconds() - used_s < 10
