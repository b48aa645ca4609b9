"""The function that commits flushes, with one of its rules taken out."""

from __future__ import annotations

from barnabas.storage.postgresql.schema import migrations
from tests.counterparts.postgresql_servers import Server

WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def break_flush(server: Server, changes: dict[str, str]) -> None:
    """Replace parts of the function that commits flushes; without changes restore it."""
    (statements,) = (each.statements for each in migrations() if each.name == "flushes")
    start = statements.index("CREATE FUNCTION barnabas.commit_flush")
    function = statements[start : statements.index("END $$;", start)] + "END $$;"
    for text, instead in {"CREATE FUNCTION": "CREATE OR REPLACE FUNCTION", **changes}.items():
        assert function.count(text) == 1
        function = function.replace(text, instead)
    server.execute(function)


# A row that is locked is a write, too.
ANSWER_FROM_A_READ = {
    "lane = of_lane FOR UPDATE;": "lane = of_lane;",
    """UPDATE barnabas.lanes SET next_flush = counter
            WHERE session_id = of_session AND lane = of_lane;
        outcome := 'committed';""": "outcome := 'committed';",
}
NO_COMPARE = {"IF wrong IS NOT NULL THEN\n        -- The": "IF false THEN\n        -- The"}
