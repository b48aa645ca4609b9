"""The function that commits flushes, with one of its rules taken out."""

from __future__ import annotations

from barnabas.storage.postgresql.schema import migrations
from tests.counterparts.postgresql_servers import Server

WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def break_flush(server: Server, changes: dict[str, str]) -> None:
    """Replace parts of the function that commits flushes; without changes restore it."""
    found = {each.name: each.statements for each in migrations()}
    server.execute(_from(found["flushes"], "CREATE FUNCTION barnabas.commit_flush", "END $$;"))
    server.execute(_from(found["uploads"], "DO $do$", "END $do$;"))
    ((function,),) = server.execute("SELECT pg_get_functiondef('barnabas.commit_flush'::regproc)")
    for text, instead in changes.items():
        assert function.count(text) == 1
        function = function.replace(text, instead)
    server.execute(function)


def _from(statements: str, first: str, last: str) -> str:
    """Return one statement of a migration, which replaces what exists."""
    start = statements.index(first)
    statement = statements[start : statements.index(last, start)] + last
    return statement.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


# A row that is locked is a write, too.
ANSWER_FROM_A_READ = {
    "lane = of_lane FOR UPDATE;": "lane = of_lane;",
    """UPDATE barnabas.lanes SET next_flush = counter
            WHERE session_id = of_session AND lane = of_lane;
        outcome := 'committed';""": "outcome := 'committed';",
}
NO_COMPARE = {"IF wrong IS NOT NULL THEN\n        -- The": "IF false THEN\n        -- The"}
