-- Reading as brokers of schema 10 do it, which run on while a later release migrates.
--
-- Rules of these functions:
--
-- 1. A function keeps its arguments and the columns of its result for as long as brokers of an earlier
--    release may run: they take columns by their place. What needs others has another name.
-- 2. These brokers know no object store, and none has begun while one of them lives.

-- What 0011 has changed gets names of its own: the places of the bytes come with the extents.
ALTER TYPE barnabas.beginning RENAME TO placed_beginning;
ALTER TYPE barnabas.recent_beginning RENAME TO recent_placed_beginning;
ALTER FUNCTION barnabas.read_extents(bigint, bigint, integer, bigint)
    RENAME TO read_placed_extents;
ALTER FUNCTION barnabas.read_beginnings(bigint[], integer, bigint)
    RENAME TO read_placed_beginnings;
ALTER FUNCTION barnabas.read_recent_beginnings(bigint[], integer, bigint)
    RENAME TO read_recent_placed_beginnings;
ALTER FUNCTION barnabas.read_gained(bigint, bigint, integer, integer, bigint)
    RENAME TO read_placed_gained;
DO $do$
DECLARE
    before text := pg_get_functiondef('barnabas.read_placed_gained'::regproc);
    after text := replace(before, 'barnabas.read_beginnings', 'barnabas.read_placed_beginnings');
BEGIN
    ASSERT after <> before, 'read_gained is not what this migration changes';
    EXECUTE after;
END $do$;

-- As in 0007 and 0009.
CREATE TYPE barnabas.beginning AS (
    partition_id bigint, leader_session bigint, leader_epoch integer,
    log_start bigint, log_end bigint,
    snapshot_offset bigint, producers bytea, leader_epochs bytea,
    base_offset bigint, next_offset bigint, extent_epoch integer, data bytea
);
CREATE TYPE barnabas.recent_beginning AS (
    partition_id bigint, leader_session bigint, leader_epoch integer,
    log_start bigint, log_end bigint,
    snapshot_offset bigint, producers bytea, leader_epochs bytea,
    base_offset bigint, next_offset bigint, extent_epoch integer, data bytea,
    is_recent boolean
);

-- The same as the function with `placed` in its name, without places.
CREATE FUNCTION barnabas.read_extents(
    of_partition bigint, from_offset bigint, most integer, most_bytes bigint,
    OUT base_offset bigint, OUT next_offset bigint, OUT leader_epoch integer, OUT data bytea
) RETURNS SETOF record LANGUAGE sql AS $$
    SELECT base_offset, next_offset, leader_epoch, data
        FROM barnabas.read_placed_extents(of_partition, from_offset, most, most_bytes);
$$;

CREATE FUNCTION barnabas.read_beginnings(of_partitions bigint[], most integer, most_bytes bigint)
RETURNS SETOF barnabas.beginning LANGUAGE sql AS $$
    SELECT partition_id, leader_session, leader_epoch, log_start, log_end,
        snapshot_offset, producers, leader_epochs,
        base_offset, next_offset, extent_epoch, data
        FROM barnabas.read_placed_beginnings(of_partitions, most, most_bytes);
$$;

CREATE FUNCTION barnabas.read_recent_beginnings(
    of_partitions bigint[], most integer, most_bytes bigint
) RETURNS SETOF barnabas.recent_beginning LANGUAGE sql AS $$
    SELECT partition_id, leader_session, leader_epoch, log_start, log_end,
        snapshot_offset, producers, leader_epochs,
        base_offset, next_offset, extent_epoch, data, is_recent
        FROM barnabas.read_recent_placed_beginnings(of_partitions, most, most_bytes);
$$;

CREATE FUNCTION barnabas.read_gained(
    since bigint, of_session bigint, most_logs integer, most integer, most_bytes bigint
) RETURNS SETOF barnabas.beginning LANGUAGE sql AS $$
    SELECT partition_id, leader_session, leader_epoch, log_start, log_end,
        snapshot_offset, producers, leader_epochs,
        base_offset, next_offset, extent_epoch, data
        FROM barnabas.read_placed_gained(since, of_session, most_logs, most, most_bytes);
$$;
