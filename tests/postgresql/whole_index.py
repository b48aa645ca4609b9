"""Both indexes of a cluster on one connection, for tests with a single caller."""

from barnabas.storage.postgresql.postgresql_cluster_index import PostgreSqlClusterIndex
from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from barnabas.storage.replicated.cluster_index import Assignment


class WholeIndex(PostgreSqlLogIndex):
    """A LogIndex that does what a ClusterIndex does, too, but waits for nothing."""

    def __init__(self, primary, warning, objects=None):
        super().__init__(primary, warning, objects)
        self._cluster = PostgreSqlClusterIndex(primary, primary, warning)

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def assign_one(self, partition_id, session, expected_epoch):
        """Whether the session leads the partition now, as asked."""
        return bool(self.assign([Assignment(partition_id, session, expected_epoch)]))
