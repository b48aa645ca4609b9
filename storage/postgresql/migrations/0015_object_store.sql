-- Which object store the records of the cluster are in, and which brokers have it.
--
-- Rules of these functions, besides those of the flushes and of membership:
--
-- 1. Records are put into an object store only while every session that has not ended has that store.
--    A session that finds this so begins its use. From then on no broker registers without it. So no
--    broker leads a partition whose records it cannot read.
-- 2. The use ends, or another store takes its place, when a broker registers with another setting while
--    no other session has the store; without any store only if no record is in it.
-- 3. Both decide under the lock of the sessions that registration holds.
-- 4. The ID of a session that has a store is drawn, up to 10^9 above the last one. Keys of objects have
--    it, and are used once (F7): without that a database that is restored to an earlier moment would
--    give the IDs of the lost sessions again, whose uploads may exist, or arrive late.

CREATE TABLE barnabas.object_store (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- The store in use, or NULL; empty if it was in use before this table had its address.
    address text
);
INSERT INTO barnabas.object_store (address)
    SELECT CASE WHEN EXISTS (
        SELECT 1 FROM barnabas.objects WHERE key IS NOT NULL AND size_bytes IS NOT NULL
    ) THEN '' END;

-- The object store that the broker of a session has.
ALTER TABLE barnabas.sessions ADD COLUMN object_store text;

-- Refuse a node that lacks the object store in use, unless nothing needs that any more.
CREATE FUNCTION barnabas.admit_store(of_node integer, own_store text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    used text;
    is_needed boolean;
BEGIN
    SELECT address INTO used FROM barnabas.object_store FOR UPDATE;
    IF used IS NULL OR used = own_store THEN
        RETURN;
    END IF;
    -- No other broker may run that would end the sessions of dead ones.
    PERFORM barnabas.fence_expired();
    is_needed := EXISTS (
        SELECT 1 FROM barnabas.sessions
        WHERE state <> 'fenced' AND node_id <> of_node AND object_store = used
    ) OR own_store IS NULL AND EXISTS (
        SELECT 1 FROM barnabas.objects WHERE key IS NOT NULL AND size_bytes IS NOT NULL
    );
    IF is_needed THEN
        RAISE 'the brokers of the cluster keep records in the object store %, and barnabas.storage of'
            ' broker % is %: set it to the value that the other brokers have',
            used, of_node, coalesce(own_store, 'not set') USING ERRCODE = 'BB002';
    END IF;
    UPDATE barnabas.object_store SET address = own_store;
END $$;

-- Begin a session, and end the one that the node had before. Called again with a token, it returns
-- what it returned first.
CREATE FUNCTION barnabas.register(
    new_token uuid, new_node_id integer, new_endpoints text, lease_ms integer, own_store text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    registered bigint;
    ids regclass := pg_get_serial_sequence('barnabas.sessions', 'session_id');
BEGIN
    -- No other broker registers or is fenced meanwhile; flushes and heartbeats go on.
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    UPDATE barnabas.sessions SET token = token WHERE token = new_token
        RETURNING session_id INTO registered;
    IF FOUND THEN
        RETURN registered;
    END IF;
    PERFORM barnabas.admit_store(new_node_id, own_store);
    UPDATE barnabas.sessions SET state = 'fenced'
        WHERE node_id = new_node_id AND state <> 'fenced';
    IF own_store IS NOT NULL THEN
        PERFORM setval(ids, nextval(ids) + floor(random() * 1000000000)::bigint);
    END IF;
    INSERT INTO barnabas.sessions (token, node_id, endpoints, object_store)
        VALUES (new_token, new_node_id, new_endpoints, own_store)
        RETURNING session_id INTO registered;
    INSERT INTO barnabas.leases
        VALUES (registered, clock_timestamp() + lease_ms * interval '1 ms', lease_ms);
    INSERT INTO barnabas.lanes (session_id, lane) VALUES (registered, 0), (registered, 1);
    PERFORM barnabas.change_picture();
    -- A call for a new node ID holds the picture, too.
    INSERT INTO barnabas.nodes VALUES (new_node_id) ON CONFLICT DO NOTHING;
    RETURN registered;
END $$;

-- As imports and brokers of earlier releases call it: they have no object store.
CREATE OR REPLACE FUNCTION barnabas.register(
    new_token uuid, new_node_id integer, new_endpoints text, lease_ms integer
) RETURNS bigint LANGUAGE sql AS $$
    SELECT barnabas.register(new_token, new_node_id, new_endpoints, lease_ms, NULL);
$$;

-- Begin the use of a session's object store. Returns the nodes that lack it: then it has not begun.
CREATE FUNCTION barnabas.begin_objects(of_session bigint) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    own_store text;
    lacking integer[];
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    SELECT object_store INTO own_store FROM barnabas.sessions
        WHERE session_id = of_session AND state <> 'fenced';
    SELECT coalesce(array_agg(node_id ORDER BY node_id), '{}') INTO lacking
        FROM barnabas.sessions WHERE state <> 'fenced' AND object_store IS DISTINCT FROM own_store;
    IF own_store IS NULL OR cardinality(lacking) > 0 THEN
        PERFORM barnabas.confirm();
    ELSE
        UPDATE barnabas.object_store SET address = own_store;
    END IF;
    RETURN lacking;
END $$;

-- A flush or a segment whose session has not begun the use of its store is a bug of the broker.
CREATE FUNCTION barnabas.require_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM barnabas.object_store WHERE address IS NOT NULL;
    IF NOT FOUND THEN
        RAISE 'session % names object %, and no object store is in use', NEW.session_id, NEW.key
            USING ERRCODE = 'BB001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER require_store BEFORE INSERT ON barnabas.objects
    FOR EACH ROW WHEN (NEW.size_bytes IS NOT NULL) EXECUTE FUNCTION barnabas.require_store();
