-- Bodies of large flushes in an object store: the rows that name its objects.
--
-- Rules of these functions, besides those of the flushes and of upkeep:
--
-- 1. An object of the object store has a key, a size, and no payload. A reader of extents gets key,
--    position and length in place of the bytes, and reads them there.
-- 2. PostgreSQL packs only payloads. An object elsewhere goes once no extent lies in it: its key is
--    noted, and the object is deleted later, so that an older copy of this database finds it.
-- 3. A noted key is not garbage as a key is that no flush has named: only the delay ends it.

ALTER TABLE barnabas.objects
    -- What the object is: 'wal' has the extents of one flush.
    ADD COLUMN kind text CHECK (kind = 'wal'),
    ADD COLUMN size_bytes bigint,
    -- Where the bodies end.
    ADD COLUMN footer_at bigint,
    ADD CONSTRAINT is_elsewhere CHECK (
        (size_bytes IS NULL) = (kind IS NULL)
        AND (size_bytes IS NULL) = (footer_at IS NULL)
        AND (size_bytes IS NULL OR key IS NOT NULL AND payload IS NULL)
    );

CREATE INDEX dereferenced_keys_by_time ON barnabas.dereferenced_keys (dereferenced);

-- ------------------------------------------------------------------------------------- reading

-- As before, with the place of the bytes where they are in the object store.
DROP FUNCTION barnabas.read_extents(bigint, bigint, integer, bigint);
CREATE FUNCTION barnabas.read_extents(
    of_partition bigint, from_offset bigint, most integer, most_bytes bigint,
    OUT base_offset bigint, OUT next_offset bigint, OUT leader_epoch integer, OUT data bytea,
    OUT object_key text, OUT "position" integer, OUT length integer,
    OUT footer_at bigint, OUT size_bytes bigint
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT part.base_offset, part.next_offset, part.leader_epoch,
            substring(object.payload FROM part.position + 1 FOR part.length),
            object.key, part.position, part.length, object.footer_at, object.size_bytes
        FROM (
            SELECT extent.*,
                sum(extent.length) OVER (ORDER BY extent.base_offset) - extent.length
                    AS bytes_before
            FROM (
                SELECT * FROM barnabas.extents AS each
                WHERE each.partition_id = of_partition AND each.next_offset > from_offset
                ORDER BY each.base_offset LIMIT most
            ) AS extent
        ) AS part JOIN barnabas.objects AS object USING (object_id)
        WHERE part.bytes_before < most_bytes
        ORDER BY part.base_offset;
END $$;

ALTER TYPE barnabas.beginning
    ADD ATTRIBUTE object_key text, ADD ATTRIBUTE "position" integer, ADD ATTRIBUTE length integer,
    ADD ATTRIBUTE footer_at bigint, ADD ATTRIBUTE size_bytes bigint;
ALTER TYPE barnabas.recent_beginning
    ADD ATTRIBUTE object_key text, ADD ATTRIBUTE "position" integer, ADD ATTRIBUTE length integer,
    ADD ATTRIBUTE footer_at bigint, ADD ATTRIBUTE size_bytes bigint;

-- Change a function by replacing `before` in its text.
CREATE FUNCTION barnabas.rewrite(changed regproc, before text, after text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    text_before text := pg_get_functiondef(changed);
    text_after text := replace(text_before, before, after);
BEGIN
    ASSERT text_after <> text_before, changed || ' is not what this migration changes';
    EXECUTE text_after;
END $$;

SELECT barnabas.rewrite('barnabas.read_beginnings',
$old$FOR part.length)
$old$,
$new$FOR part.length),
            object.key, part.position, part.length, object.footer_at, object.size_bytes
$new$);
SELECT barnabas.rewrite('barnabas.read_recent_beginnings',
$old$            head.is_recent
        FROM head$old$,
$new$            head.is_recent,
            object.key, part.position, part.length, object.footer_at, object.size_bytes
        FROM head$new$);

-- Deleted extents in objects elsewhere take no space here.
SELECT barnabas.rewrite('barnabas.read_space',
    'WHERE dead_bytes > 0;', 'WHERE dead_bytes > 0 AND payload IS NOT NULL;');

-- ----------------------------------------------------------------------------------- the flush

-- The flush as it was, except for a key of the object store: it comes with the size of its object.
SELECT barnabas.rewrite('barnabas.commit_flush',
    'IF object_key IS NOT NULL AND of_lane = 0 THEN',
    'IF object_key IS NOT NULL AND object_size IS NULL AND of_lane = 0 THEN');
SELECT barnabas.rewrite('barnabas.commit_flush',
$old$            INSERT INTO barnabas.objects (session_id, key, payload, live_extents)
                VALUES (of_session, object_key, object_payload, cardinality(item_partitions))
$old$,
$new$            INSERT INTO barnabas.objects
                (session_id, key, payload, live_extents, kind, size_bytes, footer_at)
                VALUES (of_session, object_key, object_payload, cardinality(item_partitions),
                    CASE WHEN object_size IS NOT NULL THEN 'wal' END, object_size,
                    object_footer_at)
$new$);
SELECT barnabas.rewrite('barnabas.commit_flush',
    '> octet_length(object_payload)', '> coalesce(octet_length(object_payload), object_footer_at)');
-- Its arguments make it another function beside the one that it was.
DO $do$
DECLARE
    as_it_was regprocedure := 'barnabas.commit_flush'::regproc::oid;
BEGIN
    PERFORM barnabas.rewrite('barnabas.commit_flush',
        'starts bigint[], OUT outcome',
        'starts bigint[], object_size bigint DEFAULT NULL, object_footer_at bigint DEFAULT NULL,
        OUT outcome');
    EXECUTE 'DROP FUNCTION ' || as_it_was;
END $do$;

-- -------------------------------------------------------------------------------------- garbage

-- A key that a flush has named, and in whose object nothing lies, waits for its delay.
SELECT barnabas.rewrite('barnabas.dead_keys',
    'UNION ALL SELECT 1 FROM barnabas.objects WHERE key = each AND live_extents > 0',
    'UNION ALL SELECT 1 FROM barnabas.objects WHERE key = each AND live_extents > 0
            UNION ALL SELECT 1 FROM barnabas.dereferenced_keys WHERE key = each');

-- Up to `most` keys of objects in which nothing lies any more, since `rest_ms`. What they name is
-- deleted by who has got this answer, which is replicated; then they are forgotten.
CREATE FUNCTION barnabas.take_dead_keys(most integer, rest_ms bigint)
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT key FROM barnabas.dereferenced_keys
        WHERE dereferenced <= clock_timestamp() - rest_ms * interval '1 ms'
        ORDER BY dereferenced LIMIT most;
END $$;

CREATE FUNCTION barnabas.forget_keys(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM barnabas.dereferenced_keys WHERE key = ANY (keys);
    PERFORM barnabas.confirm();
END $$;

DROP FUNCTION barnabas.rewrite(regproc, text, text);
