-- Requests of all brokers to the object store, by hour and operation: what they cost.

CREATE TABLE barnabas.object_requests (
    hour timestamptz NOT NULL,
    operation text NOT NULL,
    requests bigint NOT NULL,
    size_bytes bigint NOT NULL,
    PRIMARY KEY (hour, operation)
);

-- Add the requests that a broker has sent since its last call; those of more than 31 days ago go. A
-- call that is repeated because its result was lost counts twice: a bill has no need of more.
CREATE FUNCTION barnabas.add_object_requests(operations text[], counts bigint[], sizes bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    present timestamptz := date_trunc('hour', clock_timestamp(), 'UTC');
BEGIN
    -- In the same order in each call, so that no two wait for each other.
    INSERT INTO barnabas.object_requests AS known
        SELECT present, sent.operation, sent.requests, sent.size_bytes
        FROM unnest(operations, counts, sizes) AS sent (operation, requests, size_bytes)
        ORDER BY sent.operation
        ON CONFLICT (hour, operation) DO UPDATE SET
            requests = known.requests + excluded.requests,
            size_bytes = known.size_bytes + excluded.size_bytes;
    DELETE FROM barnabas.object_requests WHERE hour < present - interval '31 days';
    PERFORM barnabas.confirm();
END $$;
