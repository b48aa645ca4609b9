-- What has been over for long is forgotten: sessions that have ended, and ways to the metadata.
--
-- Rules of these functions, besides those of the flushes:
--
-- 1. Nothing depends on the row of a session that has ended: who names one that is not there is
--    told that it has ended, by flushes as by all else. Ids of sessions are never used again.
-- 2. A row stays for a time that no caller repeats himself after: what came of an attempt is known
--    as long as somebody may still ask.
-- 3. Nobody leads, or plans, as a session that is forgotten.

-- When a change was made, or looked for, last.
ALTER TABLE barnabas.metastores ADD COLUMN used timestamptz NOT NULL DEFAULT clock_timestamp();

-- Delete up to `most` rows of each kind that have been over for `kept_ms`; answers how many
-- sessions, and ways to the metadata, that were.
CREATE FUNCTION barnabas.forget(most integer, kept_ms bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    bound timestamptz := clock_timestamp() - kept_ms * interval '1 ms';
    ended bigint[];
    unused integer;
BEGIN
    PERFORM barnabas.lock_upkeep();
    -- Before any row, as who registers does.
    LOCK TABLE barnabas.sessions IN ROW EXCLUSIVE MODE;
    SELECT coalesce(array_agg(session_id), '{}') INTO ended FROM (
        SELECT session_id FROM barnabas.sessions JOIN barnabas.leases USING (session_id)
        WHERE state = 'fenced' AND lease_until < bound
            AND session_id NOT IN (
                SELECT leader_session FROM barnabas.partitions WHERE leader_session IS NOT NULL
            )
            AND NOT EXISTS (SELECT 1 FROM barnabas.picture WHERE controller = session_id)
        ORDER BY session_id LIMIT most
    ) AS over;
    -- In the order in which a flush that comes too late takes them.
    DELETE FROM barnabas.lanes WHERE session_id = ANY (ended);
    DELETE FROM barnabas.leases WHERE session_id = ANY (ended);
    DELETE FROM barnabas.sessions WHERE session_id = ANY (ended);
    DELETE FROM barnabas.metastores WHERE token IN (
        SELECT token FROM barnabas.metastores WHERE used < bound LIMIT most FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS unused = ROW_COUNT;
    RETURN cardinality(ended) + unused;
END $$;

-- As before, but that a session without a row has ended.
CREATE OR REPLACE FUNCTION barnabas.commit_flush(
    of_session bigint, of_lane smallint, flush bigint, object_key text, object_payload bytea,
    item_partitions bigint[], item_epochs integer[], bases bigint[], nexts bigint[],
    positions integer[], lengths integer[],
    start_partitions bigint[], start_epochs integer[], starts bigint[],
    OUT outcome text, OUT refused bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
    found_state text;
    wrong bigint[];
    new_object bigint;
BEGIN
    refused := '{}';

    -- An attempt that is under way elsewhere has this lock, or will find the counter moved on.
    SELECT next_flush INTO counter FROM barnabas.lanes
        WHERE session_id = of_session AND lane = of_lane FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM barnabas.confirm();
        outcome := 'fenced';
        RETURN;
    END IF;

    IF counter > flush THEN
        -- Unchanged, but written: it is answered when this, and so the flush, is replicated.
        UPDATE barnabas.lanes SET next_flush = counter
            WHERE session_id = of_session AND lane = of_lane;
        outcome := 'committed';
        RETURN;
    END IF;

    -- Who fences waits for this flush; once fenced, no flush gets past here.
    SELECT state INTO found_state FROM barnabas.sessions WHERE session_id = of_session FOR SHARE;
    IF found_state = 'fenced' THEN
        UPDATE barnabas.lanes SET next_flush = counter
            WHERE session_id = of_session AND lane = of_lane;
        outcome := 'fenced';
        RETURN;
    END IF;

    IF counter <> flush THEN
        RAISE 'flush % of session % comes instead of %', flush, of_session, counter
            USING ERRCODE = 'BB001';
    END IF;

    PERFORM 1 FROM barnabas.partitions
        WHERE partition_id = ANY (item_partitions || start_partitions)
        ORDER BY partition_id FOR UPDATE;

    SELECT array_agg(DISTINCT named.partition_id) INTO wrong
        FROM (
            SELECT * FROM unnest(item_partitions, item_epochs) AS i (partition_id, epoch)
            UNION
            SELECT * FROM unnest(start_partitions, start_epochs) AS s (partition_id, epoch)
        ) AS named LEFT JOIN barnabas.partitions AS led USING (partition_id)
        WHERE led.leader_session IS DISTINCT FROM of_session
            OR led.leader_epoch IS DISTINCT FROM named.epoch;
    IF wrong IS NOT NULL THEN
        -- The number is not used up. This attempt can never pass: epochs only rise.
        UPDATE barnabas.lanes SET next_flush = counter
            WHERE session_id = of_session AND lane = of_lane;
        outcome := 'refused';
        refused := wrong;
        RETURN;
    END IF;

    UPDATE barnabas.lanes SET next_flush = flush + 1
        WHERE session_id = of_session AND lane = of_lane;

    IF cardinality(item_partitions) > 0 THEN
        INSERT INTO barnabas.objects (session_id, key, payload, live_extents)
            VALUES (of_session, object_key, object_payload, cardinality(item_partitions))
            RETURNING object_id INTO new_object;
        UPDATE barnabas.partitions AS led SET log_end = item.next
            FROM unnest(item_partitions, bases, nexts) AS item (partition_id, base, next)
            WHERE led.partition_id = item.partition_id AND led.log_end = item.base;
        GET DIAGNOSTICS counter = ROW_COUNT;
        IF counter <> cardinality(item_partitions) THEN
            RAISE 'flush % of session % does not begin where its logs end', flush, of_session
                USING ERRCODE = 'BB001';
        END IF;
        INSERT INTO barnabas.extents
            (partition_id, base_offset, next_offset, leader_epoch, object_id, position, length)
            SELECT partition_id, base, next, epoch, new_object, at, size
            FROM unnest(item_partitions, item_epochs, bases, nexts, positions, lengths)
                AS item (partition_id, epoch, base, next, at, size);
        SELECT array_agg(size) INTO wrong FROM unnest(positions, lengths) AS item (at, size)
            WHERE at::bigint + size > octet_length(object_payload);
        IF wrong IS NOT NULL THEN
            RAISE 'flush % of session % names more than its payload', flush, of_session
                USING ERRCODE = 'BB001';
        END IF;
    END IF;

    UPDATE barnabas.partitions AS led SET log_start = greatest(led.log_start, new.log_start)
        FROM unnest(start_partitions, starts) AS new (partition_id, log_start)
        WHERE led.partition_id = new.partition_id;

    outcome := 'committed';
END $$;
