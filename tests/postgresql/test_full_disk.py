"""A server whose disk takes nothing: each flush fails, and says why, until there is room."""

import pytest

from tests.counterparts.postgresql_servers import Server
from tests.postgresql.full_disk import goes_on_once_there_is_room

NO_ROOM = 'could not extend file "base/5/16449": No space left on device'
BROKEN = 'could not write block 7 in file "base/5/16449": Input/output error'
FAILING = """
CREATE FUNCTION public.failing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE '%(message)s' USING ERRCODE = '%(code)s';
END $$;
CREATE TRIGGER failing BEFORE INSERT ON barnabas.objects EXECUTE FUNCTION public.failing();
"""
MENDED = "DROP TRIGGER failing ON barnabas.objects"


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        ("53100", NO_ROOM, NO_ROOM),
        ("58030", BROKEN, f"its disk fails, or the server itself (error 58030): {BROKEN}"),
    ],
    ids=["full", "broken"],
)
def test_nothing_is_lost_when_nothing_can_be_written(tmp_path, code, message, words):
    with Server() as server:
        failing = FAILING % {"code": code, "message": message}
        goes_on_once_there_is_room(
            tmp_path,
            server,
            lambda: server.execute(failing),
            lambda: server.execute(MENDED),
            words,
        )
