"""Rates as Kafka counts them, the quota that applies to a client, and shared quotas."""

import pytest

from barnabas.broker.metadata.changes import Changes
from barnabas.broker.metadata.quota_rules import QuotaRules
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.quotas import quotas as module
from barnabas.broker.security.quotas.quota_limits import (
    CLIENT_ID,
    CONSUMER_BYTES,
    CONTROLLER_MUTATIONS,
    IP,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
    USER,
    Limit,
    QuotaLimits,
    entity,
    entity_of,
    entity_text,
)
from barnabas.broker.security.quotas.quota_rates import Rate, TokenBucket, Windows
from barnabas.broker.security.quotas.quotas import Quotas
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore

KEYS = (PRODUCER_BYTES, CONSUMER_BYTES, REQUEST_PERCENTAGE, CONTROLLER_MUTATIONS)


# ------------------------------------------------------------------------------------------ rates


def test_a_burst_of_ten_windows_is_free_and_more_of_it_waits():
    # Measured with Apache Kafka 4.3.0: 100 kB/s took 5 x 200 kB at once, then 2, 4 and 6 s.
    rate = Rate(Windows())
    throttled = []
    for _ in range(8):
        rate.add(200_000, 100.0)
        throttled.append(round(rate.throttle_s(100_000, 100.0), 6))
    assert throttled == [0, 0, 0, 0, 0, 2, 4, 6]


def test_a_rate_below_its_limit_never_waits():
    rate = Rate(Windows())
    for second in range(100):
        # At the beginning of a second there are eleven windows in ten seconds, as in Kafka.
        rate.add(90_000, second)
        assert rate.throttle_s(100_000, second) == 0


def test_windows_that_are_over_do_not_count():
    rate = Rate(Windows(3, 1))
    rate.add(1000, 0.0)
    assert not rate.is_idle(2.9)
    assert rate.is_idle(3.0)
    assert rate.throttle_s(1, 3.0) == 0


def test_rate_excludes_undone_amounts():
    rate = Rate(Windows())
    rate.add(5_000_000, 0.0)
    rate.add(-5_000_000, 0.0)
    assert rate.throttle_s(100, 0.0) == 0


def test_tokens_come_back_at_the_rate_up_to_those_of_all_windows():
    bucket = TokenBucket(Windows())
    bucket.take(11, 1.0, 0.0)
    assert bucket.throttle_s(1.0, 0.0) == 0
    bucket.take(9, 1.0, 0.0)
    assert bucket.throttle_s(1.0, 0.0) == 9
    assert bucket.throttle_s(1.0, 4.0) == 5
    assert not bucket.is_idle(1.0, 19.0)
    assert bucket.is_idle(1.0, 20.0)


# ----------------------------------------------------------------------------------------- limits

ORDER = [
    ({USER: "u", CLIENT_ID: "c"}, ("u", "c")),
    ({USER: "u", CLIENT_ID: None}, ("u", "c")),
    ({USER: "u"}, ("u", "")),
    ({USER: None, CLIENT_ID: "c"}, ("u", "c")),
    ({USER: None, CLIENT_ID: None}, ("u", "c")),
    ({USER: None}, ("u", "")),
    ({CLIENT_ID: "c"}, ("", "c")),
    ({CLIENT_ID: None}, ("", "c")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_closest_limit_counts(first):
    limits = QuotaLimits(
        (entity(parts), PRODUCER_BYTES, float(number))
        for number, (parts, _) in enumerate(ORDER)
        if number >= first
    )
    assert limits.find(PRODUCER_BYTES, "u", "c") == Limit(float(first), *ORDER[first][1])
    assert limits.find(CONSUMER_BYTES, "u", "c") is None


def test_others_have_other_limits():
    limits = QuotaLimits([(entity({USER: "u"}), PRODUCER_BYTES, 1.0)])
    assert limits.find(PRODUCER_BYTES, "v", "c") is None
    assert QuotaLimits().find(PRODUCER_BYTES, "u", "c") is None


def test_a_limit_of_addresses():
    limits = QuotaLimits([(entity({IP: "10.0.0.1"}), "connection_creation_rate", 2.0)])
    assert limits.of_address("10.0.0.1") == 2.0
    assert limits.of_address("10.0.0.2") is None
    limits.set(entity({IP: None}), "connection_creation_rate", 5.0)
    assert limits.of_address("10.0.0.2") == 5.0


@pytest.mark.parametrize("parts", [{USER: "a=b,c", CLIENT_ID: None}, {USER: ""}, {IP: "::1"}])
def test_entities_are_stored_as_one_text(parts):
    assert entity_of(entity_text(entity(parts))) == entity(parts)


# ---------------------------------------------------------------------------------------- counting


@pytest.fixture
def store():
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="x" * 22)
    yield store
    store.close()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def quotas(clock):
    return Quotas(clock, Generation())


def limited(quotas, parts, key=PRODUCER_BYTES, value=100.0):
    quotas.change([(entity(parts), key, value)])


def test_client_without_quota_is_not_counted(quotas):
    assert quotas.client_quota("u", "c") is None
    limited(quotas, {USER: "other"})
    assert quotas.client_quota("u", "c") is None


def test_connections_of_a_user_share_its_limit(quotas):
    limited(quotas, {USER: "u"})
    one, other = quotas.client_quota("u", "c"), quotas.client_quota("u", "d")
    assert one.produced(1000) == 0
    assert other.produced(500) == pytest.approx(5000)
    assert quotas.client_quota("u", "e").produced(0) == pytest.approx(5000)


def test_clients_of_a_default_limit_each_have_their_own(quotas):
    limited(quotas, {USER: None})
    assert quotas.client_quota("u", "c").produced(1500) == pytest.approx(5000)
    assert quotas.client_quota("v", "c").produced(500) == 0


def test_a_debt_outlasts_its_connection(quotas, clock):
    limited(quotas, {USER: "u"})
    quota = quotas.client_quota("u", "c")
    quota.produced(2000)
    del quota
    assert quotas.client_quota("u", "c").produced(0) == pytest.approx(10_000)
    clock.advance(seconds=12)
    assert quotas.client_quota("u", "c").produced(0) == 0


def test_an_answer_beyond_the_limit_is_not_counted(quotas):
    limited(quotas, {USER: "u"}, CONSUMER_BYTES)
    quota = quotas.client_quota("u", "c")
    assert quota.consumed(900) == (True, 0)
    assert quota.consumed(600) == (False, pytest.approx(5000))
    assert quota.consumed(100) == (True, 0)
    assert quota.fetch_bytes_max(5000) == 1000
    assert quota.fetch_bytes_max(500) == 500


def test_a_batch_that_never_fits_leaves_after_silence(quotas, clock):
    limited(quotas, {USER: "u"}, CONSUMER_BYTES)
    quota = quotas.client_quota("u", "c")
    assert quota.consumed(1_000_000) == (True, 10_000)
    clock.advance(seconds=10)
    assert quota.consumed(1_000_000)[0] is False
    clock.advance(seconds=1)
    assert quota.consumed(1_000_000) == (True, 10_000)


def test_time_is_a_share_of_the_loop_and_waits_a_second_at_most(quotas):
    limited(quotas, {USER: "u"}, REQUEST_PERCENTAGE, 1.0)
    quota = quotas.client_quota("u", "c")
    assert quota.used(50_000_000) == 0  # 50 ms: all that ten seconds allow are 100.
    assert quota.used(50_000_000) == 0
    assert quota.used(10_000_000) == pytest.approx(1000)
    assert quota.produced(1 << 40) == 0


def test_changes_are_refused_or_slowed(quotas):
    limited(quotas, {USER: "u"}, CONTROLLER_MUTATIONS, 1.0)
    quota = quotas.client_quota("u", "c")
    assert quota.mutated(20, strict=True) == pytest.approx(9000)
    assert quota.mutated(1, strict=True) is None
    assert quota.mutated(1, strict=False) == pytest.approx(10_000)
    assert quota.mutations_owed_ms() == pytest.approx(10_000)


async def test_limits_are_stored_and_every_change_is_news(quotas, store, clock):
    rules = QuotaRules(quotas, store, Changes(store, pytest.fail))
    before = quotas._generation.number
    await rules.change([(entity({USER: "u", CLIENT_ID: None}), PRODUCER_BYTES, 100.0)])
    await rules.change([(entity({USER: "u"}), CONSUMER_BYTES, 100.0)])
    assert quotas._generation.number == before + 2
    await rules.change([(entity({USER: "u"}), CONSUMER_BYTES, None)])
    again = Quotas(clock, Generation())
    again.load(store.load().quotas)
    left = {entity({USER: "u", CLIENT_ID: None}): {PRODUCER_BYTES: 100.0}}
    assert dict(again.limits.items()) == dict(quotas.limits.items()) == left


def test_counters_are_bounded_and_those_that_count_stay(quotas, clock, monkeypatch):
    monkeypatch.setattr(module, "COUNTERS_MAX", 3)
    limited(quotas, {CLIENT_ID: None})
    for number in range(3):
        quotas.client_quota("u", f"c{number}").produced(2000)
    # There is no room: new ids share one counter, however many they are.
    assert quotas.client_quota("u", "new").produced(2000) == pytest.approx(10_000)
    assert quotas.client_quota("u", "newer").produced(0) == pytest.approx(10_000)
    assert quotas.client_quota("u", "c1").produced(0) == pytest.approx(10_000)
    assert len(quotas._rates) <= 4
    clock.advance(seconds=20)
    assert quotas.client_quota("u", "newest").produced(0) == 0
    assert len(quotas._rates) <= 2
