"""Brokers continue while a newer release has changed the schema under them."""

from __future__ import annotations

from collections import Counter

import pytest

from barnabas.storage.postgresql.schema import Migration, migrate, migrations
from tests.counterparts.broker_process import BrokerDied
from tests.postgresql.brokers import Member, running
from tests.postgresql.test_cluster import (
    PARTITIONS,
    a_transaction,
    all_know,
    make_topic,
    produced_and_consumed,
    values_of,
)
from tests.products import for_the_night

NEWER = Migration(
    migrations()[-1].number + 1,
    "newer",
    """
    ALTER TABLE barnabas.sessions ADD COLUMN region text NOT NULL DEFAULT 'somewhere';
    ALTER TABLE barnabas.partitions ADD COLUMN weight integer;
    CREATE TABLE barnabas.regions (name text PRIMARY KEY);
    """,
)
"""Changes of the tables by the next release that this release must tolerate."""
REFUSED = f"the database has version {NEWER.number} of the schema, this release knows"


@for_the_night(
    beside="tests/postgresql/test_base.py::test_a_newer_release_migrates_while_an_older_one_runs"
)
def test_brokers_continue_after_a_newer_release_changed_the_schema(server, tmp_path):
    members = [Member(tmp_path / f"broker-{number}", server.url) for number in range(3)]
    with running(members):
        make_topic(members[0])
        all_know(members, len(members))
        with server.connect() as connection:
            assert migrate(connection, [*migrations(), NEWER]) == [NEWER]
        expected = produced_and_consumed(members)
        # They reconnect, to a schema on which this release would not start.
        end_all_connections(server)
        expected += a_transaction(members)
        # A broker that ended does not start again, and the others take over.
        members[2].kill()
        with pytest.raises(BrokerDied, match=REFUSED):
            members[2].restart()
        assert values_of(members[:2]) == expected
        assert expected == Counter(dict.fromkeys(expected, 1))
        assert len(expected) == 60 + 2 * PARTITIONS


def end_all_connections(server) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'barnabas'"
    )
