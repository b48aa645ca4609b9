"""A consumer group under everything that clients, time and administrators can do to it.

After every step (consumer_run.py): no partition has two owners, epochs never go back, a replay of
the log gives the same group, no wait is endless. At the end, when all members have applied their
assignments: every partition of every subscribed topic has an owner.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from barnabas.coordinator.groups.classic.group import ClassicGroup
from tests.coordinator.groups.consumer_run import GROUP, Run, assigned_by_sync

MEMBERS = [f"m{number}" for number in range(5)]
INSTANCES = ["i1", "i2"]
SUBSCRIPTIONS = ["t", "u", "t u", "t missing", "v"]
REGEXES = ["t", "[tu]", "v|w", ".*"]
STEPS_TO_REST = 60

members = st.sampled_from(MEMBERS)


class ConsumerGroupMachine(RuleBasedStateMachine):
    """See the head of this file."""

    @initialize()
    def begin(self) -> None:
        self.run = Run()
        self.classic: dict[str, dict[str, set[int]]] = {}
        """The partitions that SyncGroup assigned to classic members."""

    def _is_classic_group(self) -> bool:
        return isinstance(self.run.shard.groups.get(GROUP), ClassicGroup)

    # --------------------------------------------------------------------------- consumer members

    @rule(
        member=members,
        names=st.sampled_from(SUBSCRIPTIONS),
        assignor=st.sampled_from([None, "uniform", "range"]),
    )
    def join(self, member: str, names: str, assignor: str | None) -> None:
        self.run.has.pop(member, None)
        self.run.do(self.run.join(member, names, server_assignor=assignor))

    @rule(member=members, regex=st.sampled_from(REGEXES))
    def join_by_regex(self, member: str, regex: str) -> None:
        self.run.has.pop(member, None)
        self.run.do(self.run.join(member, None, subscribed_topic_regex=regex))

    @rule(member=members, instance=st.sampled_from(INSTANCES))
    def join_static(self, member: str, instance: str) -> None:
        self.run.has.pop(member, None)
        self.run.do(self.run.join(member, instance=instance))

    @rule(member=members)
    def obey(self, member: str) -> None:
        self.run.do(self.run.obedient(member, instance=self._instance(member)))

    @rule(member=members)
    def say_nothing(self, member: str) -> None:
        self.run.do(self.run.heartbeat(member, instance=self._instance(member)))

    @rule(member=members, epoch=st.integers(-3, 12))
    def say_anything(self, member: str, epoch: int) -> None:
        self.run.do(self.run.heartbeat(member, epoch, owned={"t": {0, 1}}))

    @rule(member=members, names=st.sampled_from(SUBSCRIPTIONS), silent=st.booleans())
    def subscribe(self, member: str, names: str, *, silent: bool) -> None:
        make = self.run.heartbeat if silent else self.run.obedient
        self.run.do(make(member, names=names, instance=self._instance(member)))

    @rule(member=members, static=st.booleans())
    def leave(self, member: str, *, static: bool) -> None:
        instance = self._instance(member)
        epoch = -2 if static and instance else -1
        self.run.do(self.run.heartbeat(member, epoch, instance=instance))

    def _instance(self, member: str) -> str | None:
        found = self.run.members.get(member)
        return None if found is None else found.instance_id

    # ---------------------------------------------------------------------------- classic members

    @rule(names=st.sampled_from(["t", "t u"]), number=st.integers(0, 2))
    def join_classic(self, names: str, number: int) -> None:
        member = f"c{number}"
        self.run.do(self.run.join_classic(member, names, owned=self.classic.get(member)))

    @rule(number=st.integers(0, 2), instance=st.sampled_from(INSTANCES))
    def join_classic_static(self, number: int, instance: str) -> None:
        self.run.do(self.run.join_classic(instance=instance, new_id=f"c{number}-{instance}"))

    @rule(number=st.integers(0, 2))
    def sync(self, number: int) -> None:
        self._sync(f"c{number}")

    def _sync(self, member: str) -> None:
        response = self.run.do(self.run.sync(member)).response
        if response is not None and not response.error_code and response.assignment:
            self.classic[member] = assigned_by_sync(response, self.run.topics)

    @rule(number=st.integers(0, 2))
    def heartbeat_classic(self, number: int) -> None:
        self.run.do(self.run.heartbeat_classic(f"c{number}"))

    @rule(number=st.integers(0, 2))
    def leave_classic(self, number: int) -> None:
        self.classic.pop(f"c{number}", None)
        self.run.do(self.run.leave_classic((f"c{number}", None)))

    # ------------------------------------------------------------------- time and surroundings

    @rule(delay_ms=st.sampled_from([1, 500, 1000, 20_000]))
    def time_passes(self, delay_ms: int) -> None:
        self.run.later(delay_ms)

    @precondition(lambda self: self.run.timers)
    @rule(data=st.data())
    def time_is_up(self, data: Any) -> None:
        timer = data.draw(st.sampled_from(sorted(self.run.timers)))
        self.run.expire(timer.name, timer.member_id)

    @rule(name=st.sampled_from("tuvw"), count=st.integers(1, 6))
    def change_topics(self, name: str, count: int) -> None:
        topics = self.run.topics
        if name not in topics.counts:
            topics.create(name, count)
        elif topics.counts[name] < count:
            topics.grow(name, count)
        else:
            topics.delete(name)
            for owned in [*self.run.has.values(), *self.classic.values()]:
                owned.pop(name, None)

    @rule()
    def restart(self) -> None:
        self.run.restart()

    # ---------------------------------------------------------------------------------- the end

    def teardown(self) -> None:
        if not hasattr(self, "run") or not self.run.members or self._is_classic_group():
            return
        for member in list(self.run.members.values()):
            if member.classic is not None or member.has_left_for_a_while:
                self._put_out(member.member_id)
        for _ in range(STEPS_TO_REST):
            self._rest()
        self._check_everything_is_owned()

    def _put_out(self, member: str) -> None:
        self.run.expire("session", member)

    def _rest(self) -> None:
        """Apply all assignments, and advance the time."""
        self.run.later()
        for name in [timer.name for timer in self.run.timers if timer.name == "regex"]:
            self.run.expire(name)
        for member in list(self.run.members):
            self.run.do(self.run.obedient(member, instance=self._instance(member)))

    def _check_everything_is_owned(self) -> None:
        group, topics = self.run.group, self.run.topics
        if group is None or not group.members:
            return
        assert group.state_name == "Stable", group.members
        wanted = group.subscribed_topics(group.members.values()) & topics.counts.keys()
        for name in wanted:
            for partition in range(topics.counts[name]):
                assert group.is_owned(topics.ids[name], partition), (name, partition)


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, print_blob=True
)
