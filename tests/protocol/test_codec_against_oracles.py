"""Byte for byte against two independent codecs, on random messages of every API and version they
know.

The oracle must be able to read Barnabas' bytes, and must encode the same bytes for the message that
it read; decoding the oracle's bytes must give the original message back.
"""

import functools
import importlib
import io
import pkgutil
import warnings
from typing import Any

import pytest
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from tests.protocol.random_messages import Case, RandomMessages, all_cases

SEED = 4300
MESSAGES_PER_CASE = 6
SECTIONS = {
    "request": EntityType.request,
    "response": EntityType.response,
    "fields": EntityType.data,
}


def kio_cases() -> list[Case]:
    known = []
    for case in all_cases():
        kind = SECTIONS.get(case.section)
        if kind is not None and kind in schema_name_map.get(case.module, {}).get(case.version, {}):
            known.append(case)
    return known


def through_kio(case: Case, data: bytes) -> bytes:
    entity_type = load_entity_schema(case.module, case.version, SECTIONS[case.section])
    entity, size = entity_reader(entity_type)(data, 0)
    assert size == len(data)
    buffer = io.BytesIO()
    entity_writer(entity_type)(buffer, entity)
    return buffer.getvalue()


@functools.cache
def kafka_python_classes() -> dict[str, Any]:
    with warnings.catch_warnings():
        # It reads its schemas by a function that Python calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        protocol = importlib.import_module("kafka.protocol")
        for module in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
            if ".old" not in module.name and not module.name.endswith("generate_stubs"):
                importlib.import_module(module.name)
        messages = importlib.import_module("kafka.protocol.api_message")
    return {cls.__name__: cls for cls in messages.ApiMessage.__subclasses__()}


def kafka_python_cases() -> list[Case]:
    classes = kafka_python_classes()
    return [
        case
        for case in all_cases()
        if case.struct.name in classes and case.version <= classes[case.struct.name].max_version
    ]


def through_kafka_python(case: Case, data: bytes) -> bytes:
    cls = kafka_python_classes()[case.struct.name]
    message = cls.decode(data, version=case.version)
    message._header = None  # which decoding leaves unset and encoding looks for
    return bytes(message.encode(version=case.version))


def is_read_otherwise_by_kafka_python(message: Any) -> bool:
    """Whether the oracle deliberately reads an ApiVersions error response as version 0."""
    return isinstance(message, ApiVersionsResponse) and message.error_code != 0


ORACLES = {
    "kio": (kio_cases, through_kio),
    "kafka-python": (kafka_python_cases, through_kafka_python),
}


@pytest.mark.parametrize("oracle", ORACLES)
def test_bytes_agree_in_both_directions(oracle):
    cases, through = ORACLES[oracle]
    random_messages = RandomMessages(SEED, own_tags=False)
    compared = 0
    for case in cases():
        for _ in range(MESSAGES_PER_CASE):
            message = random_messages.message(case)
            if oracle == "kafka-python" and is_read_otherwise_by_kafka_python(message):
                continue
            ours = b"".join(case.message.encode(message, case.version))
            theirs = through(case, ours)
            assert theirs == ours, f"{case}: {message}"
            assert case.message.decode(memoryview(theirs), 0, case.version) == message
            compared += 1
    assert compared > 2_000


def agrees(through, case: Case, data: bytes) -> bool:
    try:
        return through(case, data) == data
    except Exception:  # noqa: BLE001 - oracles have no common error for bytes that do not add up
        return False


@pytest.mark.parametrize("oracle", ORACLES)
def test_an_oracle_notices_the_layout_of_another_version(oracle):
    _, through = ORACLES[oracle]
    at_4, at_9 = (
        next(
            case
            for case in all_cases()
            if case.struct.name == "MetadataResponse" and case.version == version
        )
        for version in (4, 9)
    )
    message = MetadataResponse(brokers=[MetadataResponseBroker(1, "host", 9092, "rack")])
    ours = b"".join(at_4.message.encode(message, 4))
    assert agrees(through, at_4, ours)
    assert not agrees(through, at_9, ours)


def test_the_oracles_cover_what_they_are_known_to_cover():
    assert len({case.schema.name for case in kio_cases()}) >= 61
    assert len({case.schema.name for case in kafka_python_cases()}) >= 50


def test_error_codes_and_their_retriable_flag_agree():
    theirs = {(int(code), code.name.upper(), code.retriable) for code in KioErrorCode}
    assert {(int(code), code.name, code.retriable) for code in ErrorCode} == theirs
