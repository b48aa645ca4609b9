"""Plans lead to a cluster at rest: all partitions led, level, and none at a draining broker."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.cluster.membership.assigner import MOVES_AT_ONCE, Plan, Rules, plan
from barnabas.storage.replicated.cluster_index import Assignment, Led, Member
from tests.seeds import SEED

ROUNDS_MOST = 200
GONE = 99
"""ID of a session, and of a node, that has ended."""


def member(node_id, *, is_draining=False):
    """One whose session is a hundred more than its node."""
    return Member(100 + node_id, node_id, "", is_draining)


def led_by(partition_id, node_id, epoch=0, wanted=None, pinned=None):
    session = None if node_id is None else 100 + node_id
    return Led(partition_id, session, epoch, wanted, pinned)


class Cluster:
    """Content of the store, and its changes by a plan."""

    def __init__(self, members, led, moves_at_once=64):
        self.members = list(members)
        self.led = {each.partition_id: each for each in led}
        self.moves_at_once = moves_at_once
        self.moves = 0
        """Changes of leader from one live member to another."""

    def nodes(self):
        return {each.session: each.node_id for each in self.members}

    def plan(self):
        return plan(self.members, self.led.values(), moves_at_once=self.moves_at_once)

    def carry_out(self, planned):
        for partition_id, session, epoch in planned.assignments:
            led = self.led[partition_id]
            assert led.epoch == epoch
            wanted = None if led.wanted_node == self.nodes()[session] else led.wanted_node
            self.led[partition_id] = led._replace(
                session=session, epoch=epoch + 1, wanted_node=wanted
            )
        for each, node_id in planned.wishes.items():
            self.led[each] = self.led[each]._replace(wanted_node=node_id)

    def hand_over(self):
        """Carry out the wishes of all leaders; return the number of moves."""
        sessions = {each.node_id: each.session for each in self.members if not each.is_draining}
        on_their_way = 0
        for led in [*self.led.values()]:
            leader = self.nodes().get(led.session)
            to = sessions.get(led.wanted_node)
            if leader is not None and to not in {None, led.session}:
                on_their_way += 1
                self.moves += 1
                self.led[led.partition_id] = led._replace(
                    session=to, epoch=led.epoch + 1, wanted_node=None
                )
        return on_their_way

    def settle(self):
        """Plan, and do what was planned, until there is no plan any more."""
        for _ in range(ROUNDS_MOST):
            planned = self.plan()
            if planned.is_empty and not self.hand_over():
                return self
            moves = [node for node in planned.wishes.values() if node is not None]
            assert len(moves) <= self.moves_at_once
            self.carry_out(planned)
            self.hand_over()
        raise AssertionError("it does not come to rest")

    def loads(self):
        loads = {each.node_id: 0 for each in self.members}
        for led in self.led.values():
            if led.session in self.nodes():
                loads[self.nodes()[led.session]] += 1
        return loads

    def check(self):
        """Check the conditions of a cluster at rest."""
        takers = [each.node_id for each in self.members if not each.is_draining]
        loads = self.loads()
        if takers:
            assert sum(loads.values()) == len(self.led), "each is led by one who is live"
            self.check_levels(takers, loads)
            assert all(loads[each.node_id] == 0 for each in self.members if each.is_draining)
            for each in self.led.values():
                if each.pinned_node in takers:
                    assert self.nodes()[each.session] == each.pinned_node
        assert all(each.wanted_node is None for each in self.led.values())

    def check_levels(self, takers, loads):
        """Check that no node that can give leads two more than any other."""
        can_give = {
            self.nodes()[each.session]
            for each in self.led.values()
            if each.pinned_node not in takers
        }
        assert all(loads[each] - min(loads[to] for to in takers) <= 1 for each in can_give)


def test_every_small_cluster_comes_to_rest():
    """Two brokers, each away, draining or there; three partitions, each led by one or none."""
    kinds = (None, False, True)
    for states in product(kinds, repeat=2):
        members = [
            member(node_id, is_draining=state)
            for node_id, state in enumerate(states)
            if state is not None
        ]
        for places in product((None, 0, 1, GONE), (None, 0, 1), repeat=3):
            pairs = zip(places[::2], places[1::2], strict=True)
            led = [
                led_by(number, leader, 0, wanted) for number, (leader, wanted) in enumerate(pairs)
            ]
            Cluster(members, led).settle().check()


@st.composite
def clusters(draw):
    nodes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True))
    members = [member(each, is_draining=draw(st.booleans())) for each in nodes]
    anybody = st.sampled_from([None, GONE, *nodes])
    led = [
        led_by(number, draw(anybody), draw(st.integers(-1, 3)), draw(anybody), draw(anybody))
        for number in range(draw(st.integers(0, 40)))
    ]
    return Cluster(members, led, draw(st.integers(1, 5)))


@settings(max_examples=80, deadline=None)
@given(clusters())
def test_every_cluster_comes_to_rest(cluster):
    cluster.settle().check()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_no_more_moves_than_level_the_load(loads):
    numbers = iter(range(sum(loads)))
    led = [led_by(next(numbers), node) for node, load in enumerate(loads) for _ in range(load)]
    cluster = Cluster([member(node) for node in range(len(loads))], led).settle()
    cluster.check()
    low, rest = divmod(sum(loads), len(loads))
    # As many as can be keep one more than the others.
    above = sorted((load - low for load in loads if load > low), reverse=True)
    assert cluster.moves == sum(above) - min(rest, len(above))


def test_the_plan_of_a_level_cluster_is_empty():
    led = [led_by(number, number % 3) for number in range(11)]
    assert plan([member(each) for each in range(3)], led) == Plan([], {})
    assert plan([], led).is_empty
    assert plan([member(1)], []).is_empty


def test_partitions_of_each_topic_are_spread_over_all():
    """Ids of a topic's partitions follow one another."""
    cluster = Cluster([member(each) for each in range(3)], [])
    for start, count in ((0, 50), (50, 6), (56, 30)):
        ids = range(start, start + count)
        cluster.led.update({each: led_by(each, None, -1) for each in ids})
        cluster.settle().check()
        leaders = [cluster.led[each].session for each in ids]
        counts = [leaders.count(100 + node) for node in range(3)]
        assert max(counts) - min(counts) <= 2, (start, counts)


def test_plan_spreads_partitions_of_dead_broker_only():
    members = [member(each) for each in range(4)]
    led = [led_by(number, number % 4) for number in range(40)]
    cluster = Cluster(members[1:], led)
    planned = cluster.plan()
    assert not planned.wishes
    assert {each.partition_id for each in planned.assignments} == set(range(0, 40, 4))
    cluster.carry_out(planned)
    cluster.check()
    # It comes back: what it gets is what levels the load, a part of each.
    cluster.members.append(members[0])
    cluster.settle().check()
    assert cluster.moves == 10


def test_a_wish_for_a_broker_that_is_there_is_let_be():
    members = [member(1), member(2)]
    led = [led_by(1, 1, wanted=2), led_by(2, 1), led_by(3, GONE, 6, wanted=2)]
    assert plan(members, led) == Plan([Assignment(3, 102, 6)], {})
    assert plan(members, [*led[:2], led_by(4, 1)]).is_empty


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_wish_without_possible_node_is_withdrawn(wanted):
    members = [member(1), member(2, is_draining=True)]
    planned = plan(members, [led_by(7, 1, wanted=wanted)])
    assert planned == Plan([], {7: None})


def test_a_thousand_partitions_are_planned_the_same_everywhere():
    random = Random(SEED)
    members = [member(each) for each in range(5)]
    led = [led_by(number, random.choice([None, 0, 1, 2])) for number in range(1000)]
    planned = plan(members, led)
    assert plan(members[::-1], led) == planned
    assert len(planned.wishes) <= MOVES_AT_ONCE


def test_all_that_a_broker_of_a_thousand_partitions_leaves_is_one_plan():
    members = [member(1), member(2), member(3, is_draining=True)]
    led = [led_by(number, number % 3 + 1) for number in range(1000)]
    planned = plan(members, led)
    assert sorted(planned.wishes) == [each for each in range(1000) if each % 3 == 2]
    assert set(planned.wishes.values()) == {1, 2}


def test_without_levelling_what_is_led_stays_and_what_is_not_is_spread():
    members = [member(1), member(2), member(3, is_draining=True)]
    led = [led_by(number, 1) for number in range(6)]
    rules = Rules(levels=False)
    assert plan(members, led, rules=rules).is_empty
    assert set(plan(members, led).wishes.values()) == {2}
    planned = plan(members, [*led, led_by(6, GONE, 4), led_by(7, 3)], rules=rules)
    assert planned == Plan([Assignment(6, 102, 4)], {7: 2})


def test_a_cordoned_broker_leads_nothing_while_any_other_takes_partitions():
    led = [led_by(1, 1), led_by(2, 2), led_by(3, None)]
    rules = Rules(cordoned=frozenset({1}))
    planned = plan([member(1), member(2)], led, rules=rules)
    assert planned == Plan([Assignment(3, 102, 0)], {1: 2})
    for others in ([], [member(2, is_draining=True)]):
        planned = plan([member(1), *others], led, rules=rules)
        assert Assignment(3, 101, 0) in planned.assignments
        assert 1 not in planned.wishes


def test_where_all_are_cordoned_nothing_goes_back_to_a_broker_that_was_emptied():
    rules = Rules(cordoned=frozenset({1, 2}))
    led = [*(led_by(number, 2) for number in range(4)), led_by(4, 2, pinned=1)]
    for members in (HERE, [*HERE, member(3, is_draining=True)]):
        assert plan(members, led, rules=rules) == NOTHING
        # Partitions without a leader need one.
        assert plan(members, [*led, led_by(5, GONE, 4)], rules=rules).assignments
    leaving = [*led, led_by(5, 3)]
    assert plan([*HERE, member(3, is_draining=True)], leaving, rules=rules) == Plan([], {5: 1})


NOTHING = Plan([], {})
HERE, THERE = [member(1), member(2)], [member(1)]


@pytest.mark.parametrize(
    ("members", "led", "expected"),
    [
        # It stays where it is pinned, and counts: what levels the load is another one.
        (HERE, [led_by(1, 1, pinned=1), led_by(2, 1, pinned=1)], NOTHING),
        (HERE, [led_by(1, 1, pinned=1), led_by(2, 1)], Plan([], {2: 2})),
        (HERE, [*(led_by(each, 1, pinned=1) for each in range(4)), led_by(4, 2)], NOTHING),
        # It returns when the broker is back, be the load level or not; once is enough.
        (HERE, [led_by(1, 1, pinned=2), led_by(2, 2, pinned=2)], Plan([], {1: 2})),
        (HERE, [led_by(1, 1, wanted=2, pinned=2), led_by(2, 2, pinned=2)], NOTHING),
        # The partition has no live leader: its pinned broker leads it, regardless of the wanted
        # one.
        (HERE, [led_by(1, None, 4, pinned=2)], Plan([Assignment(1, 102, 4)], {})),
        (HERE, [led_by(1, GONE, 4, 2, 2)], Plan([Assignment(1, 102, 4)], {})),
        (HERE, [led_by(1, GONE, 4, 1, 2)], Plan([Assignment(1, 102, 4)], {1: None})),
        # While that broker is unavailable or drains, another one leads the partition, and it may
        # move.
        (THERE, [led_by(1, 2, 4, pinned=2)], Plan([Assignment(1, 101, 4)], {})),
        (THERE, [led_by(1, 1, pinned=2)], NOTHING),
        ([member(1), member(2, is_draining=True)], [led_by(1, 2, pinned=2)], Plan([], {1: 1})),
        (HERE, [led_by(1, 1, pinned=9), led_by(2, 1, pinned=1)], Plan([], {1: 2})),
        # From one that drains it goes to where it is pinned.
        ([*HERE, member(3, is_draining=True)], [led_by(1, 3, pinned=2)], Plan([], {1: 2})),
        # A wish that can be met is met first; one that cannot be gives way.
        (HERE, [led_by(1, 1, wanted=2, pinned=1)], NOTHING),
        (HERE, [led_by(1, 1, wanted=9, pinned=2)], Plan([], {1: 2})),
        (HERE, [led_by(1, 1, wanted=9, pinned=1)], Plan([], {1: None})),
    ],
)
def test_pins(members, led, expected):
    assert plan(members, led) == expected


def test_without_levelling_a_pinned_partition_returns_only_when_it_has_to_move():
    rules = Rules(levels=False)
    assert plan(HERE, [led_by(1, 1, pinned=2)], rules=rules) == NOTHING
    assert plan(HERE, [led_by(1, GONE, 4, pinned=2)], rules=rules).assignments
    drained = rules._replace(cordoned=frozenset({1}))
    assert plan(HERE, [led_by(1, 1, pinned=2)], rules=drained) == Plan([], {1: 2})


def test_pinned_partition_leaves_cordoned_broker_until_uncordoned():
    led = [led_by(1, 1, pinned=1), led_by(2, 2)]
    cordoned = Rules(cordoned=frozenset({1}))
    assert plan(HERE, led, rules=cordoned) == Plan([], {1: 2})
    away = [led_by(1, 2, pinned=1), led_by(2, 2)]
    assert plan(HERE, away, rules=cordoned) == NOTHING
    assert plan(HERE, away) == Plan([], {1: 1})


def test_draining_moves_precede_returns_to_pinned_broker():
    members = [*HERE, member(3, is_draining=True)]
    led = [led_by(1, 1, pinned=2), led_by(2, 3), led_by(3, 3, pinned=1)]
    planned = plan(members, led, moves_at_once=2)
    assert planned.wishes.keys() == {2, 3}


def test_returns_to_pinned_broker_respect_moves_limit():
    led = [led_by(number, 1, pinned=2) for number in range(10)]
    moving = [led_by(number, 1, wanted=2, pinned=2) for number in range(10, 13)]
    planned = plan(HERE, [*led, *moving], moves_at_once=5)
    assert planned == Plan([], {0: 2, 1: 2}), "the others are not moved to level the load meanwhile"
    assert plan(HERE, [*moving, *led], moves_at_once=5) == planned
