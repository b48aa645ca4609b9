"""A server that says that its disk is full, on every flush, until there is room."""

from tests.counterparts.postgresql_servers import Server
from tests.postgresql.full_disk import goes_on_once_there_is_room

NO_ROOM = 'could not extend file "base/5/16449": No space left on device'
FULL = f"""
CREATE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE '{NO_ROOM}' USING ERRCODE = 'disk_full', HINT = 'Check free disk space.';
END $$;
CREATE TRIGGER no_room BEFORE INSERT ON barnabas.objects EXECUTE FUNCTION public.no_room();
"""
ROOM = "DROP TRIGGER no_room ON barnabas.objects"


def test_nothing_is_lost_when_there_is_no_room(tmp_path):
    with Server() as server:
        goes_on_once_there_is_room(
            tmp_path, server, lambda: server.execute(FULL), lambda: server.execute(ROOM), NO_ROOM
        )
