-- Which brokers there are, who leads what, and how each of them hears of it.
--
-- Rules of these functions, besides those of the flushes:
--
-- 1. What changes the picture takes its row last, and holds it until it is committed. So versions
--    are committed in their order: who has seen one has seen all that led to it.
-- 2. What a partition is changed in is the version of that change, and nothing else changes it.
-- 3. What does not change the picture does not take its row: heartbeats and flushes never wait here.
-- 4. Who changes the picture notifies `barnabas` of its version: who has seen that one by then has no
--    look to take, which would be a commit for nothing. Who changes the metadata notifies it of ''.
--    What is notified may be lost: who listens looks by himself as well, now and then.

CREATE TABLE barnabas.picture (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version bigint NOT NULL DEFAULT 0,
    controller bigint REFERENCES barnabas.sessions,
    next_node_id integer NOT NULL DEFAULT 1001
);
INSERT INTO barnabas.picture DEFAULT VALUES;

-- Every node id that a broker has had.
CREATE TABLE barnabas.nodes (node_id integer PRIMARY KEY);

ALTER TABLE barnabas.partitions ADD COLUMN wanted_node integer;
-- Who leads it whenever that node takes partitions: what operators have asked for.
ALTER TABLE barnabas.partitions ADD COLUMN pinned_node integer;
ALTER TABLE barnabas.partitions ADD COLUMN changed_in bigint NOT NULL DEFAULT 0;
-- The one of those versions in which it has come to its leader.
ALTER TABLE barnabas.partitions ADD COLUMN led_in bigint NOT NULL DEFAULT 0;
-- Flushes do not change it, so their updates stay on the row's page.
CREATE INDEX partitions_by_change ON barnabas.partitions (changed_in);

-- Answers the version in which the caller's change is seen; nothing more is locked after this.
CREATE FUNCTION barnabas.change_picture() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    UPDATE barnabas.picture SET version = version + 1 RETURNING version INTO changed;
    PERFORM pg_notify('barnabas', changed::text);
    RETURN changed;
END $$;

-- Have the answer wait until what it speaks of is replicated, when there is nothing to write.
CREATE FUNCTION barnabas.confirm() RETURNS void LANGUAGE sql AS $$
    SELECT pg_logical_emit_message(true, 'barnabas', '');
$$;

-- ------------------------------------------------------------------------------------- sessions

CREATE FUNCTION barnabas.new_node_id() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    candidate integer;
BEGIN
    LOOP
        UPDATE barnabas.picture SET next_node_id = next_node_id + 1
            RETURNING next_node_id - 1 INTO candidate;
        INSERT INTO barnabas.nodes VALUES (candidate) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN candidate;
        END IF;
    END LOOP;
END $$;

-- Begin a session, and end the one that the node had before. Called again with a token, it answers
-- what it answered first.
CREATE FUNCTION barnabas.register(
    new_token uuid, new_node_id integer, new_endpoints text, lease_ms integer
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    registered bigint;
BEGIN
    -- Nobody else registers or is fenced meanwhile; flushes and heartbeats go on.
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    UPDATE barnabas.sessions SET token = token WHERE token = new_token
        RETURNING session_id INTO registered;
    IF FOUND THEN
        RETURN registered;
    END IF;
    UPDATE barnabas.sessions SET state = 'fenced'
        WHERE node_id = new_node_id AND state <> 'fenced';
    INSERT INTO barnabas.sessions (token, node_id, endpoints)
        VALUES (new_token, new_node_id, new_endpoints)
        RETURNING session_id INTO registered;
    INSERT INTO barnabas.leases
        VALUES (registered, clock_timestamp() + lease_ms * interval '1 ms', lease_ms);
    INSERT INTO barnabas.lanes (session_id, lane) VALUES (registered, 0), (registered, 1);
    PERFORM barnabas.change_picture();
    -- Who looks for a new one holds the picture, too.
    INSERT INTO barnabas.nodes VALUES (new_node_id) ON CONFLICT DO NOTHING;
    RETURN registered;
END $$;

-- Whether the session goes on; if so its lease ends `new_lease_ms` from now.
CREATE FUNCTION barnabas.heartbeat(of_session bigint, new_lease_ms integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
BEGIN
    -- Who fences waits for this, and then sees the new lease.
    SELECT state INTO found_state FROM barnabas.sessions
        WHERE session_id = of_session FOR SHARE;
    IF found_state IS DISTINCT FROM 'live' AND found_state IS DISTINCT FROM 'draining' THEN
        PERFORM barnabas.confirm();
        RETURN false;
    END IF;
    UPDATE barnabas.leases
        SET lease_until = clock_timestamp() + new_lease_ms * interval '1 ms',
            lease_ms = new_lease_ms
        WHERE session_id = of_session;
    RETURN true;
END $$;

-- End the sessions whose lease is over; answers which. One that ends later than it lasts was noted
-- by a clock that was ahead of this one, before it was set back or on a former primary: nobody would
-- take over from its session for as long. It begins anew.
CREATE FUNCTION barnabas.fence_expired() RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    candidate bigint;
    fenced bigint[] := '{}';
BEGIN
    -- Before any row, as who registers does.
    LOCK TABLE barnabas.sessions IN ROW EXCLUSIVE MODE;
    FOR candidate IN
        SELECT session_id FROM barnabas.sessions JOIN barnabas.leases USING (session_id)
        WHERE state <> 'fenced' AND (
            lease_until < clock_timestamp()
            OR lease_until > clock_timestamp() + lease_ms * interval '1 ms'
        ) ORDER BY session_id
    LOOP
        PERFORM 1 FROM barnabas.sessions WHERE session_id = candidate FOR UPDATE;
        UPDATE barnabas.leases SET lease_until = clock_timestamp() + lease_ms * interval '1 ms'
            WHERE session_id = candidate
                AND lease_until > clock_timestamp() + lease_ms * interval '1 ms';
        -- A heartbeat may have come while this waited for the row.
        UPDATE barnabas.sessions SET state = 'fenced'
            WHERE session_id = candidate AND state <> 'fenced' AND EXISTS (
                SELECT 1 FROM barnabas.leases
                WHERE session_id = candidate AND lease_until < clock_timestamp()
            );
        IF FOUND THEN
            fenced := fenced || candidate;
        END IF;
    END LOOP;
    IF cardinality(fenced) > 0 THEN
        PERFORM barnabas.change_picture();
    END IF;
    RETURN fenced;
END $$;

-- The session takes no new partitions, but goes on with those that it has.
CREATE FUNCTION barnabas.drain(of_session bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE barnabas.sessions SET state = 'draining'
        WHERE session_id = of_session AND state = 'live';
    IF FOUND THEN
        PERFORM barnabas.change_picture();
    ELSE
        PERFORM barnabas.confirm();
    END IF;
END $$;

-- Nothing of this session is committed from now on; its node id is free.
CREATE FUNCTION barnabas.fence(of_session bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE barnabas.sessions SET state = 'fenced'
        WHERE session_id = of_session AND state <> 'fenced';
    IF FOUND THEN
        PERFORM barnabas.change_picture();
    ELSE
        PERFORM barnabas.confirm();
    END IF;
END $$;

-- The session that plans who leads what, unless it is over.
CREATE FUNCTION barnabas.live_controller() RETURNS bigint LANGUAGE sql AS $$
    SELECT session_id FROM barnabas.picture JOIN barnabas.sessions ON session_id = controller
    WHERE state <> 'fenced';
$$;

-- Whether a session that goes on is the one that plans; it is from now on if no other is. What is
-- planned is compared when it is assigned: two who plan do no harm, so nothing is confirmed.
CREATE FUNCTION barnabas.control(of_session bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    planning bigint := barnabas.live_controller();
BEGIN
    IF planning IS NULL THEN
        PERFORM 1 FROM barnabas.sessions
            WHERE session_id = of_session AND state <> 'fenced' FOR SHARE;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
        PERFORM 1 FROM barnabas.picture FOR UPDATE;
        planning := barnabas.live_controller();
        IF planning IS NULL THEN
            UPDATE barnabas.picture SET controller = of_session;
            PERFORM barnabas.change_picture();
            planning := of_session;
        END IF;
    END IF;
    RETURN planning = of_session;
END $$;

-- ----------------------------------------------------------------------------------- leadership

-- Make empty partitions with ids from `first_partition` on, but for those that are there. Their
-- first leader's epoch is `first_epoch`.
CREATE FUNCTION barnabas.add_partitions(
    first_partition bigint, how_many integer, first_epoch integer
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
    changed bigint;
BEGIN
    SELECT count(*) INTO known FROM barnabas.partitions
        WHERE partition_id >= first_partition AND partition_id < first_partition + how_many;
    IF known = how_many THEN
        PERFORM barnabas.confirm();
        RETURN;
    END IF;
    -- Before the partitions: nobody else waits for those, and who adds the same waits here.
    changed := barnabas.change_picture();
    INSERT INTO barnabas.partitions (partition_id, leader_epoch, changed_in)
        SELECT each, first_epoch - 1, changed
        FROM generate_series(first_partition, first_partition + how_many - 1) AS each
        ON CONFLICT DO NOTHING;
END $$;

-- Nobody leads these partitions any more.
CREATE FUNCTION barnabas.remove_partitions(gone bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    PERFORM 1 FROM barnabas.partitions WHERE partition_id = ANY (gone)
        ORDER BY partition_id FOR UPDATE;
    changed := barnabas.change_picture();
    UPDATE barnabas.partitions
        SET leader_session = NULL, wanted_node = NULL, pinned_node = NULL, is_deleted = true,
            changed_in = changed
        WHERE partition_id = ANY (gone);
END $$;

-- Have live sessions lead partitions, each in the epoch after the expected one, where that is its
-- epoch still. Answers those that are led so, by this call or an earlier one. None is named twice.
CREATE FUNCTION barnabas.assign(
    of_partitions bigint[], new_sessions bigint[], expected_epochs integer[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    taking bigint[];
    changing bigint[];
    changed bigint;
    led bigint[];
BEGIN
    SELECT array_agg(session_id) INTO taking FROM (
        SELECT session_id FROM barnabas.sessions
        WHERE session_id = ANY (new_sessions) AND state = 'live'
        ORDER BY session_id FOR SHARE
    ) AS live;
    PERFORM 1 FROM barnabas.partitions WHERE partition_id = ANY (of_partitions)
        ORDER BY partition_id FOR UPDATE;
    SELECT array_agg(partition_id) INTO changing
        FROM unnest(of_partitions, new_sessions, expected_epochs)
            AS asked (partition_id, session_id, epoch)
        JOIN barnabas.partitions AS part USING (partition_id)
        WHERE asked.session_id = ANY (taking) AND part.leader_epoch = asked.epoch
            AND NOT part.is_deleted;
    IF changing IS NULL THEN
        PERFORM barnabas.confirm();
    ELSE
        changed := barnabas.change_picture();
        UPDATE barnabas.partitions AS part
            SET leader_session = asked.session_id, leader_epoch = asked.epoch + 1,
                wanted_node = nullif(part.wanted_node, leader.node_id),
                changed_in = changed, led_in = changed
            FROM unnest(of_partitions, new_sessions, expected_epochs)
                AS asked (partition_id, session_id, epoch)
            JOIN barnabas.sessions AS leader USING (session_id)
            WHERE part.partition_id = asked.partition_id AND part.partition_id = ANY (changing);
    END IF;
    SELECT array_agg(partition_id) INTO led
        FROM unnest(of_partitions, new_sessions, expected_epochs)
            AS asked (partition_id, session_id, epoch)
        JOIN barnabas.partitions AS part USING (partition_id)
        WHERE asked.session_id = ANY (taking) AND part.leader_session = asked.session_id
            AND part.leader_epoch = asked.epoch + 1;
    RETURN coalesce(led, '{}');
END $$;

-- Say which nodes are to lead partitions now, each partition named once; NULL: none in particular.
-- With `pins` they are to lead them again whenever they come back; NULL: nobody is.
CREATE FUNCTION barnabas.want(of_partitions bigint[], new_nodes integer[], pins boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changing bigint[];
    new_wanted integer[];
    new_pinned integer[];
    changed bigint;
BEGIN
    PERFORM 1 FROM barnabas.partitions WHERE partition_id = ANY (of_partitions)
        ORDER BY partition_id FOR UPDATE;
    SELECT array_agg(partition_id), array_agg(later.wanted), array_agg(later.pinned)
        INTO changing, new_wanted, new_pinned
        FROM unnest(of_partitions, new_nodes) AS asked (partition_id, node_id)
        JOIN barnabas.partitions AS part USING (partition_id)
        LEFT JOIN barnabas.sessions AS leader ON leader.session_id = part.leader_session,
        -- A pin to who leads a partition already is no wish.
        LATERAL (SELECT
            CASE WHEN pins THEN nullif(asked.node_id, leader.node_id) ELSE asked.node_id END,
            CASE WHEN pins THEN asked.node_id ELSE part.pinned_node END
        ) AS later (wanted, pinned)
        WHERE NOT part.is_deleted AND (part.wanted_node, part.pinned_node)
            IS DISTINCT FROM (later.wanted, later.pinned);
    IF changing IS NULL THEN
        PERFORM barnabas.confirm();
        RETURN;
    END IF;
    changed := barnabas.change_picture();
    UPDATE barnabas.partitions AS part
        SET wanted_node = later.wanted, pinned_node = later.pinned, changed_in = changed
        FROM unnest(changing, new_wanted, new_pinned) AS later (partition_id, wanted, pinned)
        WHERE part.partition_id = later.partition_id;
END $$;

-- ---------------------------------------------------------------------------------- the picture

-- What is so now; the partitions are those that have changed since a version. It is one statement,
-- so all of it was so at the same time. What it tells is replicated when it is answered: versions
-- never go back, and a former primary that lives on tells nothing. The version of the metadata alone
-- may go back: what is loaded because of it is confirmed then.
CREATE FUNCTION barnabas.read_picture(
    since bigint, OUT version bigint, OUT metadata_version bigint, OUT controller bigint,
    OUT member_sessions bigint[], OUT member_nodes integer[], OUT member_endpoints text[],
    OUT member_draining boolean[],
    OUT led_partitions bigint[], OUT led_sessions bigint[], OUT led_epochs integer[],
    OUT led_wanted integer[], OUT led_pinned integer[], OUT gone bigint[], OUT confirmed pg_lsn
) LANGUAGE sql AS $$
    SELECT picture.version,
        coalesce((SELECT cluster.version FROM barnabas.cluster), 0),
        (SELECT session_id FROM barnabas.sessions
            WHERE session_id = picture.controller AND state <> 'fenced'),
        member.sessions, member.nodes, member.endpoints, member.draining,
        led.partitions, led.sessions, led.epochs, led.wanted, led.pinned, led.gone,
        pg_logical_emit_message(true, 'barnabas', '')
    FROM barnabas.picture AS picture,
        (SELECT array_agg(session_id ORDER BY session_id) AS sessions,
            array_agg(node_id ORDER BY session_id) AS nodes,
            array_agg(endpoints ORDER BY session_id) AS endpoints,
            array_agg(state = 'draining' ORDER BY session_id) AS draining
            FROM barnabas.sessions WHERE state <> 'fenced') AS member,
        (SELECT
            array_agg(partition_id ORDER BY partition_id) FILTER (WHERE NOT is_deleted)
                AS partitions,
            array_agg(leader_session ORDER BY partition_id) FILTER (WHERE NOT is_deleted)
                AS sessions,
            array_agg(leader_epoch ORDER BY partition_id) FILTER (WHERE NOT is_deleted) AS epochs,
            array_agg(wanted_node ORDER BY partition_id) FILTER (WHERE NOT is_deleted) AS wanted,
            array_agg(pinned_node ORDER BY partition_id) FILTER (WHERE NOT is_deleted) AS pinned,
            array_agg(partition_id ORDER BY partition_id) FILTER (WHERE is_deleted) AS gone
            FROM barnabas.partitions WHERE changed_in > since) AS led;
$$;
