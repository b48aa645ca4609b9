"""What one broker has made a moment ago can be administered by way of another one."""

from __future__ import annotations

import time

from barnabas.broker.topics.resources import ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.cluster.members import members
from tests.broker.data_plane import Wire


def test_who_has_made_a_topic_at_one_broker_administers_it_at_once_at_another(monkeypatch):
    monkeypatch.setattr("barnabas.broker.cluster.membership.LOOK_EVERY_S", 3600)
    monkeypatch.setattr("barnabas.broker.cluster.misses.PATIENCE_S", 60)
    unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
    with members(2) as (_, (maker, other)):
        # It hears of nothing by itself: only when it has a reason to look.
        other.server._member._membership._looking.wait = lambda _since, s: time.sleep(2 * s)
        with Wire(maker.address) as made, Wire(other.address) as asked:

            def make(name):
                request = CreateTopicsRequest([CreatableTopic(name, 1, 1)])
                (result,) = made.ask(CREATE_TOPICS, request, 7).topics
                assert result.error_code == ErrorCode.NONE
                return result.topic_id

            make("grown")
            grown = CreatePartitionsRequest([CreatePartitionsTopic("grown", 2, None)], 60_000)
            (result,) = asked.ask(CREATE_PARTITIONS, grown, 3).results
            assert result.error_code == ErrorCode.NONE
            make("set")
            setting = AlterableConfig("retention.ms", 0, "1000")
            resource = AlterConfigsResource(ResourceType.TOPIC, "set", [setting])
            change = IncrementalAlterConfigsRequest([resource])
            (result,) = asked.ask(INCREMENTAL_ALTER_CONFIGS, change, 1).responses
            assert result.error_code == ErrorCode.NONE
            make("shown")
            shown = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, "shown")])
            (result,) = asked.ask(DESCRIBE_CONFIGS, shown, 4).results
            assert result.error_code == ErrorCode.NONE
            make("cut")
            cut = DeleteRecordsTopic("cut", [DeleteRecordsPartition(0, 0)])
            (result,) = asked.ask(DELETE_RECORDS, DeleteRecordsRequest([cut]), 2).topics
            assert result.partitions[0].error_code not in unknown
            make("moved")
            moved = ReassignableTopic("moved", [ReassignablePartition(0, [other.node_id])])
            request = AlterPartitionReassignmentsRequest(topics=[moved])
            (result,) = asked.ask(ALTER_PARTITION_REASSIGNMENTS, request, 1).responses
            assert result.partitions[0].error_code not in unknown
            make("deleted")
            for doomed in (DeleteTopicState("deleted"), DeleteTopicState(None, make("by-id"))):
                request = DeleteTopicsRequest([doomed], timeout_ms=60_000)
                (result,) = asked.ask(DELETE_TOPICS, request, 6).responses
                assert result.error_code == ErrorCode.NONE
            again = make("again")
            request = DeleteTopicsRequest([DeleteTopicState("again")], timeout_ms=60_000)
            shown = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, "again")])
            asked.ask(DESCRIBE_CONFIGS, shown, 4)
            made.ask(DELETE_TOPICS, request, 6)
            create = CreateTopicsRequest([CreatableTopic("again", 1, 1)])
            (result,) = asked.ask(CREATE_TOPICS, create, 7).topics
            assert result.error_code == ErrorCode.NONE
            assert result.topic_id != again
