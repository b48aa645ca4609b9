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
