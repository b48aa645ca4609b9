-- Packing: the space of deleted extents comes back while other extents of their payload live on.
--
-- Rules of these functions, besides those of the flushes and of upkeep:
--
-- 1. Packing copies the bytes of extents to another payload. Partition, offsets, epoch, length and
--    bytes of an extent stay, so every read returns the same before and after it (F12). Therefore
--    packing needs no leader and no snapshot, it locks no partition and no session, and a call that
--    arrives late does no harm.
-- 2. A payload that packing has written has extents of one partition, which retention and
--    compaction delete together. So most bytes are copied once.
-- 3. A payload that PostgreSQL cannot read stays, and is tried again an hour later. Other payloads do
--    not wait for it.

-- Bytes of deleted extents, and since when they are so many that the payload is to be packed. The
-- second is NULL if they are few.
ALTER TABLE barnabas.objects
    ADD COLUMN dead_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN sparse_since timestamptz;

-- An extent is found by the payload that has it.
CREATE INDEX extents_of_an_object ON barnabas.extents (object_id);

-- More than a quarter of a payload is dead: the store has at most 4/3 of what can be read, and of
-- what dies within the time that packing waits.
CREATE FUNCTION barnabas.is_sparse(dead_bytes bigint, size_bytes integer) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT dead_bytes * 4 > size_bytes;
$$;

UPDATE barnabas.objects AS object SET
    dead_bytes = octet_length(object.payload) - living.bytes,
    sparse_since = CASE
        WHEN barnabas.is_sparse(
            octet_length(object.payload) - living.bytes, octet_length(object.payload)
        ) THEN clock_timestamp() END
    FROM (
        SELECT object_id, sum(length)::bigint AS bytes FROM barnabas.extents GROUP BY object_id
    ) AS living
    WHERE living.object_id = object.object_id AND octet_length(object.payload) > living.bytes;

CREATE INDEX objects_with_dead_bytes ON barnabas.objects (sparse_since) INCLUDE (dead_bytes)
    WHERE dead_bytes > 0;

-- Dead rows are vacuumed away before they are many: PostgreSQL's default is a fifth of a table.
ALTER TABLE barnabas.objects SET (
    autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05
);

-- -------------------------------------------------------------------------------------- garbage

DROP FUNCTION barnabas.dereference(bigint[]);

-- Note that extents of these lengths lie no more in these objects, each named once for each extent.
CREATE FUNCTION barnabas.dereference(object_ids bigint[], lengths integer[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        SELECT object_id, count(*) AS extents
        FROM unnest(object_ids) AS named (object_id) GROUP BY object_id
    ), deleted AS (
        DELETE FROM barnabas.objects AS object USING gone
            WHERE object.object_id = gone.object_id AND object.live_extents = gone.extents
            RETURNING object.key
    )
    INSERT INTO barnabas.dereferenced_keys (key)
        SELECT deleted.key FROM deleted WHERE deleted.key IS NOT NULL;
    UPDATE barnabas.objects AS object SET
        live_extents = live_extents - gone.extents,
        dead_bytes = dead_bytes + gone.bytes,
        sparse_since = coalesce(sparse_since, CASE
            WHEN barnabas.is_sparse(dead_bytes + gone.bytes, octet_length(payload))
            THEN clock_timestamp() END)
        FROM (
            SELECT object_id, count(*) AS extents, sum(length)::bigint AS bytes
            FROM unnest(object_ids, lengths) AS named (object_id, length) GROUP BY object_id
        ) AS gone
        WHERE object.object_id = gone.object_id;
END $$;

-- As before; extents are dereferenced with their lengths.
CREATE OR REPLACE FUNCTION barnabas.collect_garbage(most integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    deleted integer := 0;
    candidate record;
    wanted integer;
    objects bigint[];
    sizes integer[];
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
                RETURNING object_id, length
        ) SELECT coalesce(array_agg(object_id), '{}'), coalesce(array_agg(length), '{}')
            INTO objects, sizes FROM gone;
        PERFORM barnabas.dereference(objects, sizes);
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

-- As before; extents are dereferenced with their lengths.
CREATE OR REPLACE FUNCTION barnabas.replace_extents(
    of_session bigint, of_partition bigint, of_epoch integer,
    bases bigint[], nexts bigint[], epochs integer[], positions integer[], lengths integer[],
    object_payload bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    from_offset bigint := bases[1];
    to_offset bigint := nexts[cardinality(nexts)];
    objects bigint[];
    sizes integer[];
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
            RETURNING base_offset, next_offset, object_id, length
    ) SELECT min(base_offset), max(next_offset), array_agg(object_id), array_agg(length)
        INTO begins, ends, objects, sizes FROM gone;
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
    PERFORM barnabas.dereference(objects, sizes);
    RETURN true;
END $$;

-- -------------------------------------------------------------------------------------- packing

-- Payloads that have been sparse since `bound`: the one that has been so for longest, and as many more
-- as have up to `most` living extents and `most_bytes` of them together. NULL if there is none.
CREATE FUNCTION barnabas.choose_sparse(most integer, most_bytes bigint, bound timestamptz)
RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(object_id) FROM (
        SELECT object_id, row_number() OVER by_age AS place,
            sum(live_extents) OVER by_age AS extents_so_far,
            sum(octet_length(payload) - dead_bytes) OVER by_age AS bytes_so_far
        FROM (
            SELECT * FROM barnabas.objects
            WHERE dead_bytes > 0 AND sparse_since <= bound ORDER BY sparse_since LIMIT most
        ) AS sparse
        WINDOW by_age AS (ORDER BY sparse_since, object_id)
    ) AS aged
    WHERE place = 1 OR (extents_so_far <= most AND bytes_so_far <= most_bytes);
$$;

-- Copy all extents of payloads to payloads of one partition each, of about 1 MiB, and delete the former.
CREATE FUNCTION barnabas.pack_objects(object_ids bigint[], OUT extents bigint, OUT bytes bigint)
LANGUAGE plpgsql AS $$
DECLARE
    copied bigint;
BEGIN
    WITH placed AS (
        SELECT extent.*,
            (sum(length) OVER (PARTITION BY partition_id ORDER BY base_offset) - length) / 1048576
                AS part
        FROM barnabas.extents AS extent WHERE extent.object_id = ANY (object_ids)
    ), moved AS MATERIALIZED (
        SELECT placed.*,
            sum(length) OVER (PARTITION BY partition_id, part ORDER BY base_offset) - length
                AS new_position
        FROM placed
    ), packed AS MATERIALIZED (
        SELECT partition_id, part, count(*) AS extents, min(session_id) AS session_id,
            nextval(pg_get_serial_sequence('barnabas.objects', 'object_id')) AS new_object,
            string_agg(
                substring(object.payload FROM position + 1 FOR length), '' ORDER BY base_offset
            ) AS data
        FROM moved JOIN barnabas.objects AS object USING (object_id)
        GROUP BY partition_id, part
    ), added AS (
        INSERT INTO barnabas.objects (object_id, session_id, payload, live_extents)
            OVERRIDING SYSTEM VALUE
            SELECT new_object, session_id, data, packed.extents FROM packed
            RETURNING octet_length(payload) AS size
    ), changed AS (
        UPDATE barnabas.extents AS extent
            SET object_id = packed.new_object, position = moved.new_position
            FROM moved JOIN packed USING (partition_id, part)
            WHERE extent.partition_id = moved.partition_id
                AND extent.base_offset = moved.base_offset
            RETURNING extent.length
    ), deleted AS (
        DELETE FROM barnabas.objects WHERE object_id = ANY (object_ids)
    )
    SELECT count(*), sum(length), (SELECT sum(size) FROM added)
        INTO extents, bytes, copied FROM changed;
    IF copied IS DISTINCT FROM bytes THEN
        RAISE 'the extents of payloads % exceed them', object_ids
            USING ERRCODE = 'data_corrupted';
    END IF;
END $$;

-- Pack payloads that have been sparse for `rest_ms`, as `choose_sparse` chooses them. Returns how much
-- was packed; if that is none, no extent is left that can be packed now.
CREATE FUNCTION barnabas.pack_extents(
    most integer, most_bytes bigint, rest_ms bigint, OUT extents bigint, OUT bytes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    bound timestamptz;
    chosen bigint[];
    limited integer := most;
BEGIN
    PERFORM barnabas.lock_upkeep();
    bound := clock_timestamp() - rest_ms * interval '1 ms';
    FOR attempt IN 1..16 LOOP
        extents := 0;
        bytes := 0;
        chosen := barnabas.choose_sparse(limited, most_bytes, bound);
        EXIT WHEN chosen IS NULL;
        BEGIN
            SELECT * INTO extents, bytes FROM barnabas.pack_objects(chosen);
            EXIT;
        EXCEPTION
            WHEN data_corrupted OR index_corrupted OR io_error OR undefined_file
                OR internal_error OR insufficient_privilege THEN
            IF cardinality(chosen) = 1 THEN
                UPDATE barnabas.objects SET sparse_since = clock_timestamp() + interval '1 hour'
                    WHERE object_id = chosen[1];
                limited := most;
            ELSE
                limited := 1;  -- Another payload may be the one that cannot be read.
            END IF;
        END;
    END LOOP;
END $$;

-- Bytes of deleted extents in payloads that live on, and those of them that packing would free now, or
-- could not free.
CREATE FUNCTION barnabas.read_space(
    rest_ms bigint, OUT pinned_bytes bigint, OUT backlog_bytes bigint
) LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(dead_bytes), 0)::bigint,
        coalesce(sum(dead_bytes) FILTER (
            WHERE sparse_since <= statement_timestamp() - rest_ms * interval '1 ms'
                OR sparse_since > statement_timestamp()
        ), 0)::bigint
    FROM barnabas.objects WHERE dead_bytes > 0;
$$;
