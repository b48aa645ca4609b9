"""InitProducerId for producers without a transactional id."""

import asyncio

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.storage.metastore.interface import PRODUCER_ID_BLOCK, MetaStoreRefused
from tests.broker.harness import Administration

NONE = ErrorCode.NONE


async def init(administration, version=5, transactional_id=None, timeout_ms=0, identity=(-1, -1)):
    request = InitProducerIdRequest(transactional_id, timeout_ms, *identity)
    return await administration.ask(INIT_PRODUCER_ID, request, version)


@pytest.mark.parametrize("version", range(6))
async def test_every_version_gives_a_new_id(administration, version):
    answers = [await init(administration, version) for _ in range(3)]
    assert [answer.error_code for answer in answers] == [NONE] * 3
    assert [answer.producer_epoch for answer in answers] == [0] * 3
    assert len({answer.producer_id for answer in answers}) == 3


@pytest.mark.parametrize("timeout_ms", [0, -5, 2**31 - 1])
async def test_the_timeout_does_not_matter(administration, timeout_ms):
    assert (await init(administration, timeout_ms=timeout_ms)).error_code == NONE


async def test_a_former_identity_gives_a_new_id_too(administration):
    answer = await init(administration, identity=(3, 0))
    assert (answer.error_code, answer.producer_epoch) == (NONE, 0)


@pytest.mark.parametrize("identity", [(3, -1), (-1, 3)])
async def test_half_an_identity(administration, identity):
    answer = await init(administration, identity=identity)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [
        ("", 1000, ErrorCode.INVALID_REQUEST),
        ("t", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", -1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", 2**31 - 1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
async def test_transactional_ids_that_are_refused(
    administration, transactional_id, timeout_ms, code
):
    """The others are in tests/broker/test_transaction_table.py."""
    answer = await init(administration, transactional_id=transactional_id, timeout_ms=timeout_ms)
    assert answer.error_code == code
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


async def test_ids_are_given_once_over_blocks_and_crashes_s10():
    given = []
    administration = Administration()
    for round_number in range(3):
        count = (1, PRODUCER_ID_BLOCK + 5, 3)[round_number]
        answers = await asyncio.gather(*(init(administration) for _ in range(count)))
        given += [answer.producer_id for answer in answers]
        disk = administration.file_system.kill()
        administration = Administration(disk, administration.metastore)
    assert len(given) == len(set(given))
    administration.stop()


async def test_a_store_that_is_full_is_something_to_wait_for(administration, monkeypatch):
    def full() -> range:
        raise MetaStoreRefused("no space")

    with monkeypatch.context() as patch:
        patch.setattr(administration.metastore, "allocate_producer_ids", full)
        answer = await init(administration)
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await init(administration)).error_code == NONE
