"""Calls of brokers of an earlier schema return the same rows on this release's schema."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from uuid import uuid4

import psycopg
import pytest

from barnabas.storage.postgresql.schema import migrate, migrations
from barnabas.storage.replicated.log_index import Flush, Item, Lane
from tests.postgresql.whole_index import WholeIndex

NEWEST = migrations()[-1].number
OLDER = (10, *range(14, NEWEST))
"""Schemas whose brokers may run beside this release. Brokers of 11 to 13 were in no release, and
expect other columns of functions of 10."""
DATABASES = count()

_FUNCTIONS = """
SELECT proname::text, pronargs::integer, pronargdefaults::integer,
    proretset, prorettype::regtype::text,
    ARRAY(SELECT format_type(each, NULL) FROM unnest(proargtypes) WITH ORDINALITY AS a (each, at)
        ORDER BY at),
    coalesce(proargnames[:pronargs], '{}'),
    coalesce(ARRAY(
        SELECT each.name || ' ' || format_type(each.type, NULL)
        FROM unnest(proargnames, proallargtypes, proargmodes)
            WITH ORDINALITY AS each (name, type, mode, at)
        WHERE each.mode = 'o' ORDER BY at
    ), '{}') || ARRAY(
        SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = (SELECT typrelid FROM pg_type WHERE oid = prorettype)
            AND attnum > 0 AND NOT attisdropped ORDER BY attnum
    )
FROM pg_proc WHERE pronamespace = 'barnabas'::regnamespace
"""
_COLUMNS = """
SELECT attrelid::regclass::text, attname::text, format_type(atttypid, atttypmod)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'barnabas'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
"""


@pytest.fixture(scope="module")
def schema_of(server):
    """Return the functions and the columns of the schema with a number."""
    found = {}

    def read(number):
        if number not in found:
            name = f"schema_{next(DATABASES)}"
            server.execute(f"CREATE DATABASE {name}")
            address = server.url.removesuffix("postgres") + name
            with psycopg.connect(address, autocommit=True) as connection:
                migrate(connection, [each for each in migrations() if each.number <= number])
                functions = connection.execute(_FUNCTIONS.encode()).fetchall()
                found[number] = functions, set(connection.execute(_COLUMNS.encode()).fetchall())
        return found[number]

    return read


def serves(new, old) -> bool:
    """Return whether a call of one function is one of another, with the same result."""
    name, arguments, _, *result, types, names, columns = old
    new_name, new_arguments, defaults, *new_result, new_types, new_names, new_columns = new
    return (
        new_name == name
        and arguments <= new_arguments <= arguments + defaults
        and (new_types[:arguments], new_names[:arguments]) == (types, names)
        and (new_result, new_columns) == (result, columns)
    )


@pytest.mark.parametrize("number", OLDER)
def test_functions_of_an_older_schema_keep_arguments_and_results(schema_of, number):
    functions, _ = schema_of(NEWEST)
    older, _ = schema_of(number)
    lost = [each for each in older if not any(serves(new, each) for new in functions)]
    assert lost == []


@pytest.mark.parametrize("number", OLDER)
def test_tables_of_an_older_schema_keep_their_columns(schema_of, number):
    _, columns = schema_of(NEWEST)
    _, older = schema_of(number)
    assert older - columns == set()


def test_brokers_of_schema_10_read_a_log_by_their_own_calls(server):
    node, partition = 7000, 7000
    with closing(WholeIndex.open(server.url)) as index:
        session = index.register(uuid4(), node, "broker:9092", 60_000)
        index.add_partition(partition)
        assert index.assign_one(partition, session, -1)
        items = [Item(partition, 0, 0, 3, 0, 4)]
        assert index.commit_flush(session, Flush(Lane.INLINE, 0, items, payload=b"data"))
    head, extent = (partition, session, 0, 0, 3, None, None, None), (0, 3, 0, b"data")
    rows = {
        f"read_extents({partition}, 0, 9, 99)": extent,
        f"read_beginnings('{{{partition}}}', 9, 99)": head + extent,
        f"read_recent_beginnings('{{{partition}}}', 9, 99)": (*head, *extent, False),
        f"read_gained(0, {session}, 9, 9, 99)": head + extent,
    }
    for call, expected in rows.items():
        assert server.execute(f"SELECT * FROM barnabas.{call}") == [expected], call
