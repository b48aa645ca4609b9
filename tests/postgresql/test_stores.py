"""Stores with threads, on an index in PostgreSQL: moves, sessions that end, connections that do."""

import pytest

from tests.counterparts.postgresql_servers import Pair
from tests.postgresql.whole_index import WholeIndex
from tests.products import case
from tests.real.storage.flush_cluster import FlushCluster
from tests.seeds import SEED

PATIENCE_S = 0.5
STEPS = 80
TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'barnabas'
"""


class Way(WholeIndex):
    """One that only the server cuts."""

    def mend(self):
        """Return at once: the pair recovers by itself."""


class PostgreSqlCluster(FlushCluster):
    """A cluster whose index is a primary with a standby."""

    events = ("move", "fence", "terminate", "delete_records", "keep_snapshots", "collect_garbage")

    def __init__(self, seed, path, pair):
        self.pair = pair
        super().__init__(seed, path, WholeIndex.open(pair.url, patience_s=PATIENCE_S))

    def way(self, node):
        return Way.open(self.pair.url, patience_s=PATIENCE_S)

    def terminate(self, _node):
        self.pair.primary.execute(TERMINATE)


@pytest.mark.parametrize("number", [case(0, in_test=True), case(1, in_test=False)])
async def test_acknowledged_batches_exist_once_after_random_faults(number, tmp_path):
    with Pair() as pair:
        cluster = PostgreSqlCluster(SEED + number, tmp_path, pair)
        try:
            await cluster.run(STEPS)
        finally:
            cluster.index.close()
        assert cluster.refusals, "nothing has happened"
