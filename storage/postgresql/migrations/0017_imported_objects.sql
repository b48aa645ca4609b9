-- Imports into the object store of a cluster.
--
-- The import begins the use of its store: no broker runs that could lack it, and those that start
-- afterwards must have it (0015). The ID of its session is drawn as that of a broker, since the
-- cluster keeps the ID of the directory, which may be imported again into another database.
CREATE FUNCTION barnabas.begin_import(
    new_token uuid, new_node_id integer, own_store text, OUT outcome text, OUT session bigint
) LANGUAGE plpgsql AS $$
DECLARE
    ids regclass := pg_get_serial_sequence('barnabas.sessions', 'session_id');
BEGIN
    LOCK TABLE barnabas.sessions IN SHARE ROW EXCLUSIVE MODE;
    IF own_store IS NOT NULL THEN
        PERFORM setval(ids, nextval(ids) + floor(random() * 1000000000)::bigint);
    END IF;
    SELECT begun.outcome, begun.session INTO outcome, session
        FROM barnabas.begin_import(new_token, new_node_id) AS begun;
    IF outcome = 'begun' THEN
        UPDATE barnabas.object_store SET address = own_store;
    END IF;
END $$;
