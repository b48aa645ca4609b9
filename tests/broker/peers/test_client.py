"""Requests to a peer that responds, or fails, in every way: each completes once, with the truth."""

from __future__ import annotations

import asyncio
import struct

import pytest

from barnabas.broker.cluster.peers.interface import Failure, NoAnswer, Purpose
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from tests.broker.peers.scripted import (
    NODE,
    SESSION,
    TIMEOUT_MS,
    VERSIONS,
    ScriptedPeer,
    answer,
    echo,
    number_of,
    question,
)
from tests.cycles import cycles
from tests.waiting import until

MARKERS, VERIFICATION = Purpose.MARKERS, Purpose.VERIFICATION


def failure(told, kind, *, was_sent):
    assert isinstance(told, NoAnswer), told
    assert (told.failure, told.was_sent) == (kind, was_sent), told
    assert told.reason
    assert "\n" not in told.reason
    return told.reason


async def turns():
    """Run all tasks that can run, while the client's clock is constant."""
    await asyncio.sleep(1)


# -------------------------------------------------------------------------------------- it works


async def test_a_question_is_answered_over_a_connection_that_begins_with_a_hello(peer, asking):
    peer.on_question = echo
    asking.ask(1)
    assert await asking.answer_to(1) == answer(1)
    (hello,) = peer.hellos
    assert (hello.node_id, hello.session, hello.purpose) == (1, SESSION, "markers")
    assert [number_of(each) for each in peer.asked] == [1]
    assert peer.asked[0].version == 2


async def test_the_next_question_goes_over_the_same_connection(peer, asking):
    peer.on_question = echo
    for number in range(1, 4):
        asking.ask(number)
        assert await asking.answer_to(number) == answer(number)
    assert len(peer.lines) == 1


async def test_requests_arrive_and_complete_in_order(peer, asking):
    peer.on_question = echo
    for number in range(50):
        asking.ask(number)
    await asking.answer_to(49)
    assert [number_of(each) for each in peer.asked] == list(range(50))
    assert asking.order == list(range(50))


async def test_each_purpose_has_a_connection_of_its_own_and_waits_for_no_other(peer, asking):
    request = AddPartitionsToTxnRequest()
    asking.ask(1)
    asking.ask(2, purpose=VERIFICATION, api=ADD_PARTITIONS_TO_TXN, version=4, request=request)
    asked = await asking.asked(2)
    second = next(each for each in asked if each.api is ADD_PARTITIONS_TO_TXN)
    assert second.version == 4
    second.answer(AddPartitionsToTxnResponse())
    assert await asking.answer_to(2) == AddPartitionsToTxnResponse()
    assert 1 not in asking.told
    assert sorted(each.purpose for each in peer.hellos) == ["markers", "verification"]
    assert len({each.number for each in peer.hellos}) == 2


async def test_an_answer_may_come_in_pieces(peer, asking):
    asking.ask(1)
    (asked,) = await asking.asked(1)
    for byte in asked.frame(answer(1)):
        asked.line.write(bytes([byte]))
        await asyncio.sleep(0)
    assert await asking.answer_to(1) == answer(1)


async def test_failing_callback_does_not_affect_other_requests(peer, asking):
    noted = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: noted.append(context))

    def fail(_answer):
        raise ZeroDivisionError("a bug")

    peer.on_question = echo
    asking.client.ask(NODE, MARKERS, asked_api(), 2, question(5), fail, timeout_ms=TIMEOUT_MS)
    asking.ask(1)
    assert await asking.answer_to(1) == answer(1)
    assert [type(each["exception"]) for each in noted] == [ZeroDivisionError]
    assert len(peer.lines) == 1


def asked_api():
    from barnabas.protocol.messages.write_txn_markers import WRITE_TXN_MARKERS

    return WRITE_TXN_MARKERS


# ------------------------------------------------------------------------------ late, and never


async def test_an_answer_that_does_not_come_in_time_ends_the_connection(peer, asking):
    asking.ask(1, timeout_ms=1000)
    asking.ask(2, timeout_ms=5000)
    await asking.asked(2)
    asking.clock.advance(milliseconds=999)
    await turns()
    assert not asking.told
    asking.clock.advance(milliseconds=1)
    failure(await asking.answer_to(1), Failure.LATE, was_sent=True)
    failure(await asking.answer_to(2), Failure.LOST, was_sent=True)
    await until(lambda: not peer.lines[0].is_open)


async def test_an_answer_that_comes_too_late_is_nobodys(peer, asking):
    asking.ask(1, timeout_ms=1000)
    (late,) = await asking.asked(1)
    asking.clock.advance(seconds=1)
    failure(await asking.answer_to(1), Failure.LATE, was_sent=True)
    late.answer(answer(1))
    peer.on_question = echo
    asking.ask(2)
    assert await asking.answer_to(2) == answer(2)
    assert [each.number for each in peer.hellos] == [1, 2]


async def test_request_without_hello_response_fails_at_timeout_unsent(peer, asking):
    peer.on_hello = lambda _asked: None
    asking.ask(1, timeout_ms=1000)
    await until(lambda: peer.hellos)
    asking.clock.advance(seconds=1)
    failure(await asking.answer_to(1), Failure.LATE, was_sent=False)
    assert not peer.asked


async def test_a_hello_that_is_not_answered_in_time_ends_the_attempt(peer, new_asking):
    asking = new_asking(connect_timeout_ms=2000)
    peer.on_hello = lambda _asked: None
    asking.ask(1)
    await until(lambda: peer.hellos)
    asking.clock.advance(seconds=2)
    failure(await asking.answer_to(1), Failure.UNREACHABLE, was_sent=False)
    await until(lambda: not peer.lines[0].is_open)


@pytest.mark.parametrize("closes", [False, True], ids=["no answer", "closed"])
async def test_attempt_that_fails_leaves_no_cycle(peer, new_asking, closes):
    """A client attempts once a second until the peer responds."""
    asking = new_asking(connect_timeout_ms=2000)
    peer.on_hello = lambda asked: asked.line.close() if closes else None
    with cycles() as found:
        asking.ask(1)
        await until(lambda: peer.hellos)
        asking.clock.advance(seconds=2)
        failure(await asking.answer_to(1), Failure.UNREACHABLE, was_sent=False)
        await turns()
    assert not found


async def test_the_time_of_an_attempt_that_was_given_up_ends_no_other(peer, new_asking):
    """The timeout of the cancelled attempt fires first after a pause of the process."""
    asking = new_asking(connect_timeout_ms=2000)
    peer.on_hello = lambda _asked: None
    asking.ask(1)
    await until(lambda: peer.hellos)
    other = ScriptedPeer()
    await other.start()
    other.on_question = echo
    asking.addresses[NODE] = lambda: other.address
    asking.ask(2)
    asking.clock.advance(seconds=2)
    assert await asking.answer_to(2) == answer(2)
    await other.stop()


async def test_the_time_of_an_attempt_that_was_given_up_finds_nothing(peer, new_asking):
    asking = new_asking(connect_timeout_ms=2000)
    peer.on_hello = lambda _asked: None
    asking.ask(1)
    await until(lambda: peer.hellos)
    asking.client.forget(NODE)
    asking.clock.advance(seconds=2)
    failure(await asking.answer_to(1), Failure.UNKNOWN_NODE, was_sent=False)


# ------------------------------------------------------------------------------ cut, and refused


async def test_sent_requests_fail_when_connection_is_cut(peer, asking):
    asking.ask(1)
    asking.ask(2)
    (first, _) = await asking.asked(2)
    first.line.close()
    for number in (1, 2):
        failure(await asking.answer_to(number), Failure.LOST, was_sent=True)
    peer.on_question = echo
    asking.ask(3)
    assert await asking.answer_to(3) == answer(3)
    assert [number_of(each) for each in peer.asked] == [1, 2, 3], "nothing is repeated from here"


@pytest.mark.parametrize("cut", [0, 3, 4, 10, -1])
async def test_an_answer_that_is_cut_in_the_middle_is_none(peer, asking, cut):
    asking.ask(1)
    (asked,) = await asking.asked(1)
    asked.line.write(asked.frame(answer(1))[:cut])
    asked.line.close()
    failure(await asking.answer_to(1), Failure.LOST, was_sent=True)


async def test_a_peer_that_closes_during_the_hello_is_unreachable(peer, asking):
    peer.on_hello = lambda asked: asked.line.close()
    asking.ask(1)
    failure(await asking.answer_to(1), Failure.UNREACHABLE, was_sent=False)


async def test_refused_connection_fails_all_waiting_requests(peer, asking):
    await peer.stop()
    asking.ask(1)
    asking.ask(2)
    for number in (1, 2):
        failure(await asking.answer_to(number), Failure.UNREACHABLE, was_sent=False)


async def test_invalid_address_fails_request(asking, caplog):
    asking.addresses[8] = lambda: ("a" * 64 + ".example", 9092)
    asking.ask(1, node=8)
    failure(await asking.answer_to(1), Failure.UNREACHABLE, was_sent=False)


async def test_unknown_node_fails_request(peer, asking):
    asking.ask(1, node=8)
    failure(await asking.answer_to(1), Failure.UNKNOWN_NODE, was_sent=False)
    assert not peer.lines


# ---------------------------------------------------------------------------------- not an answer


def wrong_correlation_id(asked):
    frame = bytearray(asked.frame(answer(1)))
    struct.pack_into(">i", frame, 4, asked.correlation_id + 1)
    return bytes(frame)


def more_than_the_answer(asked):
    frame = bytearray(asked.frame(answer(1)) + b"xyz")
    struct.pack_into(">i", frame, 0, len(frame) - 4)
    return bytes(frame)


def of_another_api(asked):
    return asked._replace(api=END_TXN, version=0).frame(
        END_TXN.response.decode(memoryview(bytes(6)), 0, 0)
    )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(wrong_correlation_id, id="wrong correlation id"),
        pytest.param(more_than_the_answer, id="bytes left over"),
        pytest.param(of_another_api, id="of another API"),
        pytest.param(lambda _: struct.pack(">i", -1), id="negative length"),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="HTTP"),
        pytest.param(lambda _: b"\x15\x03\x03\x00\x02\x02\x50", id="a TLS alert"),
        pytest.param(lambda asked: asked.frame(answer(1))[:4] + bytes(99), id="zeros"),
    ],
)
async def test_malformed_response_ends_connection(peer, asking, data):
    asking.ask(1)
    (asked,) = await asking.asked(1)
    sent = data(asked)
    asked.line.write(sent if len(sent) > 8 else sent + bytes(64))
    failure(await asking.answer_to(1), Failure.LOST, was_sent=True)
    await until(lambda: not asked.line.is_open)
    peer.on_question = echo
    asking.ask(2)
    assert await asking.answer_to(2) == answer(2)


async def test_unrequested_response_ends_connection(peer, asking):
    asking.ask(1)
    (asked,) = await asking.asked(1)
    asked.line.write(asked.frame(answer(1)) * 2)
    assert await asking.answer_to(1) == answer(1)
    await until(lambda: not asked.line.is_open)


async def test_an_answer_that_is_too_large_is_not_waited_for(peer, new_asking):
    asking = new_asking(answer_bytes_max=1000)
    asking.ask(1)
    (asked,) = await asking.asked(1)
    asked.line.write(struct.pack(">i", 1001))
    assert "1001 bytes" in failure(await asking.answer_to(1), Failure.LOST, was_sent=True)


# --------------------------------------------------------------------------------- what is offered


async def test_unsupported_version_fails_that_request_only(peer, asking):
    peer.on_question = echo
    asking.ask(1)
    asking.ask(2, api=END_TXN, version=5, request=EndTxnRequest())
    asking.ask(3)
    assert "EndTxn 5" in failure(await asking.answer_to(2), Failure.UNSUPPORTED, was_sent=False)
    assert await asking.answer_to(3) == answer(3)
    assert len(peer.lines) == 1


async def test_a_version_that_we_do_not_have_is_a_mistake_of_the_caller(asking):
    with pytest.raises(KafkaError) as caught:
        asking.ask(1, version=3)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert not asking.told


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, Failure.NOT_LET_IN),
        (ErrorCode.UNSUPPORTED_VERSION, Failure.UNREACHABLE),
        (ErrorCode.INVALID_REQUEST, Failure.UNREACHABLE),
    ],
)
async def test_refused_hello_fails_request(peer, asking, code, kind):
    def refuse(asked):
        version = 0 if code is ErrorCode.UNSUPPORTED_VERSION else asked.version
        asked._replace(version=version).answer(ApiVersionsResponse(error_code=code))

    peer.on_hello = refuse
    asking.ask(1)
    assert code.name in failure(await asking.answer_to(1), kind, was_sent=False)
    await until(lambda: not peer.lines[0].is_open)


async def test_peer_with_tls_fails_request_with_hint(peer, asking):
    peer.on_hello = lambda asked: asked.line.write(b"\x15\x03\x03\x00\x02\x02\x50")
    asking.ask(1)
    reason = failure(await asking.answer_to(1), Failure.NOT_LET_IN, was_sent=False)
    assert "the listener expects TLS" in reason


# ---------------------------------------------------------------------------------------- pauses


async def attempts(asking, peer, number):
    """Send a request that fails, and return the number of connections at that time."""
    asking.ask(number)
    failure(await asking.answer_to(number), Failure.UNREACHABLE, was_sent=False)
    return len(peer.lines)


async def test_the_pause_between_attempts_doubles_up_to_its_limit(peer, asking):
    peer.on_hello = lambda asked: asked.line.close()
    assert await attempts(asking, peer, 1) == 1
    assert await attempts(asking, peer, 2) == 2, "the first failure is no reason to wait"
    for number, pause_ms in enumerate((50, 100, 200, 400, 800, 1000, 1000), 3):
        asking.ask(number)
        await turns()
        asking.clock.advance(milliseconds=pause_ms - 1)
        await turns()
        assert len(peer.lines) == number - 1
        assert number not in asking.told
        asking.clock.advance(milliseconds=2)
        failure(await asking.answer_to(number), Failure.UNREACHABLE, was_sent=False)
        assert len(peer.lines) == number


async def test_unreachable_peer_is_logged_once(peer, asking, caplog):
    peer.on_hello = lambda asked: asked.line.close()
    for number in (1, 2):
        await attempts(asking, peer, number)
    asking.clock.advance(seconds=1)
    await attempts(asking, peer, 3)
    peer.on_hello = lambda asked: asked.answer(VERSIONS)
    peer.on_question = echo
    asking.ask(4)
    await turns()
    asking.clock.advance(seconds=1)
    assert await asking.answer_to(4) == answer(4)
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning.startswith("no connection to broker 7 for markers: the peer has closed")


async def test_an_answer_ends_the_pauses(peer, asking):
    peer.on_hello = lambda asked: asked.line.close()
    for number in (1, 2):
        await attempts(asking, peer, number)
    peer.on_hello = lambda asked: asked.answer(VERSIONS)
    peer.on_question = echo
    asking.clock.advance(milliseconds=50)
    asking.ask(3)
    assert await asking.answer_to(3) == answer(3)
    peer.lines[-1].close()
    await until(lambda: not peer.lines[-1].is_open)
    await turns()
    asking.ask(4)
    assert await asking.answer_to(4) == answer(4)


async def test_a_connection_that_brings_no_answer_is_paused_for_too(peer, asking):
    peer.on_question = lambda asked: asked.line.close()
    asking.ask(1)
    failure(await asking.answer_to(1), Failure.LOST, was_sent=True)
    asking.ask(2)
    failure(await asking.answer_to(2), Failure.LOST, was_sent=True)
    asking.ask(3)
    await turns()
    assert len(peer.lines) == 2
    asking.clock.advance(milliseconds=50)
    failure(await asking.answer_to(3), Failure.LOST, was_sent=True)


async def test_link_without_requests_does_not_reconnect_after_pause(peer, asking):
    peer.on_hello = lambda asked: asked.line.close()
    for number in (1, 2):
        await attempts(asking, peer, number)
    asking.clock.advance(seconds=60)
    await turns()
    assert len(peer.lines) == 2


# ---------------------------------------------------------------------------------------- limits


async def test_no_more_questions_wait_than_may(peer, new_asking):
    asking = new_asking(questions_max=3)
    for number in range(1, 5):
        asking.ask(number)
    failure(await asking.answer_to(4), Failure.BUSY, was_sent=False)
    for each in await asking.asked(3):
        echo(each)
    assert await asking.answer_to(3) == answer(3)
    asking.ask(5)
    await asking.asked(4)


async def test_no_more_bytes_wait_than_may(peer, new_asking):
    size = sum(map(len, asked_api().encode_request(question(1), 2)))
    asking = new_asking(question_bytes_max=2 * size)
    for number in (1, 2, 3):
        asking.ask(number)
    failure(await asking.answer_to(3), Failure.BUSY, was_sent=False)
    for each in await asking.asked(2):
        echo(each)
    await asking.answer_to(2)
    for number in (4, 5):
        asking.ask(number)
    await asking.asked(4)


async def test_every_end_of_a_question_gives_its_place_back(peer, new_asking):
    asking = new_asking(questions_max=1, pause_first_ms=0, pause_max_ms=0)
    asking.ask(1, timeout_ms=10)
    await asking.asked(1)
    asking.clock.advance(milliseconds=10)
    failure(await asking.answer_to(1), Failure.LATE, was_sent=True)
    asking.ask(2)
    (_, second) = await asking.asked(2)
    second.line.close()
    failure(await asking.answer_to(2), Failure.LOST, was_sent=True)
    asking.ask(3, api=END_TXN, version=5, request=EndTxnRequest())
    failure(await asking.answer_to(3), Failure.UNSUPPORTED, was_sent=False)
    peer.on_hello = lambda asked: asked.line.close()
    peer.lines[-1].close()
    await turns()
    asking.ask(4)
    failure(await asking.answer_to(4), Failure.UNREACHABLE, was_sent=False)
    peer.on_hello = lambda asked: asked.answer(VERSIONS)
    peer.on_question = echo
    asking.ask(5)
    assert await asking.answer_to(5) == answer(5)


async def test_a_connection_without_questions_is_closed_and_made_again(peer, new_asking):
    asking = new_asking(idle_ms=60_000)
    peer.on_question = echo
    asking.ask(1)
    await asking.answer_to(1)
    asking.clock.advance(seconds=59)
    asking.ask(2)
    await asking.answer_to(2)
    asking.clock.advance(seconds=59)
    await turns()
    assert peer.lines[0].is_open
    asking.clock.advance(seconds=1)
    await until(lambda: not peer.lines[0].is_open)
    asking.ask(3)
    assert await asking.answer_to(3) == answer(3)
    assert [each.number for each in peer.hellos] == [1, 2]


async def test_a_connection_with_a_question_is_not_idle(peer, new_asking):
    asking = new_asking(idle_ms=1000)
    asking.ask(1)
    (asked,) = await asking.asked(1)
    asking.clock.advance(seconds=20)
    await turns()
    assert asked.line.is_open
    echo(asked)
    assert await asking.answer_to(1) == answer(1)


# ------------------------------------------------------------------------------ nodes come and go


async def test_a_node_that_has_moved_is_asked_at_its_new_address(peer, asking):
    asking.ask(1)
    await asking.asked(1)
    other = ScriptedPeer()
    await other.start()
    other.on_question = echo
    asking.addresses[NODE] = lambda: other.address
    asking.ask(2)
    failure(await asking.answer_to(1), Failure.LOST, was_sent=True)
    assert await asking.answer_to(2) == answer(2)
    assert [each.number for each in (*peer.hellos, *other.hellos)] == [1, 2]
    await until(lambda: not peer.lines[0].is_open)
    await other.stop()


async def test_a_node_that_has_left_is_forgotten(peer, asking):
    asking.ask(1)
    await asking.asked(1)
    asking.client.forget(NODE)
    failure(await asking.answer_to(1), Failure.UNKNOWN_NODE, was_sent=True)
    await until(lambda: not peer.lines[0].is_open)
    peer.on_question = echo
    asking.ask(2)
    assert await asking.answer_to(2) == answer(2)
    assert [each.number for each in peer.hellos] == [1, 2], "numbers rise over that, too"


async def test_a_node_that_is_not_known_any_more_is_forgotten_by_asking(peer, asking):
    asking.ask(1)
    await asking.asked(1)
    del asking.addresses[NODE]
    asking.ask(2)
    failure(await asking.answer_to(1), Failure.UNKNOWN_NODE, was_sent=True)
    failure(await asking.answer_to(2), Failure.UNKNOWN_NODE, was_sent=False)


async def test_close_fails_pending_and_later_requests(peer, asking):
    asking.ask(1)
    await asking.asked(1)
    peer.on_hello = lambda _asked: None
    asking.ask(2, purpose=VERIFICATION)
    await until(lambda: len(peer.hellos) == 2)
    await asking.client.close()
    failure(asking.told[1], Failure.CLOSED, was_sent=True)
    failure(asking.told[2], Failure.CLOSED, was_sent=False)
    asking.ask(3)
    failure(await asking.answer_to(3), Failure.CLOSED, was_sent=False)
    await until(lambda: not any(line.is_open for line in peer.lines))
    asking.clock.advance(hours=1)
    await turns()
    assert len(peer.lines) == 2
