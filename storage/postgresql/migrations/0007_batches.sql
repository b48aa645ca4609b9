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
            changed_in = changed,
            led_in = CASE WHEN asked.taker IS NULL THEN part.led_in ELSE changed END
        FROM (
            SELECT partition_id, CASE WHEN session_id = ANY (taking) THEN session_id END AS taker
            FROM unnest(of_partitions, new_sessions) AS named (partition_id, session_id)
        ) AS asked
        WHERE part.partition_id = asked.partition_id AND part.partition_id = ANY (changing);
END $$;

-- A partition as its next leader reads it: what is known of it, its snapshot, and one of its first
-- extents. It has as many rows as there are extents, or one without any; the first has the snapshot.
CREATE TYPE barnabas.beginning AS (
    partition_id bigint, leader_session bigint, leader_epoch integer,
    log_start bigint, log_end bigint,
    snapshot_offset bigint, producers bytea, leader_epochs bytea,
    base_offset bigint, next_offset bigint, extent_epoch integer, data bytea
);

-- The beginnings of those partitions that there are, all as of one moment: by id, the first one and
-- those whose snapshots fit into `most_bytes` with the snapshots before them; up to `most` of the
-- extents of each that are needed, in order, with the bytes that lie here; and of all together the
-- first one and what has, with the snapshots, up to `most_bytes`.
CREATE FUNCTION barnabas.read_beginnings(of_partitions bigint[], most integer, most_bytes bigint)
RETURNS SETOF barnabas.beginning LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY
        WITH named AS MATERIALIZED (
            SELECT led.*, known.next_offset AS snapshot_offset, known.producers,
                known.leader_epochs,
                CASE WHEN known.next_offset IS NULL THEN 0
                    ELSE least(led.log_start, known.next_offset) END AS needless_offset,
                row_number() OVER by_id AS place,
                sum(coalesce(
                    octet_length(known.producers) + octet_length(known.leader_epochs), 0
                )) OVER by_id AS bytes_so_far
            FROM barnabas.partitions AS led
                LEFT JOIN barnabas.snapshots AS known ON known.partition_id = led.partition_id
            WHERE led.partition_id = ANY (of_partitions)
            WINDOW by_id AS (ORDER BY led.partition_id)
        ), head AS MATERIALIZED (
            SELECT * FROM named AS each WHERE each.place = 1 OR each.bytes_so_far <= most_bytes
        ), carried AS MATERIALIZED (
            SELECT coalesce(max(head.bytes_so_far), 0) AS length FROM head
        ), part AS (
            SELECT extent.*,
                row_number() OVER (
                    PARTITION BY extent.partition_id ORDER BY extent.base_offset
                ) AS place,
                sum(extent.length) OVER (ORDER BY extent.partition_id, extent.base_offset)
                    - extent.length AS bytes_before
            FROM head CROSS JOIN LATERAL (
                SELECT * FROM barnabas.extents AS each
                WHERE each.partition_id = head.partition_id
                    AND each.next_offset > head.needless_offset
                ORDER BY each.base_offset LIMIT most
            ) AS extent
        )
        SELECT head.partition_id, head.leader_session, head.leader_epoch,
            head.log_start, head.log_end,
            head.snapshot_offset,
            CASE WHEN part.place > 1 THEN NULL ELSE head.producers END,
            CASE WHEN part.place > 1 THEN NULL ELSE head.leader_epochs END,
            part.base_offset, part.next_offset, part.leader_epoch,
            substring(object.payload FROM part.position + 1 FOR part.length)
        FROM head
            CROSS JOIN carried
            LEFT JOIN part
                ON part.partition_id = head.partition_id
                    AND part.bytes_before
                        < greatest(most_bytes - carried.length, least(most_bytes, 1))
            LEFT JOIN barnabas.objects AS object ON object.object_id = part.object_id
        ORDER BY head.partition_id, part.base_offset;
END $$;

-- The same of partitions that have come to a session since a version of the picture, which leads
-- them, and is to lead them on: of the first `most_logs` of them, without any whose snapshot is larger
-- than all that is asked for.
CREATE FUNCTION barnabas.read_gained(
    since bigint, of_session bigint, most_logs integer, most integer, most_bytes bigint
) RETURNS SETOF barnabas.beginning LANGUAGE plpgsql AS $$
DECLARE
    gained bigint[];
BEGIN
    PERFORM barnabas.confirm();
    SELECT array_agg(led.partition_id) INTO gained
        FROM (
            SELECT partition_id FROM barnabas.partitions
            -- What has come has changed, and of that there is an index.
            WHERE changed_in > since AND led_in > since
                AND leader_session = of_session AND wanted_node IS NULL
            ORDER BY partition_id LIMIT most_logs
        ) AS led LEFT JOIN barnabas.snapshots AS known ON known.partition_id = led.partition_id
        WHERE coalesce(octet_length(known.producers) + octet_length(known.leader_epochs), 0)
            <= most_bytes;
    IF gained IS NOT NULL THEN
        RETURN QUERY SELECT * FROM barnabas.read_beginnings(gained, most, most_bytes);
    END IF;
END $$;
