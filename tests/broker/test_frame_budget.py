"""The budget by itself: senders that are numbers, a clock that is a number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.network.frame_budget import (
    JUDGE_SECONDS,
    STRANGERS_BYTES_MAX,
    STRANGERS_BYTES_MIN,
    Claim,
    FrameBudget,
)
from barnabas.protocol.frame import PIECE_BYTES

MIB = 1 << 20
LIMIT = 256 * MIB


class World:
    """A budget, its clock, and whether it asked to be called again."""

    def __init__(self, limit=LIMIT):
        self.now = 0.0
        self.contested = 0
        self.budget = FrameBudget(limit, lambda: self.now, self._contested)
        self.senders = []

    def _contested(self):
        self.contested += 1

    def sender(self, size, held=0, **more):
        sender = ToySender(self, size, **more)
        self.senders.append(sender)
        sender.begin(held)
        return sender

    def pass_judgement(self):
        """Advance the time to the next check of the budget."""
        self.now += JUDGE_SECONDS
        return self.budget.judge()


class ToySender:
    """One frame of ``size`` bytes."""

    def __init__(self, world, size, *, address="a", stranger=False, may_wait=True):
        self.budget = world.budget
        self.size = size
        self.held = 0
        self.reason = None
        self.done = False
        self.is_stuck = False
        self.claim = Claim(self, address, size, is_stranger=stranger, may_wait=may_wait)

    def begin(self, held):
        self.claim.missing_bytes = self.size
        self.budget.open(self.claim, 0)
        self.send(held)

    @property
    def runs(self):
        return self.claim.runs and self.reason is None

    @property
    def waits(self):
        return not self.claim.runs and self.reason is None and not self.done

    def send(self, size):
        """Send as far as the budget lets it: a piece at a time, as a connection receives."""
        while size and self.runs and self.held < self.size:
            piece = min(size, PIECE_BYTES, self.size - self.held)
            self.held += piece
            size -= piece
            self.budget.arrived(self.claim, self.held, self.size - self.held)

    def finish(self):
        """The frame is whole and has been handled."""
        self.done = True
        self.budget.release(self.claim)

    def resume_receiving(self):
        assert self.claim.runs

    def pause_receiving(self):
        assert not self.claim.runs

    def give_up(self, reason):
        assert not self.done
        self.reason = reason
        self.budget.release(self.claim)


def test_announced_bytes_cost_no_memory():
    world = World()
    for _ in range(10_000):
        world.sender(100 * MIB, 14)
    assert world.budget.used_bytes == 140_000
    good = world.sender(540_000)
    good.send(540_000)
    assert good.held == 540_000
    assert world.contested == 0


def test_silent_holders_are_closed_if_another_client_waits():
    world = World()
    holders = [world.sender(100 * MIB, 80 * MIB) for _ in range(3)]
    assert world.budget.used_bytes >= LIMIT // 2
    good = world.sender(20 * MIB)
    for _ in range(4):
        good.send(20 * MIB)
        world.pass_judgement()
    assert good.held == 20 * MIB
    assert any(holder.reason for holder in holders)
    assert all("too slow while others wait" in h.reason for h in holders if h.reason)


def test_holders_stay_open_without_waiting_clients():
    world = World()
    holder = world.sender(100 * MIB, 90 * MIB)
    for _ in range(100):
        world.pass_judgement()
    assert holder.reason is None


def test_holders_are_checked_again_after_a_blocked_loop():
    world = World()
    holders = [world.sender(100 * MIB, 80 * MIB) for _ in range(3)]
    good = world.sender(20 * MIB)
    good.send(20 * MIB)
    assert world.budget.waiting
    world.now += 0.6  # The loop was held: what the holders have sent meanwhile is not received.
    world.budget.judge()
    assert not any(holder.reason for holder in holders)
    world.pass_judgement()
    assert any(holder.reason for holder in holders)


def test_halves_that_fill_memory_together_let_a_good_one_through():
    world = World()
    for _ in range(1000):
        world.sender(MIB, MIB // 2)
    good = world.sender(540_000)
    rounds = 0
    while good.held < good.size:
        good.send(good.size)
        world.pass_judgement()
        rounds += 1
    assert rounds <= 4
    assert good.reason is None


def test_a_crowd_of_long_ones_that_wait_lets_a_short_one_through():
    """Thousands that sent a little of 100 MB each: none of them runs, together they hold all."""
    world = World()
    crowd = [world.sender(100 * MIB, 60_000) for _ in range(5000)]
    assert sum(sender.waits for sender in crowd) > 1000
    good = world.sender(540_000)
    for _ in range(3):
        good.send(540_000)
        world.pass_judgement()
    assert good.held == good.size


def test_drips_make_room_too():
    world = World()
    drips = [world.sender(100 * MIB, 50 * MIB) for _ in range(5)]
    good = world.sender(60 * MIB)
    for _ in range(8):
        for drip in drips:
            drip.send(10_000)  # 40 KB/s
        good.send(60 * MIB)
        world.pass_judgement()
    assert good.held == good.size


def test_a_slow_sender_that_is_nearly_done_may_end():
    world = World()
    nearly = world.sender(40 * MIB, 40 * MIB - 100_000)
    others = [world.sender(100 * MIB, 90 * MIB) for _ in range(2)]
    assert any(other.waits for other in others)
    for _ in range(8):
        nearly.send(10_000)
        for other in others:
            other.send(MIB)
        world.pass_judgement()
    assert nearly.reason is None


def test_shorter_frames_go_first():
    world = World()
    runner = world.sender(100 * MIB, 99 * MIB)
    second = world.sender(100 * MIB, 99 * MIB)
    third = world.sender(100 * MIB, 20 * MIB)
    assert third.waits
    short = world.sender(MIB, 10)
    assert short.runs
    runner.send(MIB)
    runner.finish()
    assert second.runs


def test_small_frames_never_wait_and_the_limit_is_hard():
    world = World()
    small = [world.sender(250_000, 249_000, may_wait=False) for _ in range(10_000)]
    assert world.budget.used_bytes <= LIMIT
    assert not any(sender.waits for sender in small)
    closed = [number for number, sender in enumerate(small) if sender.reason]
    assert closed == list(range(len(closed))), "the longest silent go first"
    assert "memory has reached its limit" in small[0].reason


def test_a_frame_larger_than_the_limit_comes_through_alone():
    world = World(limit=MIB)
    large = world.sender(100 * MIB)
    large.send(100 * MIB)
    assert large.held == large.size
    large.finish()
    assert world.budget.used_bytes == 0


def test_longest_waiting_sender_is_served_first():
    world = World()
    busy = [world.sender(3 * MIB, 2 * MIB) for _ in range(60)]
    giant = world.sender(100 * MIB, 10)
    waited = 0
    while giant.waits:
        world.pass_judgement()
        for number, sender in enumerate(busy):  # Always new ones, shorter and fast.
            sender.send(MIB)
            sender.finish()
            busy[number] = world.sender(3 * MIB, 2 * MIB)
        waited += 1
        assert waited < 10
    assert waited >= 4
    giant.send(100 * MIB)
    assert giant.held == giant.size


def test_an_address_may_not_hold_more_than_its_share_of_what_others_wait_for():
    world = World()
    busy = [world.sender(60 * MIB, 50 * MIB, address="greedy") for _ in range(6)]
    other = world.sender(90 * MIB, address="modest")
    for _ in range(12):
        for sender in busy:
            sender.send(300_000)  # Faster than slow.
        other.send(90 * MIB)
        world.pass_judgement()
    assert other.held == other.size
    assert any("share" in sender.reason for sender in busy if sender.reason)


def test_strangers_together_hold_little():
    world = World()
    strangers = [world.sender(MIB, MIB - 1, stranger=True) for _ in range(1000)]
    assert world.budget.used_bytes <= 33 * MIB
    known = world.sender(540_000)
    known.send(540_000)
    assert known.held == known.size
    first_request = world.sender(MIB, stranger=True)
    for _ in range(4):
        first_request.send(MIB)
        world.pass_judgement()
    assert first_request.held == first_request.size
    assert sum(s.held for s in strangers if s.reason is None) <= 33 * MIB
    assert World(1 << 40).budget._strangers.limit_bytes == STRANGERS_BYTES_MAX
    assert World(8 * MIB).budget._strangers.limit_bytes == STRANGERS_BYTES_MIN
    assert World(MIB).budget._strangers.limit_bytes == MIB


def test_whole_requests_that_wait_are_counted():
    world = World()
    assert world.budget.receive_most(0, is_served=False) == PIECE_BYTES
    world.budget.read_ahead(LIMIT // 8 + 1)
    assert world.budget.careful
    assert world.budget.receive_most(0, is_served=False) < 10_000
    assert world.budget.receive_most(0, is_served=True) < 20_000
    assert world.budget.receive_most(4, is_served=True) == PIECE_BYTES
    world.budget.read_ahead(-LIMIT // 8 - 1)
    assert not world.budget.careful


def test_a_frame_that_its_client_keeps_from_being_handled_makes_room():
    world = World()
    stuck = [world.sender(70 * MIB, 70 * MIB) for _ in range(2)]
    other = world.sender(100 * MIB, 10)
    assert other.waits
    world.pass_judgement()
    assert other.waits
    assert not any(s.reason for s in stuck), "the broker has not handled them yet"
    for sender in stuck:
        sender.is_stuck = True
    world.pass_judgement()
    assert other.runs


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "send", "judge", "leave"]),
        st.integers(0, 30),
        st.integers(1, 5 * MIB),
        st.sampled_from("abc"),
        st.booleans(),
    ),
    max_size=80,
)


@settings(max_examples=300)
@given(steps=STEPS, limit=st.sampled_from([MIB, 4 * MIB, 20 * MIB]))
def test_memory_is_limited_and_every_frame_ends(steps, limit):
    """Memory exceeds the limit by at most one arrival and one frame; no client waits forever."""
    world = World(limit)
    budget = world.budget
    largest = 0
    for action, number, size, address, flag in steps:
        open_senders = [s for s in world.senders if not s.done and s.reason is None]
        if action == "open":
            small = size < 250_000
            sender = world.sender(size, address=address, stranger=flag, may_wait=not small)
            largest = max(largest, size)
            sender.send(1 + size // (number + 1))
        elif action == "judge":
            world.pass_judgement()
        elif open_senders:
            sender = open_senders[number % len(open_senders)]
            if action == "send":
                sender.send(size)
                if sender.held == sender.size and flag:
                    sender.finish()
            else:
                sender.finish()
        assert budget.used_bytes <= limit + PIECE_BYTES + largest
        check_sums(world)
    # From now on the honest ones send what they may, the others nothing at all.
    for _ in range(400):
        left = [s for s in world.senders if not s.done and s.reason is None]
        if not any(sender.waits for sender in left):
            break
        for number, sender in enumerate(left):
            if number % 2:
                sender.send(256 * 1024)
            if sender.held == sender.size:
                sender.finish()
        world.pass_judgement()
        check_sums(world)
    assert not any(s.waits for s in world.senders)
    for sender in world.senders:
        if not sender.done and sender.reason is None:
            sender.finish()
    assert budget.used_bytes == budget.waiting == 0
    assert not any(budget._pool.missing)
    assert not any(budget._strangers.missing)
    assert not budget.careful


def check_sums(world):
    """Compare the running sums with the sums of the claims."""
    budget = world.budget
    claims = [s.claim for s in world.senders if not s.done and s.reason is None]
    assert set(claims) == set(budget._claims)
    assert budget._pool.used_bytes == sum(claim.counted_bytes for claim in claims)
    running = [c for c in claims if c.runs and not c.leads]
    assert sum(budget._pool.missing) == sum(c.missing_bytes for c in running)
    assert budget.waiting == sum(not c.runs for c in claims)
    assert budget.used_bytes == sum(claim.held_bytes for claim in claims)
    if budget.waiting:
        assert any(claim.runs and claim.may_wait for claim in claims), "somebody goes on"
