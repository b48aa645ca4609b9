"""Any life of a classic group, as its members see it.

The model is small: which generation has which leader, members and assignments. What must hold
inside, for any state, is checked by Run after every step; a restart may come at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.groups.classic_run import Run

CONFIG = GroupConfig(initial_rebalance_delay_ms=3_000, max_size=4)
CLIENTS = 5


@dataclass
class Client:
    """A client library: the responses that it has, and the ones that it waits for."""

    name: str
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    to_assign: list[str] | None = None
    """The members, if it leads."""
    ticket: int | None = None


@dataclass
class Generation:
    """The content of the responses to a generation's members."""

    leader: str
    protocol: str
    members: set[str] = field(default_factory=set)
    assigned: dict[str, bytes] = field(default_factory=dict)


class ClassicGroups(RuleBasedStateMachine):
    """Clients that do what clients do, at the wrong time as well."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run(CONFIG)
        self.clients = [Client(f"c{number}") for number in range(CLIENTS)]
        self.clients += [Client("s0", "i"), Client("s1", "i"), Client("s2", "j")]
        self.generations: dict[int, Generation] = {}
        self.next_id = 0

    clients_drawn = st.integers(0, CLIENTS + 2)

    # ------------------------------------------------------------------------------ what clients do

    @rule(
        which=clients_drawn,
        version=st.sampled_from([3, 8, 9]),
        protocols=st.sampled_from(["range", "range+sticky", "sticky+range"]),
        forget=st.sampled_from([False, False, False, True]),
    )
    def join(self, which, version, protocols, forget):
        client = self.clients[which]
        if forget:  # The client starts again.
            self.clients[which] = client = Client(client.name, client.instance)
        self.next_id += 1
        new_id = f"{client.name}-{self.next_id}"
        known = client.member_id
        command = self.run.join(
            known, version=version, instance=client.instance, protocols=protocols, new_id=new_id
        )
        client.ticket = command.ticket
        replaced = None
        if not known and client.instance is not None and self.run.group is not None:
            replaced = self.run.group.static_members.get(client.instance)
        before = self.run.group
        decision = self.run.do(command)
        stays = before is not None and before.state is State.STABLE and decision.records
        if replaced is not None and stays:
            generation = self.generations[before.generation]
            generation.assigned[new_id] = generation.assigned.pop(replaced)
            generation.members = generation.members - {replaced} | {new_id}
            if generation.leader == replaced:
                generation.leader = new_id
        self.deliver()

    @rule(which=clients_drawn, omit=st.booleans())
    def sync(self, which, omit):
        client = self.clients[which]
        if not client.member_id:
            return
        names = [] if omit or client.to_assign is None else client.to_assign
        given = {name: f"{client.generation}:{name}".encode() for name in names}
        group = self.run.group
        leads = (
            group is not None
            and group.state is State.COMPLETING_REBALANCE
            and client.member_id == group.leader_id
            and client.generation == group.generation
            and group.refuse_member(client.member_id, client.instance) is ErrorCode.NONE
        )
        if leads:
            generation = self.generations[client.generation]
            generation.assigned = {name: given.get(name, b"") for name in group.members}
        command = self.run.sync(
            client.member_id, client.generation, instance=client.instance, assignments=given
        )
        client.ticket = command.ticket
        self.run.do(command)
        self.deliver()

    @precondition(lambda self: self.run.group is not None)
    @rule(
        order=st.permutations(range(CLIENTS + 3)),
        active=st.integers(1, CLIENTS + 3),
        rounds=st.integers(1, 4),
        version=st.sampled_from([8, 9]),
    )
    def settle(self, order, active, rounds, version):
        """Some or all do what they should, until nothing is left to do or not so long."""
        for _ in range(rounds):
            for which in order[:active]:
                client = self.clients[which]
                group = self.run.group
                if client.ticket is None and client.member_id in {**group.members, **group.pending}:
                    if client.generation != group.generation or group.state.name.startswith("P"):
                        self.join(which, version, "range", False)
                    else:
                        self.sync(which, False)
            if self.run.group.state is State.PREPARING_REBALANCE:
                self.wait_for_the_next_timer()

    @rule(which=clients_drawn)
    def heartbeat(self, which):
        client = self.clients[which]
        command = self.run.heartbeat(client.member_id, client.generation, client.instance)
        code = self.run.do(command).response.error_code
        group = self.run.group
        is_in = (
            group is not None
            and client.member_id in group.members
            and client.generation == group.generation
            and group.static_members.get(client.instance, client.member_id) == client.member_id
        )
        if code == ErrorCode.NONE:
            assert is_in
            assert client.member_id in self.generations[client.generation].members
            assert group.state in {State.COMPLETING_REBALANCE, State.STABLE}
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            assert is_in
            assert group.state is State.PREPARING_REBALANCE
        else:
            assert not is_in

    @rule(which=clients_drawn, by_instance=st.booleans())
    def leave(self, which, by_instance):
        client = self.clients[which]
        member_id = "" if by_instance else client.member_id
        (answer,) = self.run.do(self.run.leave((member_id, client.instance))).response.members
        group = self.run.group
        if answer.error_code == ErrorCode.NONE and not by_instance:
            assert client.member_id not in group.members
            assert client.member_id not in group.pending
        self.deliver()

    @precondition(lambda self: self.run.timers)
    @rule()
    def wait_for_the_next_timer(self):
        self.run.expire(min(self.run.timers, key=lambda timer: (self.run.timers[timer], timer)))
        self.deliver()

    @rule(passed_ms=st.integers(0, 5_000))
    def wait(self, passed_ms):
        end_ms = self.run.tick_ms + passed_ms
        while due := [timer for timer, at_ms in self.run.timers.items() if at_ms <= end_ms]:
            self.run.expire(min(due, key=lambda timer: (self.run.timers[timer], timer)))
            self.deliver()
        self.run.tick_ms = end_ms

    @rule()
    def restart(self):
        self.run.restart()
        for client in self.clients:
            client.ticket = None
        stored = self.run.group.generation if self.run.group is not None else -1
        # A generation that was not written is lost, and its number is used again.
        self.generations = {
            number: each for number, each in self.generations.items() if number <= stored
        }

    # --------------------------------------------------------------------------- what they are told

    def deliver(self) -> None:
        for client in self.clients:
            answer = self.run.answers.pop(client.ticket, None) if client.ticket else None
            if answer is not None:
                client.ticket = None
                self.told(client, answer)

    def told(self, client: Client, answer: Any) -> None:
        code = ErrorCode(answer.error_code)
        if isinstance(answer, JoinGroupResponse):
            if code is ErrorCode.NONE:
                self.told_of_generation(client, answer)
            elif code is ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = answer.member_id
            elif code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
                client.member_id = ""
            else:
                assert code in {
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    ErrorCode.REBALANCE_IN_PROGRESS,
                }
        elif code is ErrorCode.NONE:
            assert isinstance(answer, SyncGroupResponse)
            generation = self.generations[client.generation]
            assert answer.assignment == generation.assigned[client.member_id]
            assert answer.protocol_name == generation.protocol
        else:
            assert answer.assignment == b""

    def told_of_generation(self, client: Client, answer: JoinGroupResponse) -> None:
        group = self.run.group
        generation = self.generations.get(answer.generation_id)
        if generation is None:
            assert answer.generation_id > max(self.generations, default=0)
            generation = Generation(answer.leader, answer.protocol_name, set(group.members))
            self.generations[answer.generation_id] = generation
        assert answer.protocol_name == generation.protocol
        assert answer.member_id in generation.members
        client.member_id = answer.member_id
        client.generation = answer.generation_id
        client.to_assign = None
        if answer.members:
            assert answer.leader == answer.member_id == generation.leader
            client.to_assign = [member.member_id for member in answer.members]
            assert set(client.to_assign) == generation.members
        else:
            assert not answer.skip_assignment
            # Told so before v9, a restarted static leader does not assign (KAFKA-13435).
            assert answer.member_id != answer.leader or answer.member_id != generation.leader

    # -------------------------------------------------------------------------- what always holds

    @invariant()
    def assignments_are_those_of_the_generation(self):
        group = self.run.group
        if group is not None and group.state is State.STABLE:
            assigned = {name: member.assignment for name, member in group.members.items()}
            assert assigned == self.generations[group.generation].assigned

    @invariant()
    def there_is_no_more_than_one_member_per_instance(self):
        group = self.run.group
        if group is not None:
            instances = [each.instance_id for each in group.members.values() if each.instance_id]
            assert len(set(instances)) == len(instances)


TestClassicGroups = ClassicGroups.TestCase
