-- Many partitions at a time: what is handed over, and what is read by who comes to lead it.

-- Let go of partitions that are led in these epochs, each of them named once: the sessions
-- `new_sessions` lead them in the next ones, or nobody does where that is NULL or takes nothing more.
CREATE FUNCTION barnabas.hand_over(
    old_session bigint, of_partitions bigint[], of_epochs integer[], new_sessions bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    taking bigint[];
    changing bigint[];
    changed bigint;
BEGIN
    SELECT array_agg(session_id) INTO taking FROM (
        SELECT session_id FROM barnabas.sessions
        WHERE session_id = ANY (new_sessions) AND state = 'live'
        ORDER BY session_id FOR SHARE
    ) AS live;
    PERFORM 1 FROM barnabas.partitions WHERE partition_id = ANY (of_partitions)
        ORDER BY partition_id FOR UPDATE;
    SELECT array_agg(partition_id) INTO changing
        FROM unnest(of_partitions, of_epochs) AS asked (partition_id, epoch)
        JOIN barnabas.partitions AS part USING (partition_id)
        WHERE part.leader_session = old_session AND part.leader_epoch = asked.epoch;
    IF changing IS NULL THEN
        PERFORM barnabas.confirm();
        RETURN;
    END IF;
    changed := barnabas.change_picture();
    UPDATE barnabas.partitions AS part
        SET leader_session = asked.taker,
            leader_epoch = CASE WHEN asked.taker IS NULL
                THEN part.leader_epoch ELSE part.leader_epoch + 1 END,
            wanted_node = CASE WHEN asked.taker IS NULL THEN part.wanted_node END,
            changed_in = changed
        FROM (
            SELECT partition_id, CASE WHEN session_id = ANY (taking) THEN session_id END AS taker
            FROM unnest(of_partitions, new_sessions) AS named (partition_id, session_id)
        ) AS asked
        WHERE part.partition_id = asked.partition_id AND part.partition_id = ANY (changing);
END $$;

-- What is known of partitions, with their snapshots; those that there are.
CREATE FUNCTION barnabas.read_heads(
    of_partitions bigint[],
    OUT partition_id bigint, OUT leader_session bigint, OUT leader_epoch integer,
    OUT log_start bigint, OUT log_end bigint,
    OUT snapshot_offset bigint, OUT producers bytea, OUT leader_epochs bytea
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT led.partition_id, led.leader_session, led.leader_epoch,
            led.log_start, led.log_end, known.next_offset, known.producers, known.leader_epochs
        FROM barnabas.partitions AS led
            LEFT JOIN barnabas.snapshots AS known ON known.partition_id = led.partition_id
        WHERE led.partition_id = ANY (of_partitions);
END $$;

-- The first extents of each partition that reach beyond its offset, in order, with the bytes that
-- lie here: up to `most` of each, and of all together the first one and what has up to `most_bytes`.
CREATE FUNCTION barnabas.read_first_extents(
    of_partitions bigint[], from_offsets bigint[], most integer, most_bytes bigint,
    OUT partition_id bigint, OUT base_offset bigint, OUT next_offset bigint,
    OUT leader_epoch integer, OUT data bytea
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT part.partition_id, part.base_offset, part.next_offset, part.leader_epoch,
            substring(object.payload FROM part.position + 1 FOR part.length)
        FROM (
            SELECT extent.*, sum(extent.length) OVER so_far - extent.length AS bytes_before
            FROM unnest(of_partitions, from_offsets) AS asked (of_partition, from_offset)
                CROSS JOIN LATERAL (
                    SELECT * FROM barnabas.extents AS each
                    WHERE each.partition_id = asked.of_partition
                        AND each.next_offset > asked.from_offset
                    ORDER BY each.base_offset LIMIT most
                ) AS extent
            WINDOW so_far AS (ORDER BY extent.partition_id, extent.base_offset)
        ) AS part JOIN barnabas.objects AS object USING (object_id)
        WHERE part.bytes_before < most_bytes
        ORDER BY part.partition_id, part.base_offset;
END $$;
