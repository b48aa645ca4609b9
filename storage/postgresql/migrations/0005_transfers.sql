-- A cluster that is filled from the data directory of a broker, or written out to one.
--
-- Rules of these functions, besides those of the flushes:
--
-- 1. Brokers see all of it or nothing: none begins a session while an import has not been
--    completed, nor once the cluster was, or is being, written out. There is one history of its
--    topics, and one place that goes on with it.
-- 2. Whoever begins an import that was not completed begins it anew: what is there of it goes, and
--    who was at it is fenced.
-- 3. Locks are taken in this order: sessions, the transfer, all else. Who registers has the first.

-- What is under way, or was done last; the token is that of who does it.
CREATE TABLE barnabas.transfer (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    token uuid NOT NULL,
    direction text NOT NULL CHECK (direction IN ('in', 'out')),
    is_done boolean NOT NULL DEFAULT false
);

CREATE FUNCTION barnabas.refuse_session() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found barnabas.transfer;
BEGIN
    SELECT * INTO found FROM barnabas.transfer WHERE token <> NEW.token;
    IF found.direction = 'in' AND NOT found.is_done THEN
        RAISE 'the import of a data directory was not completed: import it again'
            USING ERRCODE = 'BB002';
    ELSIF found.direction = 'out' THEN
        RAISE 'this cluster was exported to a data directory, which may have gone on since:'
            ' ''barnabas cluster reopen'' has it served here again' USING ERRCODE = 'BB002';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse_session BEFORE INSERT ON barnabas.sessions
    FOR EACH ROW EXECUTE FUNCTION barnabas.refuse_session();

-- Whether a session goes on.
CREATE FUNCTION barnabas.is_in_use() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.fence_expired();
    PERFORM 1 FROM barnabas.sessions WHERE state <> 'fenced';
    RETURN FOUND;
END $$;

-- --------------------------------------------------------------------------------------- imports

-- Begin to fill this cluster, which has no topics, or only those of an import that was not
-- completed. `outcome`: begun, in use, or not empty. The session leads what is imported.
CREATE FUNCTION barnabas.begin_import(
    new_token uuid, new_node_id integer, OUT outcome text, OUT session bigint
) LANGUAGE plpgsql AS $$
DECLARE
    before barnabas.transfer;
    busy boolean;
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO before FROM barnabas.transfer FOR UPDATE;
    IF before.token = new_token THEN
        PERFORM barnabas.confirm();
        outcome := 'begun';
        SELECT session_id INTO session FROM barnabas.sessions WHERE token = new_token;
        RETURN;
    END IF;
    IF before.is_done OR before.direction IS DISTINCT FROM 'in' THEN
        busy := barnabas.is_in_use();
        PERFORM 1 FROM barnabas.topics;
        IF busy OR FOUND THEN
            outcome := CASE WHEN busy THEN 'in use' ELSE 'not empty' END;
            PERFORM barnabas.confirm();
            RETURN;
        END IF;
    END IF;
    UPDATE barnabas.sessions SET state = 'fenced' WHERE state <> 'fenced';
    TRUNCATE barnabas.extents, barnabas.objects, barnabas.snapshots, barnabas.collected,
        barnabas.partitions, barnabas.topics, barnabas.topic_partitions, barnabas.topic_configs,
        barnabas.broker_configs, barnabas.group_configs, barnabas.acls,
        barnabas.scram_credentials, barnabas.quotas, barnabas.secrets;
    DELETE FROM barnabas.transfer;
    INSERT INTO barnabas.transfer (token, direction) VALUES (new_token, 'in');
    session := barnabas.register(new_token, new_node_id, '', 60000);
    outcome := 'begun';
END $$;

-- Make logs that are led by an importing session, and begin at these offsets. False: another import
-- has begun.
CREATE FUNCTION barnabas.import_logs(
    of_session bigint, of_epoch integer, ids bigint[], bases bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    PERFORM 1 FROM barnabas.sessions
        WHERE session_id = of_session AND state <> 'fenced' FOR SHARE;
    IF NOT FOUND THEN
        PERFORM barnabas.confirm();
        RETURN false;
    END IF;
    changed := barnabas.change_picture();
    INSERT INTO barnabas.partitions
        (partition_id, leader_session, leader_epoch, log_start, log_end, changed_in)
        SELECT id, of_session, of_epoch, base, base, changed
        FROM unnest(ids, bases) AS log (id, base)
        ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Whether an import goes on; if so it does until the end of the transaction.
CREATE FUNCTION barnabas.lock_import(of_token uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM barnabas.transfer
        WHERE token = of_token AND direction = 'in' AND NOT is_done FOR SHARE;
    RETURN FOUND;
END $$;

-- Let brokers serve what was imported. False: another import has begun.
CREATE FUNCTION barnabas.end_import(of_token uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    is_mine boolean;
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    UPDATE barnabas.transfer SET is_done = true WHERE token = of_token;
    is_mine := FOUND;
    UPDATE barnabas.sessions SET state = 'fenced' WHERE token = of_token AND state <> 'fenced';
    IF FOUND THEN
        PERFORM barnabas.change_picture();
    ELSE
        PERFORM barnabas.confirm();
    END IF;
    RETURN is_mine;
END $$;

-- --------------------------------------------------------------------------------------- exports

-- Keep brokers away from now on. The outcome: begun, in use, or not whole.
CREATE FUNCTION barnabas.begin_export(new_token uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before barnabas.transfer;
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO before FROM barnabas.transfer FOR UPDATE;
    PERFORM barnabas.confirm();
    IF before.token = new_token THEN
        RETURN 'begun';
    END IF;
    IF before.direction = 'in' AND NOT before.is_done THEN
        RETURN 'not whole';
    END IF;
    IF barnabas.is_in_use() THEN
        RETURN 'in use';
    END IF;
    DELETE FROM barnabas.transfer;
    INSERT INTO barnabas.transfer (token, direction) VALUES (new_token, 'out');
    RETURN 'begun';
END $$;

-- Let brokers serve a cluster again that was exported.
CREATE FUNCTION barnabas.reopen() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    PERFORM barnabas.confirm();
    DELETE FROM barnabas.transfer WHERE direction = 'out';
    RETURN FOUND;
END $$;
