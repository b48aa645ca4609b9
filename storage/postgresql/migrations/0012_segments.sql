-- Packed segments: the records of one partition as an object with nothing else.
--
-- Rules of these functions, besides those of the flushes, of upkeep and of uploads:
--
-- 1. A packed segment is one extent of one object. It takes the place of extents that have the same
--    bytes, at or before the partition's snapshot (F4, F12).
-- 2. Its key names the partition, the session that put it, and a number of that session's lane 2. The
--    number is used up by the segment, or given up by `skip_number`. From then on another object of
--    this number is garbage.
-- 3. A segment's sidecar has no row of its own. It goes with the object whose key differs in the suffix
--    only, and is garbage if that is.

ALTER TABLE barnabas.lanes
    DROP CONSTRAINT lanes_lane_check,
    ADD CONSTRAINT lanes_lane_check CHECK (lane IN (0, 1, 2));
-- Sessions get the lane with their first segment.

ALTER TABLE barnabas.objects
    DROP CONSTRAINT objects_kind_check,
    -- 'seg': a packed segment.
    ADD CONSTRAINT objects_kind_check CHECK (kind IN ('wal', 'seg'));

-- The next number of a session's lane 2, which stays locked; NULL if the session is forgotten.
CREATE FUNCTION barnabas.lock_packing_lane(of_session bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
BEGIN
    INSERT INTO barnabas.lanes (session_id, lane)
        SELECT session_id, 2 FROM barnabas.sessions WHERE session_id = of_session
        ON CONFLICT DO NOTHING;
    SELECT next_flush INTO counter FROM barnabas.lanes
        WHERE session_id = of_session AND lane = 2 FOR UPDATE;
    RETURN counter;
END $$;

-- Use up a number without a segment.
CREATE FUNCTION barnabas.skip_number(of_session bigint, number bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.lock_packing_lane(of_session);
    UPDATE barnabas.lanes SET next_flush = greatest(next_flush, number + 1)
        WHERE session_id = of_session AND lane = 2;
    PERFORM barnabas.confirm();
END $$;

-- Put the packed segment in an object in the place of the extents that cover [base, next). False, and
-- nothing has changed: another session leads the partition, its log starts later, or the extents have
-- other bytes. Called again with the same number: whether the log has the segment.
CREATE FUNCTION barnabas.replace_by_segment(
    of_session bigint, of_partition bigint, of_epoch integer, number bigint,
    base bigint, next bigint, batch_epoch integer, size integer, object_key text,
    in_object_store boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
    objects bigint[];
    sizes integer[];
    begins bigint;
    ends bigint;
    total bigint;
    new_object bigint;
BEGIN
    PERFORM barnabas.lock_upkeep();
    counter := barnabas.lock_packing_lane(of_session);
    IF counter > number THEN
        PERFORM barnabas.confirm();
        RETURN EXISTS (
            SELECT 1 FROM barnabas.objects WHERE upload_key = object_key
            UNION ALL SELECT 1 FROM barnabas.objects WHERE key = object_key AND live_extents > 0
        );
    END IF;
    IF NOT barnabas.lock_led(of_session, of_partition, of_epoch) THEN
        RETURN false;
    END IF;
    IF counter <> number THEN
        RAISE 'segment % of session % comes instead of %', number, of_session, counter
            USING ERRCODE = 'BB001';
    END IF;
    PERFORM 1 FROM barnabas.partitions WHERE partition_id = of_partition AND log_start > base;
    IF FOUND THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM barnabas.snapshots
        WHERE partition_id = of_partition AND next_offset >= next;
    IF NOT FOUND THEN
        RAISE 'partition % has no snapshot behind offset %', of_partition, next
            USING ERRCODE = 'BB001';
    END IF;
    SELECT min(base_offset), max(next_offset), sum(length) INTO begins, ends, total
        FROM barnabas.extents WHERE partition_id = of_partition
            AND base_offset >= base AND base_offset < next;
    IF (begins, ends) IS DISTINCT FROM (base, next) THEN
        RAISE 'no extents of partition % cover % to %', of_partition, base, next
            USING ERRCODE = 'BB001';
    END IF;
    IF total <> size THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM barnabas.extents WHERE partition_id = of_partition
            AND base_offset >= base AND base_offset < next
            RETURNING object_id, length
    ) SELECT array_agg(object_id), array_agg(length) INTO objects, sizes FROM gone;
    UPDATE barnabas.lanes SET next_flush = number + 1
        WHERE session_id = of_session AND lane = 2;
    IF in_object_store THEN
        INSERT INTO barnabas.objects
            (session_id, key, live_extents, kind, size_bytes, footer_at)
            VALUES (of_session, object_key, 1, 'seg', size, size)
            RETURNING object_id INTO new_object;
    ELSE
        new_object := barnabas.name_upload(of_session, object_key, 1, size);
    END IF;
    INSERT INTO barnabas.extents
        (partition_id, base_offset, next_offset, leader_epoch, object_id, position, length)
        VALUES (of_partition, base, next, batch_epoch, new_object, 0, size);
    PERFORM barnabas.dereference(objects, sizes);
    RETURN true;
END $$;

-- ------------------------------------------------------------------------------------- reading

-- The extents that reach beyond an offset, in order, without their bytes; those in the object store, and
-- packed segments anywhere, with the key of their object.
CREATE FUNCTION barnabas.read_extent_keys(
    of_partition bigint, from_offset bigint, most integer,
    OUT base_offset bigint, OUT next_offset bigint, OUT length integer, OUT object_key text
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT part.base_offset, part.next_offset, part.length,
            coalesce(
                object.key,
                CASE WHEN starts_with(object.upload_key, 'seg/') THEN object.upload_key END
            )
        FROM (
            SELECT * FROM barnabas.extents AS each
            WHERE each.partition_id = of_partition AND each.next_offset > from_offset
            ORDER BY each.base_offset LIMIT most
        ) AS part JOIN barnabas.objects AS object USING (object_id)
        ORDER BY part.base_offset;
END $$;

-- Bytes of an object that no flush has named, or that is a packed segment; NULL without one.
CREATE FUNCTION barnabas.read_object(object_key text, at integer, size integer)
RETURNS bytea LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT substring(payload FROM at + 1 FOR size) FROM barnabas.objects
        WHERE payload IS NOT NULL AND (
            key = object_key OR starts_with(object_key, 'seg/') AND upload_key = object_key
        )
    );
END $$;

-- -------------------------------------------------------------------------------------- garbage

-- The key of a packed segment is noted with that of its sidecar.
CREATE FUNCTION barnabas.note_sidecar() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO barnabas.dereferenced_keys (key)
        VALUES (regexp_replace(NEW.key, '\.log$', '.idx')) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_sidecar AFTER INSERT ON barnabas.dereferenced_keys
    FOR EACH ROW WHEN (NEW.key LIKE 'seg/%.log')
    EXECUTE FUNCTION barnabas.note_sidecar();

-- Those of the keys, of which each is of a number of a session's lane, that the index can name no more,
-- and has not named: `names` has the key that it names, which of a sidecar is that of its segment.
CREATE FUNCTION barnabas.dead_keys(
    keys text[], sessions bigint[], flush_lanes smallint[], flushes bigint[], names text[]
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    dead_names text[];
BEGIN
    dead_names := barnabas.dead_keys(names, sessions, flush_lanes, flushes);
    RETURN (
        SELECT coalesce(array_agg(put.key), '{}')
        FROM unnest(keys, names) AS put (key, name) WHERE put.name = ANY (dead_names)
    );
END $$;
