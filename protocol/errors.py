"""Kafka's error codes, and the exceptions of the protocol layer."""

from __future__ import annotations

import enum
from typing import Final, Self

RETRIABLE: Final = "retriable"


class Malformed(Exception):
    """Bytes that are no valid message. The connection that sent them is closed."""


class TooManyElements(Malformed):
    """A message whose arrays have more elements than are allowed."""


class KafkaError(Exception):
    """A failure that has a Kafka error code; handlers turn it into the code in a response."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = code.message if message is None else message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class ErrorCode(enum.IntEnum):
    """An error code of the protocol, its meaning, and whether a client should retry."""

    message: str
    retriable: bool

    def __new__(cls, code: int, message: str = "", retriable: str = "") -> Self:
        """Build the member whose integer value is ``code``."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        member.retriable = retriable == RETRIABLE
        return member

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        """Return UNKNOWN_SERVER_ERROR for a code of a later Kafka, as Kafka's own clients do."""
        return cls.UNKNOWN_SERVER_ERROR if isinstance(value, int) else None

    UNKNOWN_SERVER_ERROR = -1, "unexpected error in the broker"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the log does not hold this offset"
    CORRUPT_MESSAGE = 2, "a record batch fails its checksum, size or layout rules", RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, "no such topic or partition here", RETRIABLE
    INVALID_FETCH_SIZE = 4, "fetch size is not acceptable"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment", RETRIABLE
    NOT_LEADER_OR_FOLLOWER = 6, "this broker neither leads nor follows the partition", RETRIABLE
    REQUEST_TIMED_OUT = 7, "the time of the request ran out", RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "broker not available"
    REPLICA_NOT_AVAILABLE = 9, "the wanted replica is not available", RETRIABLE
    MESSAGE_TOO_LARGE = 10, "larger than the topic accepts"
    STALE_CONTROLLER_EPOCH = 11, "controller epoch is out of date"
    OFFSET_METADATA_TOO_LARGE = 12, "offset metadata is too long"
    NETWORK_EXCEPTION = 13, "connection lost before an answer came", RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still reading its log", RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "no coordinator available", RETRIABLE
    NOT_COORDINATOR = 16, "another broker coordinates this", RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, "not a legal topic, or one that may not be used so"
    RECORD_LIST_TOO_LARGE = 18, "batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, "too few replicas in sync to accept this", RETRIABLE
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to too few replicas", RETRIABLE
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "not the current generation of the group"
    INCONSISTENT_GROUP_PROTOCOL = 23, "no protocol in common with the rest of the group"
    INVALID_GROUP_ID = 24, "group id is not legal"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "session timeout is outside the allowed range"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing, join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "offset commit is too large to store"
    TOPIC_AUTHORIZATION_FAILED = 29, "not allowed on this topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not allowed on this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not allowed on the cluster"
    INVALID_TIMESTAMP = 32, "record timestamp is outside the accepted range"
    UNSUPPORTED_SASL_MECHANISM = 33, "SASL mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, "request is out of order for the authentication state"
    UNSUPPORTED_VERSION = 35, "version of the request is not supported"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name exists"
    INVALID_PARTITIONS = 37, "number of partitions is not acceptable"
    INVALID_REPLICATION_FACTOR = 38, "replication factor is not acceptable"
    INVALID_REPLICA_ASSIGNMENT = 39, "replica assignment is not acceptable"
    INVALID_CONFIG = 40, "configuration is not acceptable"
    NOT_CONTROLLER = 41, "this broker is not the controller", RETRIABLE
    INVALID_REQUEST = 42, "request contradicts itself or breaks a rule of its API"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the stored message format cannot do this"
    POLICY_VIOLATION = 44, "refused by policy"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "sequence number does not follow the last one"
    DUPLICATE_SEQUENCE_NUMBER = 46, "sequence number was already written"
    INVALID_PRODUCER_EPOCH = 47, "producer epoch is out of date"
    INVALID_TXN_STATE = 48, "transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, "producer id does not belong to this transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "transaction timeout is above the allowed maximum"
    CONCURRENT_TRANSACTIONS = 51, "previous step of this transaction is still under way", RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, "marker comes from a coordinator that was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not allowed to use this transactional id"
    SECURITY_DISABLED = 54, "security features are off"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "disk error in the log directory", RETRIABLE
    LOG_DIR_NOT_FOUND = 57, "log directory is not configured"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "partition has no state for this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, "a reassignment is under way"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "delegation token belongs to somebody else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "this connection may not ask for delegation tokens"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not allowed on this delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "delegation token is expired"
    INVALID_PRINCIPAL_TYPE = 67, "principal type is not supported"
    NON_EMPTY_GROUP = 68, "group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "no such fetch session", RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, "fetch session is at another epoch", RETRIABLE
    LISTENER_NOT_FOUND = 72, "leader has no listener matching this one", RETRIABLE
    TOPIC_DELETION_DISABLED = 73, "deleting topics is switched off"
    FENCED_LEADER_EPOCH = 74, "leader epoch of the request is older than the broker's", RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "leader epoch of the request is newer than the broker's", RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "compression cannot be used with this version"
    STALE_BROKER_EPOCH = 77, "broker epoch is out of date"
    OFFSET_NOT_AVAILABLE = 78, "the new leader does not know its high watermark yet", RETRIABLE
    MEMBER_ID_REQUIRED = 79, "join again with the member id in this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "preferred leader is not available", RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "group is full"
    FENCED_INSTANCE_ID = 82, "another member took over this group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no eligible leader is available", RETRIABLE
    ELECTION_NOT_NEEDED = 84, "the partition already has that leader", RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no reassignment is under way"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "group is subscribed to the topic"
    INVALID_RECORD = 87, "a record breaks a rule of its topic"
    UNSTABLE_OFFSET_COMMIT = 88, "offsets are part of a transaction still open", RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, "quota exceeded", RETRIABLE
    PRODUCER_FENCED = 90, "a newer producer took over this transactional id"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "a resource is named twice"
    UNACCEPTABLE_CREDENTIAL = 93, "credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, "voters disagree about the voter set"
    INVALID_UPDATE_VERSION = 95, "update version is not valid"
    FEATURE_UPDATE_FAILED = 96, "features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "no topic has this id here", RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "broker id is in use"
    BROKER_ID_NOT_REGISTERED = 102, "broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, "topic id differs from the one in the log", RETRIABLE
    INCONSISTENT_CLUSTER_ID = 104, "cluster id is another one"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "fetch session mixes topic names and topic ids", RETRIABLE
    INELIGIBLE_REPLICA = 107, "replica may not join the in-sync set"
    NEW_LEADER_ELECTED = 108, "the change moved leadership elsewhere"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "offset is in remote storage only"
    FENCED_MEMBER_EPOCH = 110, "group coordinator fenced this member epoch"
    UNRELEASED_INSTANCE_ID = 111, "group instance id is still held by another member"
    UNSUPPORTED_ASSIGNOR = 112, "assignor is not supported by the group"
    STALE_MEMBER_EPOCH = 113, "member epoch is out of date"
    MISMATCHED_ENDPOINT_TYPE = 114, "request went to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "telemetry subscription id is out of date"
    TELEMETRY_TOO_LARGE = 118, "pushed telemetry is larger than accepted"
    INVALID_REGISTRATION = 119, "registration is not acceptable"
    TRANSACTION_ABORTABLE = 120, "transaction met an error and has to be aborted"
    INVALID_RECORD_STATE = 121, "record is not in a state that can be acknowledged so"
    SHARE_SESSION_NOT_FOUND = 122, "no such share session", RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "share session is at another epoch", RETRIABLE
    FENCED_STATE_EPOCH = 124, "share coordinator fenced this state epoch"
    INVALID_VOTER_KEY = 125, "voter key is not the receiver's"
    DUPLICATE_VOTER = 126, "voter is already in the set"
    VOTER_NOT_FOUND = 127, "voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, "regular expression cannot be used"
    REBOOTSTRAP_REQUIRED = 129, "client should start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "streams topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "streams topology epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "streams topology epoch is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "broker has no room for another share session", RETRIABLE
