"""The newest state, once a second, over connections that stay."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace

import pytest

from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.console import live as module
from barnabas.broker.console.openapi import document
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.console.shapes import Overview
from barnabas.broker.coordination.coordinator_log import CoordinatorLog
from barnabas.broker.http import connection as http_connection
from barnabas.broker.http.server import STREAMS_MAX
from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, check, path
from tests.broker.console.test_rights import basic
from tests.broker.http.test_server import get, status_of
from tests.broker.security.access_users import (
    ADMIN,
    PASSWORD,
    UserClient,
    acl,
    add_acls,
    remove_acls,
    settings,
)
from tests.waiting import until

BOTH_LOOPS = True


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Seconds that are short."""
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.02)


class Events:
    """A stream as a browser reads it, of a client who names an old or a new HTTP."""

    def __init__(self, address, watch, authorization=None):
        self._address = address
        more = f"Authorization: {authorization}\r\n" if authorization else ""
        self._asked = f"GET {path('live', watch=watch)} HTTP/1.0\r\n{more}\r\n".encode()

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(*self._address, limit=1 << 22)
        self.writer.write(self._asked)
        try:
            self.head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 30)
        except BaseException:
            self.writer.close()
            raise
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    async def next(self):
        """Return the fields of the next event, or of a comment."""
        text = await asyncio.wait_for(self.reader.readuntil(b"\n\n"), 30)
        fields = dict(line.split(":", 1) for line in text.decode().splitlines() if line)
        return {name: value.strip() for name, value in fields.items()}

    async def state(self, event="state"):
        """Return the state that the next event reports."""
        while "event" not in (found := await self.next()):
            pass
        assert found["event"] == event, found
        return json.loads(found["data"])


def looking(broker):
    """The task that looks, if there is one."""
    return [each for each in asyncio.all_tasks() if "_refresh_while_watched" in str(each)]


async def test_changes_are_sent():
    async with Broker(config=HTTP) as broker:
        await broker.create_topic("orders", partitions=2)
        async with Events(broker.server.http.address, "topic:orders,overview") as events:
            assert events.head.startswith(b"HTTP/1.1 200 ")
            assert b"\r\nContent-Type: text/event-stream\r\n" in events.head
            assert b"\r\nCache-Control: no-store\r\n" in events.head
            assert await events.next() == {"retry": str(module.RETRY_MS)}
            first = await events.state()
            assert (first["watch"], first["state"]["partitions"]) == ("topic:orders", 2)
            schemas = document()["components"]["schemas"]
            check(first["state"], schemas["TopicDescription"])
            second = await events.state()
            assert second["watch"] == "overview"
            check(second["state"], schemas["Overview"])
            topic = broker.server.catalogue.topic("orders")
            await broker.server.catalogue.create_partitions("orders", 5)
            assert len(topic.partitions) == 5
            while (changed := await events.state())["watch"] != "topic:orders":
                pass
            assert changed["state"]["partitions"] == 5
            await broker.server.catalogue.delete_topic(topic.topic_id)
            while (found := await events.next()).get("event") != "refused":
                pass
            gone = json.loads(found["data"])
            assert gone["watch"] == "topic:orders"
            assert gone["error"]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_unchanged_state_is_not_sent_again(monkeypatch):
    monkeypatch.setattr(module, "COMMENT_SECONDS", 3)
    async with Broker(config=HTTP) as broker:
        await broker.create_topic("still")
        async with Events(broker.server.http.address, "topic:still") as events:
            assert "retry" in await events.next()
            number = (await events.next())["id"]
            for _ in range(3):
                assert await events.next() == {"": ""}, "a comment, every three seconds"
            assert number.isdigit()


async def test_state_is_gathered_only_for_viewers(monkeypatch):
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        assert not looking(broker)
        async with Events(address, "overview") as one, Events(address, "overview") as other:
            await one.state()
            await other.state()
            assert len(looking(broker)) == 1, "one look for all"
        await until(lambda: not looking(broker))
        async with Events(address, "overview") as again:
            await again.state()
        await until(lambda: not looking(broker))


async def test_state_of_several_viewers_is_gathered_once(monkeypatch):
    asked = []
    state = module.Live._state

    async def counted(self, watched, access):
        asked.append(self._number)
        return await state(self, watched, access)

    monkeypatch.setattr(module.Live, "_state", counted)
    async with Broker(config=HTTP) as broker, contextlib.AsyncExitStack() as stack:
        address = broker.server.http.address
        viewers = [await stack.enter_async_context(Events(address, "overview")) for _ in range(8)]
        for viewer in viewers:
            await viewer.state()
        assert len(asked) == len(set(asked))


async def test_probes_get_in_however_many_tabs_there_are():
    async with Broker(config=HTTP) as broker, contextlib.AsyncExitStack() as stack:
        address = broker.server.http.address
        tabs = []
        for _ in range(STREAMS_MAX + 8):
            tabs.append(await stack.enter_async_context(Events(address, "overview")))
            assert await status_of(address) == 200
        assert (await get(address, "/metrics"))[0] == 200
        assert (await get(address, "/api/v1/topics"))[0] == 200
        # The oldest had to go, the newest are shown what there is.
        assert len(broker.server.http._streams) == STREAMS_MAX
        for tab in tabs[8:]:
            await tab.state()
        for tab in tabs[:8]:
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(tab.reader.read(), 30)
                assert tab.reader.at_eof()


async def test_slow_viewer_is_skipped_then_disconnected(monkeypatch):
    # The bound is for both viewers: the reading one must not be disconnected on a busy machine.
    monkeypatch.setattr(http_connection, "ANSWER_SECONDS", 3)
    large = {f"series-{number}": 0.5 for number in range(5_000)}
    numbers = iter(range(10**9))

    async def overview(question):
        rates = {**large, "changes": float(next(numbers))}
        return Overview(1, "", 1, "", {}, {}, rates, 0, 0, 0, 0, 0, None, 0, None, 0, 0, None)

    (route,) = [each for each in ROUTES if each.watched == "overview"]
    watched = module.Watched("overview", replace(route, answering=overview), ())
    monkeypatch.setattr("barnabas.broker.console.application.read_watch", lambda _: (watched,))
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        async with Events(address, "overview") as slow, Events(address, "overview") as good:
            slow.writer.transport.pause_reading()
            for _ in range(20):
                await good.state()
            transports = [each._transport for each in broker.server.http._connections]
            sizes = sorted(each.get_write_buffer_size() for each in transports)
            assert sizes[-1] < 500_000, "two seconds' states at most wait for a slow reader"
            await until(lambda: len(broker.server.http._streams) == 1)
            await good.state()
        await until(lambda: not broker.server.http._connections)


async def test_a_browser_that_goes_is_noticed():
    async with (
        Broker(config=HTTP) as broker,
        Events(broker.server.http.address, "overview") as events,
    ):
        await events.state()
        events.writer.write_eof()
        await until(lambda: not broker.server.http._streams)


async def test_a_broker_that_stops_ends_its_streams():
    broker = Broker(config=HTTP)
    async with broker:
        events = await Events(broker.server.http.address, "overview").__aenter__()
        await events.state()
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(events.reader.read(), 30)
    events.writer.close()
    assert not looking(broker)


async def test_a_disk_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    async with Broker(config=HTTP) as broker:
        monkeypatch.setattr(CoordinatorLog, "when_all_durable", lambda log, waiter: None)
        async with Events(broker.server.http.address, "overview") as events:
            found = await events.state("refused")
            assert found["error"]["error"] == "REQUEST_TIMED_OUT"


async def test_a_bug_ends_the_streams_and_nothing_else(monkeypatch, caplog):
    async def broken(self, watched, access):
        raise ZeroDivisionError

    monkeypatch.setattr(module.Live, "_state", broken)
    async with Broker(config=HTTP) as broker:
        events = await Events(broker.server.http.address, "overview").__aenter__()
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(events.reader.read(), 30) == b""
        events.writer.close()
        assert "console refresh failed" in caplog.text
        assert await status_of(broker.server.http.address) == 200


@pytest.mark.parametrize(
    "watch",
    [
        "",
        "nothing",
        "topic",
        "overview:x",
        "overview,",
        "blocked-partitions",
        ",".join(f"topic:{n}" for n in range(9)),
    ],
)
async def test_invalid_watch_is_rejected(watch):
    async with Broker(config=HTTP) as broker:
        status, _, body = await get(broker.server.http.address, path("live", watch=watch))
        assert (status, json.loads(body)["error"]) == (400, "INVALID_REQUEST")


def test_names_with_commas_and_colons():
    (one, other) = module.read_watch("group:a%2Cb%3Ac%25,overview")
    assert one.names == (("group", "a,b:c%"),)
    assert other.names == ()
    assert len(module.read_watch("overview,overview")) == 1


def test_watched_objects_start_with_the_time():
    """The comparison of two states leaves out the first field."""
    for route in ROUTES:
        if route.watched:
            assert next(iter(route.shape.__dataclass_fields__)) == "as_of"


async def test_a_user_who_is_deleted_sees_no_more():
    users = settings([ADMIN])
    users |= {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "barnabas.scram.credentials": f"SCRAM-SHA-256=[name=viewer,password={PASSWORD}]",
        "super.users": f"User:{ADMIN};User:viewer",
    }
    async with Broker(config={**users, **HTTP}) as broker:
        address = broker.server.http.address

        def delete():
            gone = AlterUserScramCredentialsRequest([ScramCredentialDeletion("viewer", 1)], [])
            with UserClient(broker.address, ADMIN) as admin:
                (result,) = admin.ask(ALTER_USER_SCRAM_CREDENTIALS, gone, 0).results
                assert result.error_code == 0

        stays = Events(address, "overview", basic(ADMIN))
        async with Events(address, "overview", basic("viewer")) as events, stays:
            await events.state()
            await asyncio.get_running_loop().run_in_executor(None, delete)
            await broker.create_topic("unseen")
            with contextlib.suppress(ConnectionError):
                rest = await asyncio.wait_for(events.reader.read(), 30)
                assert b'"topics":1' not in rest
            await stays.state()
            await stays.state()
            assert len(broker.server.http._streams) == 1


async def test_rights_are_looked_at_every_second():
    config = {**settings([ADMIN, "viewer"]), **HTTP}
    assert config["authorizer.class.name"] == STANDARD_AUTHORIZER
    async with Broker(config=config) as broker:
        await broker.create_topic("seen")
        address = broker.server.http.address
        refused, _, _ = await get(address, path("live", watch="topic:seen"))
        assert refused == 401
        async with Events(address, "topic:seen", basic("viewer")) as events:
            assert events.head.startswith(b"HTTP/1.1 403 ")
        acls = [acl("viewer", ResourceType.TOPIC, "seen", Operation.DESCRIBE)]
        loop = asyncio.get_running_loop()

        def change(how):
            with UserClient(broker.address, ADMIN) as admin:
                how(admin, acls)

        await loop.run_in_executor(None, change, add_acls)
        async with Events(address, "topic:seen", basic("viewer")) as events:
            assert (await events.state())["state"]["topic"] == "seen"
            await loop.run_in_executor(None, change, remove_acls)
            while (found := await events.next()).get("event") != "refused":
                pass
            assert "TOPIC_AUTHORIZATION_FAILED" in found["data"]
