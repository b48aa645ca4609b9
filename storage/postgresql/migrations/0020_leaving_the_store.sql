-- A broker that is refused because records need the object store learns how a cluster leaves it.

-- As before (0015), except for the words.
CREATE OR REPLACE FUNCTION barnabas.admit_store(of_node integer, own_store text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    used text;
BEGIN
    SELECT address INTO used FROM barnabas.object_store FOR UPDATE;
    IF used IS NULL OR used = own_store THEN
        RETURN;
    END IF;
    -- No other broker may run that would end the sessions of dead ones.
    PERFORM barnabas.fence_expired();
    PERFORM 1 FROM barnabas.sessions
        WHERE state <> 'fenced' AND node_id <> of_node AND object_store = used;
    IF FOUND THEN
        RAISE 'the brokers of the cluster keep records in the object store %, and barnabas.storage of'
            ' broker % is %: set it to the value that the other brokers have',
            used, of_node, coalesce(own_store, 'not set') USING ERRCODE = 'BB002';
    END IF;
    IF own_store IS NULL THEN
        PERFORM 1 FROM barnabas.objects WHERE key IS NOT NULL AND size_bytes IS NOT NULL LIMIT 1;
        IF FOUND THEN
            RAISE 'records of the cluster are in the object store %, and barnabas.storage of broker %'
                ' is not set: set it. A cluster leaves its object store by ''barnabas cluster export'''
                ' and ''barnabas cluster import'' into another database',
                used, of_node USING ERRCODE = 'BB002';
        END IF;
    END IF;
    UPDATE barnabas.object_store SET address = own_store;
END $$;
