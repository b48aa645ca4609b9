"""Groups of three with every client: no record lost, no committed record read again, no offset
moves back.

All groups share one broker and one load, so that slow steps are awaited once. In each group one
member is paused for longer than its session, one is killed with -9, and one is added under load.
Static members restart. The broker is killed with -9 in the middle, and once more at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.groups.scenario import BROKER_SETTINGS, KINDS, PARTITIONS, Outcome, short_life
from tests.history.model import OK
from tests.interop.administration import create
from tests.products import case

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
STATIC = {"static-classic", "static-consumer"}
NAMES = {
    "fewer": {
        "confluent-cooperative",
        "aiokafka-eager",
        *STATIC,
    },
    "all": {kind.name for kind in KINDS},
}
"""Names of groups; the fewer have each kind of assignment, each protocol, and static members."""


@pytest.fixture(scope="module", params=[case("fewer", in_test=True), case("all", in_test=False)])
def outcome(request, broker_class, tmp_path_factory) -> Iterator[Outcome]:
    """Return the outcome of a short and hard life of the groups."""
    kinds = [kind for kind in KINDS if kind.name in NAMES[request.param]]
    directory = tmp_path_factory.mktemp("groups")
    told: list[str] = []
    with broker_class(directory / "broker", **BROKER_SETTINGS) as broker:
        create(broker.bootstrap_servers, "life", partitions=PARTITIONS)
        try:
            outcome, figures = short_life(broker, "life", kinds, directory, told.append)
        finally:
            print("\n".join(told))
        print("\n".join(figures))
        yield outcome


def test_groups_lose_nothing_and_never_go_back(outcome):
    report, lines = outcome.report()
    assert report.violations == [], "\n".join(lines)
    assert outcome.unexpected_ends() == []


def test_all_records_were_taken(outcome):
    assert {each.outcome for each in outcome.load.operations()} == {OK}
    assert outcome.load.acknowledged > 0


def test_offsets_survive_kill_9(outcome):
    """The history checks that they are the same; here that all exist."""
    assert [each.process for each in outcome.ends] == ["drained", "left", "killed"]
    assert len(outcome.ends[-1].commits) == len(outcome.groups) * PARTITIONS


def test_static_members_restart_unnoticed(outcome):
    """The history checks that the others notice nothing; here that members restarted."""
    assert outcome.undisturbed.keys() == STATIC
