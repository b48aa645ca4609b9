-- What readers need to know of the records before a partition's snapshot without reading them, so
-- that its next leader reads their bytes only when a client does.
--
-- Rules of these functions, besides those of upkeep:
--
-- 1. The parts of a partition touch each other, and end at its snapshot. They are of use while they
--    do: a snapshot without parts leaves parts that end before it, and such a log is read whole.
-- 2. Parts go with the snapshot. What is in them is the broker's; it has a checksum.

CREATE TABLE barnabas.log_parts (
    partition_id bigint NOT NULL,
    base_offset bigint NOT NULL,
    next_offset bigint NOT NULL,
    facts bytea NOT NULL,
    PRIMARY KEY (partition_id, base_offset),
    CHECK (base_offset < next_offset)
);

CREATE FUNCTION barnabas.forget_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE barnabas.log_parts;
    ELSE
        DELETE FROM barnabas.log_parts WHERE partition_id = OLD.partition_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_parts AFTER DELETE ON barnabas.snapshots
    FOR EACH ROW EXECUTE FUNCTION barnabas.forget_parts();
CREATE TRIGGER forget_all_parts AFTER TRUNCATE ON barnabas.snapshots
    FOR EACH STATEMENT EXECUTE FUNCTION barnabas.forget_parts();

-- Keep a snapshot with the parts of the log that its leader has on its disk, in order, which end at
-- the snapshot; without any, the log has to be read whole. False: another session leads it.
CREATE FUNCTION barnabas.put_snapshot(
    of_session bigint, of_partition bigint, of_epoch integer, at_offset bigint,
    new_producers bytea, new_leader_epochs bytea,
    bases bigint[], nexts bigint[], new_facts bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    kept_end bigint;
BEGIN
    IF NOT barnabas.put_snapshot(
        of_session, of_partition, of_epoch, at_offset, new_producers, new_leader_epochs
    ) THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM barnabas.snapshots
        WHERE partition_id = of_partition AND next_offset > at_offset;
    IF FOUND THEN
        RETURN true;
    END IF;
    IF cardinality(bases) = 0 THEN
        DELETE FROM barnabas.log_parts WHERE partition_id = of_partition;
        RETURN true;
    END IF;
    IF bases[2:] <> nexts[:cardinality(nexts) - 1] OR nexts[cardinality(nexts)] <> at_offset THEN
        RAISE 'parts of partition % that do not end at its snapshot', of_partition
            USING ERRCODE = 'BB001';
    END IF;
    DELETE FROM barnabas.log_parts
        WHERE partition_id = of_partition AND next_offset > bases[1];
    SELECT max(next_offset) INTO kept_end FROM barnabas.log_parts
        WHERE partition_id = of_partition;
    DELETE FROM barnabas.log_parts WHERE partition_id = of_partition AND (
        kept_end <> bases[1] OR next_offset <= (
            SELECT log_start FROM barnabas.partitions WHERE partition_id = of_partition
        )
    );
    INSERT INTO barnabas.log_parts
        SELECT of_partition, base, next, fact
        FROM unnest(bases, nexts, new_facts) AS part (base, next, fact);
    RETURN true;
END $$;

-- Up to `most` parts that reach beyond an offset, in order.
CREATE FUNCTION barnabas.read_log_parts(
    of_partition bigint, from_offset bigint, most integer,
    OUT base_offset bigint, OUT next_offset bigint, OUT facts bytea
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT part.base_offset, part.next_offset, part.facts
        FROM barnabas.log_parts AS part
        WHERE part.partition_id = of_partition AND part.next_offset > from_offset
        ORDER BY part.base_offset LIMIT most;
END $$;

-- The same as `read_beginnings`, but of a partition whose parts reach its snapshot the extents that
-- reach beyond that: `is_recent`.
CREATE TYPE barnabas.recent_beginning AS (
    partition_id bigint, leader_session bigint, leader_epoch integer,
    log_start bigint, log_end bigint,
    snapshot_offset bigint, producers bytea, leader_epochs bytea,
    base_offset bigint, next_offset bigint, extent_epoch integer, data bytea,
    is_recent boolean
);
CREATE FUNCTION barnabas.read_recent_beginnings(
    of_partitions bigint[], most integer, most_bytes bigint
) RETURNS SETOF barnabas.recent_beginning LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY
        WITH named AS MATERIALIZED (
            SELECT led.*, known.next_offset AS snapshot_offset, known.producers,
                known.leader_epochs,
                CASE WHEN known.next_offset IS NULL THEN 0
                    WHEN recent.is_so THEN known.next_offset
                    ELSE least(led.log_start, known.next_offset) END AS needless_offset,
                coalesce(recent.is_so, false) AS is_recent,
                row_number() OVER by_id AS place,
                sum(coalesce(
                    octet_length(known.producers) + octet_length(known.leader_epochs), 0
                )) OVER by_id AS bytes_so_far
            FROM barnabas.partitions AS led
                LEFT JOIN barnabas.snapshots AS known ON known.partition_id = led.partition_id
                LEFT JOIN LATERAL (
                    SELECT part.next_offset = known.next_offset
                        AND led.log_start < known.next_offset AS is_so
                    FROM barnabas.log_parts AS part WHERE part.partition_id = led.partition_id
                    ORDER BY part.base_offset DESC LIMIT 1
                ) AS recent ON true
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
            substring(object.payload FROM part.position + 1 FOR part.length),
            head.is_recent
        FROM head
            CROSS JOIN carried
            LEFT JOIN part
                ON part.partition_id = head.partition_id
                    AND part.bytes_before
                        < greatest(most_bytes - carried.length, least(most_bytes, 1))
            LEFT JOIN barnabas.objects AS object ON object.object_id = part.object_id
        ORDER BY head.partition_id, part.base_offset;
END $$;
