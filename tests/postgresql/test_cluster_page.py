"""The role that docs/cluster.md makes is all that a broker needs."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from tests.counterparts.postgresql_servers import HOST

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_the_role_of_the_brokers(server):
    statements = re.search(
        r"^CREATE ROLE barnabas.*?(?=^```)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert statements is not None
    for statement in statements[0].split(";"):
        if statement.strip():
            server.execute(statement)
    address = f"postgresql://barnabas@{HOST}:{server.port}/barnabas"
    store = PostgreSqlMetaStore.open(address, node_id=1, new_cluster_id="of the page")
    assert store.identity.cluster_id == "of the page"
    store.create_topic("t", bytes(16), 1, {})
    store.close()
    (can,) = server.execute(
        "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication FROM pg_roles"
        " WHERE rolname = 'barnabas'"
    )
    assert not any(can)
