-- The parts of many logs in one call: a broker that takes over the logs of another one reads those of
-- all of them at once.

-- Up to `most` parts of each partition that reach beyond its offset, in order.
CREATE FUNCTION barnabas.read_log_parts(
    of_partitions bigint[], from_offsets bigint[], most integer,
    OUT partition_id bigint, OUT base_offset bigint, OUT next_offset bigint, OUT facts bytea
) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    PERFORM barnabas.confirm();
    RETURN QUERY SELECT named.id, part.base_offset, part.next_offset, part.facts
        FROM unnest(of_partitions, from_offsets) AS named (id, from_offset)
            CROSS JOIN LATERAL (
                SELECT each.base_offset, each.next_offset, each.facts
                FROM barnabas.log_parts AS each
                WHERE each.partition_id = named.id AND each.next_offset > named.from_offset
                ORDER BY each.base_offset LIMIT most
            ) AS part;
END $$;
