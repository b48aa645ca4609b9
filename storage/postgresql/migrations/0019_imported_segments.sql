-- Segments that an import puts into the object store: no byte of them is anywhere else before.

-- Append a packed segment to a log. False, and nothing has changed: another session leads the
-- partition. Called again with the same number: whether the log has the segment.
CREATE FUNCTION barnabas.append_segment(
    of_session bigint, of_partition bigint, of_epoch integer, number bigint,
    base bigint, next bigint, batch_epoch integer, size integer, object_key text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    counter bigint;
    new_object bigint;
BEGIN
    counter := barnabas.lock_packing_lane(of_session);
    IF counter > number THEN
        PERFORM barnabas.confirm();
        RETURN EXISTS (SELECT 1 FROM barnabas.objects WHERE key = object_key AND live_extents > 0);
    END IF;
    IF NOT barnabas.lock_led(of_session, of_partition, of_epoch) THEN
        RETURN false;
    END IF;
    IF counter <> number THEN
        RAISE 'segment % of session % comes instead of %', number, of_session, counter
            USING ERRCODE = 'BB001';
    END IF;
    UPDATE barnabas.partitions SET log_end = next
        WHERE partition_id = of_partition AND log_end = base;
    IF NOT FOUND THEN
        RAISE 'partition % does not end at offset %', of_partition, base USING ERRCODE = 'BB001';
    END IF;
    UPDATE barnabas.lanes SET next_flush = number + 1
        WHERE session_id = of_session AND lane = 2;
    INSERT INTO barnabas.objects (session_id, key, live_extents, kind, size_bytes, footer_at)
        VALUES (of_session, object_key, 1, 'seg', size, size)
        RETURNING object_id INTO new_object;
    INSERT INTO barnabas.extents
        (partition_id, base_offset, next_offset, leader_epoch, object_id, position, length)
        VALUES (of_partition, base, next, batch_epoch, new_object, 0, size);
    RETURN true;
END $$;
