-- Bodies of large flushes, put before their flush: several at once, on connections of their own.
--
-- Rules of these functions, besides those of the flushes:
--
-- 1. An upload is an object with a key and a payload, in which no extent lies. The flush that names
--    it moves the key to another column: from then on it is an object as any other, and all that
--    reads, packs or deletes objects needs to know nothing of uploads. Its bytes are written once.
-- 2. A key is used once. Putting it again, with the same bytes, is the same upload.
-- 3. An upload that no flush has named is garbage once its session has ended, or its number is used
--    up: no order of events names it later. So deleting it needs no fence, and no clock.

ALTER TABLE barnabas.objects
    DROP CONSTRAINT objects_check,
    ADD CONSTRAINT has_bytes CHECK (key IS NOT NULL OR payload IS NOT NULL),
    DROP CONSTRAINT objects_key_key,
    ALTER COLUMN key TYPE text COLLATE "C",
    -- The key that an object had as an upload, before a flush named it.
    ADD COLUMN upload_key text COLLATE "C";
CREATE UNIQUE INDEX objects_key ON barnabas.objects (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX objects_upload_key ON barnabas.objects (upload_key)
    WHERE upload_key IS NOT NULL;

-- Store the body of a flush, unless it is there; written in any case, so that it is replicated.
CREATE FUNCTION barnabas.put_upload(of_session bigint, object_key text, object_payload bytea)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO barnabas.objects (session_id, key, payload, live_extents)
        SELECT of_session, object_key, object_payload, 0
        WHERE NOT EXISTS (SELECT 1 FROM barnabas.objects WHERE upload_key = object_key)
        ON CONFLICT DO NOTHING;
    PERFORM barnabas.confirm();
END $$;

-- Make an upload of a session the object of a flush, in which `extents` extents lie that end at
-- `size` or before.
CREATE FUNCTION barnabas.name_upload(
    of_session bigint, object_key text, extents integer, size bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    named bigint;
BEGIN
    UPDATE barnabas.objects SET live_extents = extents, key = NULL, upload_key = key
        WHERE key = object_key AND session_id = of_session AND octet_length(payload) >= size
        RETURNING object_id INTO named;
    IF named IS NULL THEN
        RAISE 'session % has put no upload % of % bytes', of_session, object_key, size
            USING ERRCODE = 'BB001';
    END IF;
    RETURN named;
END $$;

-- Up to `most` keys of uploads that no flush has named, in order.
CREATE FUNCTION barnabas.list_uploads(prefix text, after text, most integer)
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT key FROM barnabas.objects
        WHERE key > after AND starts_with(key, prefix) AND payload IS NOT NULL
        ORDER BY key LIMIT most;
END $$;

-- Delete uploads that no flush has named.
CREATE FUNCTION barnabas.delete_uploads(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM barnabas.objects
        WHERE key = ANY (keys) AND payload IS NOT NULL AND live_extents = 0;
    PERFORM barnabas.confirm();
END $$;

-- Those of the keys, of which each is of a flush of a session, that no flush can name any more, and
-- none has named.
CREATE FUNCTION barnabas.dead_keys(
    keys text[], sessions bigint[], flush_lanes smallint[], flushes bigint[]
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    over text[];
BEGIN
    -- A flush that goes on holds its session, and its counter: what is over here stays so.
    SELECT array_agg(put.key) INTO over
        FROM unnest(keys, sessions, flush_lanes, flushes) AS put (key, session_id, lane, flush)
            LEFT JOIN barnabas.sessions AS session USING (session_id)
            LEFT JOIN barnabas.lanes AS counter
                ON counter.session_id = put.session_id AND counter.lane = put.lane
        WHERE session.state = 'fenced' OR counter.next_flush > put.flush
            OR session.session_id IS NULL
                AND put.session_id < (SELECT max(session_id) FROM barnabas.sessions);
    -- By a statement of its own: it sees what was named before that.
    SELECT array_agg(each) INTO over FROM unnest(over) AS each
        WHERE NOT EXISTS (
            SELECT 1 FROM barnabas.objects WHERE upload_key = each
            UNION ALL SELECT 1 FROM barnabas.objects WHERE key = each AND live_extents > 0
        );
    PERFORM barnabas.confirm();
    RETURN coalesce(over, '{}');
END $$;

-- The flush as it was, but for where its bytes are: one with a key in lane 0 names an upload.
DO $do$
DECLARE
    before text := pg_get_functiondef('barnabas.commit_flush'::regproc);
    after text;
BEGIN
    after := replace(before,
$old$        INSERT INTO barnabas.objects (session_id, key, payload, live_extents)
            VALUES (of_session, object_key, object_payload, cardinality(item_partitions))
            RETURNING object_id INTO new_object;
$old$,
$new$        IF object_key IS NOT NULL AND of_lane = 0 THEN
            new_object := barnabas.name_upload(
                of_session, object_key, cardinality(item_partitions),
                (SELECT max(at::bigint + size) FROM unnest(positions, lengths) AS item (at, size))
            );
        ELSE
            INSERT INTO barnabas.objects (session_id, key, payload, live_extents)
                VALUES (of_session, object_key, object_payload, cardinality(item_partitions))
                RETURNING object_id INTO new_object;
        END IF;
$new$);
    ASSERT after <> before, 'commit_flush is not what this migration changes';
    EXECUTE after;
END $do$;
