-- Packing of extents into one that stays a row.

-- As with `keeps_size` false before. With it, false as well if the extents have another size than the
-- payload: packing changes no byte (F12), so the store's copy was compacted meanwhile.
CREATE FUNCTION barnabas.replace_extents(
    of_session bigint, of_partition bigint, of_epoch integer,
    bases bigint[], nexts bigint[], epochs integer[], positions integer[], lengths integer[],
    object_payload bytea, keeps_size boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    total bigint;
BEGIN
    -- No other call replaces extents meanwhile.
    PERFORM barnabas.lock_upkeep();
    IF keeps_size THEN
        SELECT sum(length) INTO total FROM barnabas.extents
            WHERE partition_id = of_partition
                AND base_offset >= bases[1] AND base_offset < nexts[cardinality(nexts)];
        IF total <> octet_length(object_payload) THEN
            PERFORM barnabas.confirm();
            RETURN false;
        END IF;
    END IF;
    RETURN barnabas.replace_extents(
        of_session, of_partition, of_epoch, bases, nexts, epochs, positions, lengths,
        object_payload
    );
END $$;
