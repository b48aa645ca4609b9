"""Error codes and the exceptions that carry them."""

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed


def test_a_code_is_its_number_with_a_meaning():
    code = ErrorCode(3)
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code == 3
    assert code.retriable
    assert not ErrorCode.OFFSET_OUT_OF_RANGE.retriable
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1


def test_a_code_of_a_later_kafka_is_an_unknown_error():
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="nonsense"):
        ErrorCode("nonsense")


def test_every_code_has_its_own_short_message():
    messages = [code.message for code in ErrorCode]
    assert len(set(messages)) == len(messages) == 135
    assert all(0 < len(message) < 80 and not message.endswith(".") for message in messages)


def test_a_kafka_error_says_what_its_code_says_unless_told_more():
    plain = KafkaError(ErrorCode.INVALID_CONFIG)
    assert plain.code is ErrorCode.INVALID_CONFIG
    assert plain.message == ErrorCode.INVALID_CONFIG.message
    special = KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms: not a number")
    assert special.message == "retention.ms: not a number"
    assert str(special) == "INVALID_CONFIG: retention.ms: not a number"


def test_malformed_is_no_kafka_error():
    assert not issubclass(Malformed, KafkaError)
