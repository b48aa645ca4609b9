"""Hand-tuned codecs against the generated ones they replace: same messages, bytes, refusals."""

import random

import pytest

from barnabas.protocol.api import BROKEN_BYTES
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages import fetch, produce, transaction_log_record
from tests.protocol.mutilation import MUTATORS
from tests.protocol.random_messages import RandomMessages, all_cases

SEED = 1516
MODULES = {
    "produce": produce,
    "fetch": fetch,
    "transaction_log_record": transaction_log_record,
}
CASES = [case for case in all_cases() if case.module in MODULES]
TUNED = {
    ("produce", "request"): range(9, 14),
    ("produce", "response"): range(10, 14),
    ("fetch", "request"): range(15, 19),
    ("fetch", "response"): range(12, 19),
    ("transaction_log_record", "key"): range(1),
    ("transaction_log_record", "value"): range(1, 2),
}
# Where lengths need another byte.
SIZES = (0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_150, 2_097_151)


def generated(case, verb):
    """The generated function for the version of a case: that of the nearest version at or below."""
    for version in range(case.version, -1, -1):
        name = f"{verb}_{case.section}_v{version}"
        if hasattr(MODULES[case.module], name):
            return getattr(MODULES[case.module], name)
    raise AssertionError(case)


def in_use(case, verb):
    return getattr(case.message, f"_{verb}rs")[case.version]


def encoded(encode, message) -> bytes:
    return b"".join(encode(message, bytearray(b"head")))


def outcome(decode, data):
    """The message and where it ended, or that it was refused, as far as the caller can tell."""
    try:
        message, end = decode(memoryview(data), 4)
    except (Malformed, *BROKEN_BYTES):
        return "refused"
    return (message, end) if end <= len(data) else "refused"


def check(case, message):
    data = encoded(generated(case, "encode"), message)
    assert encoded(in_use(case, "encode"), message) == data, str(case)
    expected = outcome(generated(case, "decode"), data)
    assert expected != "refused"
    assert outcome(in_use(case, "decode"), data) == expected, str(case)
    return data


def usual(random_messages, case):
    """A random message cut down to the shape that is tuned, or nearly."""
    message = random_messages.message(case)
    if case.module == "transaction_log_record":
        if case.section == "value" and random_messages.random.random() < 0.8:
            message.next_producer_id = message.next_producer_epoch = -1
        return message
    topics = {"produce": ("topic_data", "responses"), "fetch": ("topics", "responses")}
    partitions = {
        "produce": ("partition_data", "partition_responses"),
        "fetch": ("partitions", "partitions"),
    }
    side = case.section == "response"
    most = random_messages.random.choice([0, 1, 1, 1, 2, 3]) if case.module == "produce" else 1
    topics, partitions = topics[case.module][side], partitions[case.module][side]
    setattr(message, topics, getattr(message, topics)[:1])
    for topic in getattr(message, topics):
        setattr(topic, partitions, getattr(topic, partitions)[:most])
    if random_messages.random.random() < 0.8:
        plain = type(message)()
        for name in ("transactional_id", "forgotten_topics_data", "rack_id", "node_endpoints"):
            if hasattr(message, name):
                setattr(message, name, getattr(plain, name))
        for topic in getattr(message, topics):
            for partition in getattr(topic, partitions):
                for name in ("record_errors", "error_message", "current_leader", "snapshot_id"):
                    if hasattr(partition, name):
                        setattr(partition, name, getattr(type(partition)(), name))
    return message


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tuned_and_generated_agree_on_random_messages(case):
    random_messages = RandomMessages(SEED)
    for _ in range(10):
        check(case, random_messages.message(case))
    for _ in range(40):
        check(case, usual(random_messages, case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tuned_and_generated_refuse_the_same_bytes(case):
    random_messages = RandomMessages(SEED)
    rng = random.Random(SEED)
    for _ in range(40):
        data = check(case, usual(random_messages, case))[4:]
        spoilt = b"head" + rng.choice(MUTATORS)(data, rng)
        expected = outcome(generated(case, "decode"), spoilt)
        assert outcome(in_use(case, "decode"), spoilt) == expected, (str(case), spoilt)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tuned_and_generated_agree_on_every_prefix(case):
    message = usual(RandomMessages(SEED), case)
    data = check(case, message)
    for size in range(4, min(len(data), 300)):
        expected = outcome(generated(case, "decode"), data[:size])
        assert outcome(in_use(case, "decode"), data[:size]) == expected, (str(case), size)


def produce_request(name: str, records):
    partition = produce.PartitionProduceData(3, records)
    topic = produce.TopicProduceData(name, b"i" * 16, [partition])
    return produce.ProduceRequest(None, -1, 30_000, [topic])


def fetch_response(name: str, records):
    partition = fetch.PartitionData(3, 0, 100, 90, 5, records=records, aborted_transactions=None)
    topic = fetch.FetchableTopicResponse(name, b"i" * 16, [partition])
    return fetch.FetchResponse(1, 0, 2, [topic])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tuned_and_generated_agree_at_every_length(case):
    makers = {("produce", "request"): produce_request, ("fetch", "response"): fetch_response}
    make = makers.get((case.module, case.section))
    if make is None:
        message = type(RandomMessages(SEED).message(case))()
        check(case, message)
        return
    for size in SIZES:
        check(case, make("topic", memoryview(bytes(size))))
    check(case, make("topic", None))
    for length in (0, 1, 125, 126, 127, 128, 249):
        check(case, make("n" * length, memoryview(bytes(200))))


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 128])
def test_the_answer_to_produce_agrees_for_every_length_of_a_name(length):
    partition = produce.PartitionProduceResponse(3, 0, 7, -1, 0)
    topic = produce.TopicProduceResponse("n" * length, b"i" * 16, [partition])
    for case in CASES:
        if case.module == "produce" and case.section == "response":
            check(case, produce.ProduceResponse([topic]))


@pytest.mark.parametrize("count", [0, 1, 2, 100, 126, 127, 128, 300])
def test_many_partitions_agree(count):
    """The tuned encoder also covers transactions, and counts that need another byte."""
    written = [produce.PartitionProduceData(at, memoryview(bytes(78))) for at in range(count)]
    answered = [produce.PartitionProduceResponse(at, 0, at, -1, 0) for at in range(count)]
    for case in CASES:
        if case.module != "produce":
            continue
        if case.section == "request":
            topic = produce.TopicProduceData("topic", b"i" * 16, written)
            for transactional_id in (None, "", "cashier", "c" * 126, "c" * 127, "c" * 128):
                check(case, produce.ProduceRequest(transactional_id, -1, 30_000, [topic]))
        else:
            topic = produce.TopicProduceResponse("topic", b"i" * 16, answered)
            check(case, produce.ProduceResponse([topic]))


@pytest.mark.parametrize("section", ["\1\7\1x\0\0", "\0\1\7\1x\0", "\0\0\1\7\1x"])
def test_unknown_tags_behind_the_records_are_skipped(section):
    for case in CASES:
        if case.module == "produce" and case.section == "request" and case.version >= 9:
            data = check(case, produce_request("topic", memoryview(bytes(200))))
            tagged = data[:-3] + section.encode()
            expected = outcome(generated(case, "decode"), tagged)
            assert expected != "refused"
            assert outcome(in_use(case, "decode"), tagged) == expected


def test_what_is_tuned_is_in_use_and_nothing_else():
    for case in CASES:
        tuned = TUNED[case.module, case.section]
        verb = "decode" if case.section == "request" else "encode"
        replaced = in_use(case, verb) is not generated(case, verb)
        assert replaced == (case.version in tuned), str(case)
