-- What is durable of every partition, who may write it, and in which order.
--
-- Rules of these functions:
--
-- 1. Each is one statement of its caller's, in a transaction of its own, at READ COMMITTED: every
--    statement in it sees what was committed when its locks were granted.
-- 2. Locks are taken in one order: that of upkeep, the counter of a lane, sessions in ascending id,
--    partitions in ascending id, the picture. Flushes wait for nothing while they hold a partition.
-- 3. Whoever was not answered calls again with the same arguments, and is told what came of the
--    first call (F3). An answer that somebody acts upon is a commit of its own, on a row that is
--    written for that: what is only read may be gone after a failover, for what can be seen on a
--    primary need not have reached its standby. Who reads to act upon it writes a message to the
--    write-ahead log: once that has reached the standby, what was seen has.
-- 4. Time is this server's. No broker's clock decides who writes.
-- 5. What no order of events explains raises BB001: the caller has a bug.

-- One row for each life of a broker.
CREATE TABLE barnabas.sessions (
    session_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token uuid NOT NULL UNIQUE,
    node_id integer NOT NULL CHECK (node_id >= 0),
    state text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'draining', 'fenced')),
    endpoints text NOT NULL
);
CREATE UNIQUE INDEX one_session_of_a_node ON barnabas.sessions (node_id) WHERE state <> 'fenced';

-- Apart from the sessions, whose rows every flush shares.
CREATE TABLE barnabas.leases (
    session_id bigint PRIMARY KEY REFERENCES barnabas.sessions,
    lease_until timestamptz NOT NULL,
    lease_ms integer NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE barnabas.lanes (
    session_id bigint NOT NULL REFERENCES barnabas.sessions,
    lane smallint NOT NULL CHECK (lane IN (0, 1)),
    next_flush bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, lane)
) WITH (fillfactor = 50);

CREATE TABLE barnabas.partitions (
    partition_id bigint PRIMARY KEY,
    leader_session bigint REFERENCES barnabas.sessions,
    leader_epoch integer NOT NULL DEFAULT -1,
    log_start bigint NOT NULL DEFAULT 0,
    log_end bigint NOT NULL DEFAULT 0,
    -- Nobody leads it again.
    is_deleted boolean NOT NULL DEFAULT false,
    CHECK (0 <= log_start AND log_start <= log_end)
) WITH (fillfactor = 50);

-- What one flush brought: in the row itself, or named by the key of an object elsewhere.
CREATE TABLE barnabas.objects (
    object_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id bigint NOT NULL,
    key text UNIQUE,
    payload bytea,
    live_extents integer NOT NULL,
    CHECK ((key IS NULL) <> (payload IS NULL))
);
-- Producers have compressed what is worth it.
ALTER TABLE barnabas.objects ALTER COLUMN payload SET STORAGE EXTERNAL;

-- The offsets [base, next) of a partition lie in an object, at a position.
CREATE TABLE barnabas.extents (
    partition_id bigint NOT NULL,
    base_offset bigint NOT NULL,
    next_offset bigint NOT NULL,
    leader_epoch integer NOT NULL,
    object_id bigint NOT NULL,
    position integer NOT NULL CHECK (position >= 0),
    length integer NOT NULL CHECK (length > 0),
    PRIMARY KEY (partition_id, base_offset),
    CHECK (base_offset < next_offset)
);

-- ------------------------------------------------------------------------------------- reading

CREATE FUNCTION barnabas.read_partition(
    of_partition bigint, OUT leader_session bigint, OUT leader_epoch integer,
    OUT log_start bigint, OUT log_end bigint
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_logical_emit_message(true, 'barnabas', '');
    RETURN QUERY SELECT led.leader_session, led.leader_epoch, led.log_start, led.log_end
        FROM barnabas.partitions AS led WHERE led.partition_id = of_partition;
END $$;

-- Extents that reach beyond an offset, in order, with the bytes that lie here: those before which
-- there are fewer than `most_bytes`.
CREATE FUNCTION barnabas.read_extents(
    of_partition bigint, from_offset bigint, most integer, most_bytes bigint,
    OUT base_offset bigint, OUT next_offset bigint, OUT leader_epoch integer, OUT data bytea
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_logical_emit_message(true, 'barnabas', '');
    RETURN QUERY SELECT part.base_offset, part.next_offset, part.leader_epoch,
            substring(object.payload FROM part.position + 1 FOR part.length)
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

-- ----------------------------------------------------------------------------------- the flush

-- Commit what a session placed: flush number `flush` of its lane. An item is the offsets
-- [base, next) of a partition in an epoch, and where in the object they lie; a start is a
-- partition's new log start. `refused` are the partitions that somebody else leads.
CREATE FUNCTION barnabas.commit_flush(
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
