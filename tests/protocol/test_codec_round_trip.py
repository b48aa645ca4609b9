"""Every structure in every version: what is encoded is decoded back, byte and value."""

import pytest

from tests.protocol.random_messages import RandomMessages, all_cases
from tests.protocol.schemas import SCHEMAS

CASES = list(all_cases())
SEED = 20261121
MESSAGES_PER_CASE = 5


def encoded(case, message) -> bytes:
    return b"".join(case.message.encode(message, case.version))


@pytest.mark.parametrize("module", SCHEMAS)
def test_encode_then_decode_gives_the_message_back(module):
    random_messages = RandomMessages(SEED)
    for case in CASES:
        if case.module != module:
            continue
        for _ in range(MESSAGES_PER_CASE):
            message = random_messages.message(case)
            data = encoded(case, message)
            again = case.message.decode(memoryview(data), 0, case.version)
            assert again == message, str(case)
            assert encoded(case, again) == data, str(case)


def test_a_default_message_of_every_kind_can_be_encoded_and_decoded():
    for case in CASES:
        default = type(RandomMessages(0).message(case))()
        data = encoded(case, default)
        again = case.message.decode(memoryview(data), 0, case.version)
        assert encoded(case, again) == data, str(case)
