"""Mutilated bytes of every structure in every version: a message or Malformed, nothing else."""

import random

import pytest

from barnabas.protocol.errors import Malformed
from barnabas.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from barnabas.protocol.messages import ALL_KEYS, ENTRIES
from tests.protocol.mutilation import MUTATORS
from tests.protocol.random_messages import RandomMessages, all_cases
from tests.seeds import SEED

CASES = 20_000
HEADER_CASES = 5_000


def test_mutilated_messages_are_read_or_refused():
    rng = random.Random(SEED)
    random_messages = RandomMessages(SEED)
    cases = list(all_cases())
    refused = 0
    for number in range(CASES):
        case = cases[number % len(cases)]
        data = b"".join(case.message.encode(random_messages.message(case), case.version))
        spoilt = rng.choice(MUTATORS)(data or b"\0", rng)
        try:
            message = case.message.decode(memoryview(spoilt), 0, case.version)
        except Malformed:
            refused += 1
        else:
            # What was accepted is a message like any other.
            again = b"".join(case.message.encode(message, case.version))
            case.message.decode(memoryview(again), 0, case.version)
    assert refused > CASES // 3


def test_every_strict_prefix_of_a_message_is_refused():
    random_messages = RandomMessages(SEED)
    for case in all_cases():
        data = b"".join(case.message.encode(random_messages.message(case), case.version))
        for size in {*range(min(len(data), 40)), len(data) - 1} - {-1, len(data)}:
            with pytest.raises(Malformed):
                case.message.decode(memoryview(data)[:size], 0, case.version)


def test_bytes_behind_a_request_are_ignored_and_behind_other_messages_refused():
    random_messages = RandomMessages(SEED)
    for case in all_cases():
        data = b"".join(case.message.encode(random_messages.message(case), case.version))
        longer = memoryview(data + b"\0\xff")
        if case.message.name.endswith("Request"):
            found = case.message.decode(longer, 0, case.version)
            assert found == case.message.decode(memoryview(data), 0, case.version)
        else:
            with pytest.raises(Malformed, match="left over"):
                case.message.decode(longer, 0, case.version)


def test_mutilated_headers_are_read_or_refused():
    rng = random.Random(SEED)
    for _ in range(HEADER_CASES):
        key = rng.choice(ALL_KEYS)
        version = rng.randrange(ENTRIES[key].max_version + 2)
        request = encode_request_header(RequestHeader(key, version, rng.getrandbits(31), "client"))
        response = encode_response_header(key, version, 7)
        mutate = rng.choice(MUTATORS)
        try:
            decode_request_header(memoryview(mutate(bytes(request), rng)))
            decode_response_header(memoryview(mutate(response, rng)), key, version)
        except Malformed:
            pass
