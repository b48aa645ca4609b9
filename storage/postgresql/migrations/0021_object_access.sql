-- Whether the object store takes what the brokers write, and which broker yields to the others.
--
-- Rules of these functions, besides those of the flushes and of membership:
--
-- 1. A broker reports only while the object store fails at some broker, so this table is empty in good
--    times. A broker of an earlier release never reports: no other yields to it, and it does not yield.
-- 2. A session yields only if another one that takes partitions has the same store and has just stored an
--    object. Sessions yield one after the other, each seeing those before it: the last one stays.
-- 3. Ages are of the callers' clocks, and become times by this one.

CREATE TABLE barnabas.object_access (
    session_id bigint PRIMARY KEY REFERENCES barnabas.sessions ON DELETE CASCADE,
    -- Start of the failures, or NULL if the last object was stored.
    failing_since timestamptz,
    -- Time of the last object that was stored, or NULL without one.
    stored_at timestamptz
);

-- The other nodes whose brokers have stored an object in the last `within_ms`, and take partitions.
CREATE FUNCTION barnabas.storing_nodes(of_session bigint, within_ms bigint) RETURNS integer[]
LANGUAGE sql AS $$
    SELECT coalesce(array_agg(other.node_id ORDER BY other.node_id), '{}')
    FROM barnabas.sessions AS own
        JOIN barnabas.sessions AS other ON other.object_store = own.object_store
        JOIN barnabas.object_access AS access ON access.session_id = other.session_id
    WHERE own.session_id = of_session AND other.session_id <> of_session AND other.state = 'live'
        AND access.failing_since IS NULL
        AND access.stored_at > clock_timestamp() - within_ms * interval '1 ms';
$$;

-- Note how long the object store has failed at a broker (NULL: it does not), and how long ago it stored
-- the last object (NULL: never). Returns the nodes that `storing_nodes` finds.
CREATE FUNCTION barnabas.report_objects(
    of_session bigint, failing_ms bigint, stored_ms bigint, within_ms bigint
) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    was_failing boolean;
BEGIN
    PERFORM 1 FROM barnabas.sessions
        WHERE session_id = of_session AND state <> 'fenced' FOR SHARE;
    IF NOT FOUND THEN
        PERFORM barnabas.confirm();
        RETURN '{}';
    END IF;
    SELECT failing_since IS NOT NULL INTO was_failing FROM barnabas.object_access
        WHERE session_id = of_session;
    INSERT INTO barnabas.object_access VALUES (
        of_session,
        clock_timestamp() - failing_ms * interval '1 ms',
        clock_timestamp() - stored_ms * interval '1 ms'
    ) ON CONFLICT (session_id) DO UPDATE
        SET failing_since = excluded.failing_since, stored_at = excluded.stored_at;
    IF coalesce(was_failing, false) <> (failing_ms IS NOT NULL) THEN
        PERFORM barnabas.change_picture();
    END IF;
    RETURN barnabas.storing_nodes(of_session, within_ms);
END $$;

-- End a session if one of these nodes stores objects. Returns whether the session has ended, also before
-- this call: a call whose result was lost is repeated.
CREATE FUNCTION barnabas.yield_to(of_session bigint, nodes integer[], within_ms bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Before any row, as for a registration: no other session yields, begins or ends meanwhile.
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    PERFORM 1 FROM barnabas.sessions WHERE session_id = of_session AND state <> 'fenced';
    IF NOT FOUND THEN
        PERFORM barnabas.confirm();
        RETURN true;
    END IF;
    IF NOT barnabas.storing_nodes(of_session, within_ms) && nodes THEN
        PERFORM barnabas.confirm();
        RETURN false;
    END IF;
    UPDATE barnabas.sessions SET state = 'fenced' WHERE session_id = of_session;
    PERFORM barnabas.change_picture();
    RETURN true;
END $$;
