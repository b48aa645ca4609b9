-- What keeps the store's copy of a log from growing for ever.
--
-- Rules of these functions, besides those of the flushes:
--
-- 1. What is behind a partition's snapshot may be deleted, or replaced by less: the snapshot says
--    what the records there have left behind (F4). What is not, never is.
-- 2. Extents change, and objects go, under the lock of upkeep, which is taken before all others. So
--    nobody waits for anything while he holds a partition, as before: flushes only add.
-- 3. What is deleted here goes by what is seen here: one write-ahead log has both, in that order. A
--    key in ``dereferenced_keys`` that was read is another matter: what it names lies elsewhere,
--    and is deleted only by who has written something since that has been replicated.
-- 4. The row of a deleted partition stays as long as its topic's tombstone does, that is as long
--    as a broker may still come upon it. Its id is never used again: to whoever names it after
--    that, it is a partition that somebody else leads.

-- What a log's records up to an offset have left behind.
CREATE TABLE barnabas.snapshots (
    partition_id bigint PRIMARY KEY,
    next_offset bigint NOT NULL CHECK (next_offset >= 0),
    producers bytea NOT NULL,
    leader_epochs bytea NOT NULL
);

-- Up to where a partition was looked through for garbage. Not a column of what flushes or leaders
-- write: who collects would have them wait.
CREATE TABLE barnabas.collected (
    partition_id bigint PRIMARY KEY,
    up_to bigint NOT NULL
);

-- Objects elsewhere that nothing lies in any more.
CREATE TABLE barnabas.dereferenced_keys (
    key text PRIMARY KEY,
    dereferenced timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION barnabas.lock_upkeep() RETURNS void LANGUAGE sql AS $$
    -- "upkeep"
    SELECT pg_advisory_xact_lock(129125698594160);
$$;

-- Whether a session that goes on leads a partition in this epoch; if so that stays so until the end
-- of the transaction.
CREATE FUNCTION barnabas.lock_led(of_session bigint, of_partition bigint, of_epoch integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM barnabas.sessions
        WHERE session_id = of_session AND state <> 'fenced' FOR SHARE;
    IF NOT FOUND THEN
        PERFORM barnabas.confirm();
        RETURN false;
    END IF;
    PERFORM 1 FROM barnabas.partitions
        WHERE partition_id = of_partition AND leader_session = of_session
            AND leader_epoch = of_epoch
        FOR UPDATE;
    RETURN FOUND;
END $$;

-- ------------------------------------------------------------------------------------ snapshots

-- Keep a partition's snapshot, in place of an older one. False: somebody else leads it.
CREATE FUNCTION barnabas.put_snapshot(
    of_session bigint, of_partition bigint, of_epoch integer, at_offset bigint,
    new_producers bytea, new_leader_epochs bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT barnabas.lock_led(of_session, of_partition, of_epoch) THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM barnabas.partitions
        WHERE partition_id = of_partition AND log_end >= at_offset;
    IF NOT FOUND THEN
        RAISE 'the snapshot of partition % is of offset %, behind its end', of_partition, at_offset
            USING ERRCODE = 'BB001';
    END IF;
    -- Written, be it unchanged: what is answered is replicated.
    INSERT INTO barnabas.snapshots AS known
        VALUES (of_partition, at_offset, new_producers, new_leader_epochs)
        ON CONFLICT (partition_id) DO UPDATE SET
            next_offset = greatest(known.next_offset, excluded.next_offset),
            producers = CASE WHEN excluded.next_offset > known.next_offset
                THEN excluded.producers ELSE known.producers END,
            leader_epochs = CASE WHEN excluded.next_offset > known.next_offset
                THEN excluded.leader_epochs ELSE known.leader_epochs END;
    RETURN true;
END $$;

-- -------------------------------------------------------------------------------------- garbage

-- Note that an extent less lies in each of these objects, for each time that it is named.
CREATE FUNCTION barnabas.dereference(object_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE barnabas.objects AS object SET live_extents = live_extents - gone.extents
        FROM (
            SELECT object_id, count(*) AS extents
            FROM unnest(object_ids) AS named (object_id) GROUP BY object_id
        ) AS gone
        WHERE object.object_id = gone.object_id;
    INSERT INTO barnabas.dereferenced_keys (key)
        SELECT key FROM barnabas.objects
        WHERE object_id = ANY (object_ids) AND live_extents = 0 AND key IS NOT NULL;
    DELETE FROM barnabas.objects WHERE object_id = ANY (object_ids) AND live_extents = 0;
END $$;

-- Delete up to `most` extents of which nothing will be read again; answers how many. Fewer than
-- `most`: there are no more now.
CREATE FUNCTION barnabas.collect_garbage(most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    deleted integer := 0;
    candidate record;
    wanted integer;
    objects bigint[];
BEGIN
    PERFORM barnabas.lock_upkeep();
    FOR candidate IN
        SELECT * FROM (
            SELECT partition_id, is_deleted, coalesce(up_to, 0) AS up_to,
                CASE WHEN is_deleted THEN log_end
                    ELSE least(log_start, coalesce(next_offset, 0)) END AS bound
            FROM barnabas.partitions
                LEFT JOIN barnabas.snapshots USING (partition_id)
                LEFT JOIN barnabas.collected USING (partition_id)
        ) AS each
        WHERE is_deleted OR up_to < bound ORDER BY partition_id
    LOOP
        wanted := most - deleted;
        WITH gone AS (
            DELETE FROM barnabas.extents WHERE partition_id = candidate.partition_id
                AND base_offset IN (
                    SELECT base_offset FROM barnabas.extents
                    WHERE partition_id = candidate.partition_id
                        AND base_offset < candidate.bound AND next_offset <= candidate.bound
                    ORDER BY base_offset LIMIT wanted
                )
                RETURNING object_id
        ) SELECT coalesce(array_agg(object_id), '{}') INTO objects FROM gone;
        PERFORM barnabas.dereference(objects);
        deleted := deleted + cardinality(objects);
        EXIT WHEN deleted = most;
        IF NOT candidate.is_deleted THEN
            INSERT INTO barnabas.collected VALUES (candidate.partition_id, candidate.bound)
                ON CONFLICT (partition_id) DO UPDATE SET up_to = excluded.up_to;
            CONTINUE;
        END IF;
        DELETE FROM barnabas.snapshots WHERE partition_id = candidate.partition_id;
        DELETE FROM barnabas.collected WHERE partition_id = candidate.partition_id;
        DELETE FROM barnabas.partitions WHERE partition_id = candidate.partition_id
            AND NOT EXISTS (
                SELECT 1 FROM barnabas.topic_partitions
                WHERE partition_id = candidate.partition_id
            );
    END LOOP;
    RETURN deleted;
END $$;

-- ------------------------------------------------------------------------------------ compaction

-- The extents that reach beyond an offset, in order, without their bytes.
CREATE FUNCTION barnabas.read_extent_sizes(
    of_partition bigint, from_offset bigint, most integer,
    OUT base_offset bigint, OUT next_offset bigint, OUT length integer
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT part.base_offset, part.next_offset, part.length
        FROM barnabas.extents AS part
        WHERE part.partition_id = of_partition AND part.next_offset > from_offset
        ORDER BY part.base_offset LIMIT most;
END $$;

-- Put other extents, with their bytes, in the place of those that cover the same offsets. False:
-- somebody else leads the partition, or its log starts behind the first of them by now, so that some
-- may have been collected; nothing has changed then. Done twice, it is done.
CREATE FUNCTION barnabas.replace_extents(
    of_session bigint, of_partition bigint, of_epoch integer,
    bases bigint[], nexts bigint[], epochs integer[], positions integer[], lengths integer[],
    object_payload bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    from_offset bigint := bases[1];
    to_offset bigint := nexts[cardinality(nexts)];
    objects bigint[];
    begins bigint;
    ends bigint;
    new_object bigint;
BEGIN
    PERFORM barnabas.lock_upkeep();
    IF NOT barnabas.lock_led(of_session, of_partition, of_epoch) THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM barnabas.partitions
        WHERE partition_id = of_partition AND log_start > from_offset;
    IF FOUND THEN
        RETURN false;
    END IF;
    IF bases[2:] <> nexts[:cardinality(nexts) - 1] THEN
        RAISE 'extents that do not touch each other' USING ERRCODE = 'BB001';
    END IF;
    PERFORM 1 FROM barnabas.snapshots
        WHERE partition_id = of_partition AND next_offset >= to_offset;
    IF NOT FOUND THEN
        RAISE 'partition % has no snapshot behind offset %', of_partition, to_offset
            USING ERRCODE = 'BB001';
    END IF;
    WITH gone AS (
        DELETE FROM barnabas.extents WHERE partition_id = of_partition
            AND base_offset >= from_offset AND base_offset < to_offset
            RETURNING base_offset, next_offset, object_id
    ) SELECT min(base_offset), max(next_offset), array_agg(object_id) INTO begins, ends, objects
        FROM gone;
    IF (begins, ends) IS DISTINCT FROM (from_offset, to_offset) THEN
        RAISE 'no extents of partition % cover % to %', of_partition, from_offset, to_offset
            USING ERRCODE = 'BB001';
    END IF;
    INSERT INTO barnabas.objects (session_id, payload, live_extents)
        VALUES (of_session, object_payload, cardinality(bases)) RETURNING object_id INTO new_object;
    INSERT INTO barnabas.extents
        (partition_id, base_offset, next_offset, leader_epoch, object_id, position, length)
        SELECT of_partition, base, next, epoch, new_object, at, size
        FROM unnest(bases, nexts, epochs, positions, lengths)
            AS part (base, next, epoch, at, size);
    PERFORM barnabas.dereference(objects);
    RETURN true;
END $$;
