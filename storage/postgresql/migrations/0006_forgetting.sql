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
