"""Kafka's broker keys that mean nothing here, so that a file written for Kafka loads in peace.

They are about replication, controllers, thread pools, tiered storage, or about TLS and SASL, which
only matter on listeners that are refused. A key that would *protect* something (an authorizer, a
policy class) is not among them: those are refused or warned about. Other keys are misspelt.
"""

from __future__ import annotations

_NAMES = frozenset(
    """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds auto.leader.rebalance.enable
    background.threads broker.heartbeat.interval.ms broker.session.timeout.ms config.providers
    connection.failed.authentication.delay.ms connections.max.reauth.ms
    controlled.shutdown.enable controller.quorum.append.linger.ms
    controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num
    controller.quota.window.size.seconds controller.socket.timeout.ms cordoned.log.dirs
    delete.records.purgatory.purge.interval.requests early.start.listeners
    fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
    group.consumer.assignment.interval.ms group.consumer.assignors
    group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
    group.consumer.max.session.timeout.ms group.consumer.migration.policy
    group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
    group.consumer.min.session.timeout.ms group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.coordinator.rebalance.protocols group.coordinator.threads
    group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
    group.share.heartbeat.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
    group.share.partition.max.record.locks group.share.record.lock.duration.ms
    group.share.session.timeout.ms group.streams.assignment.interval.ms
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size
    group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
    group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
    group.streams.num.standby.replicas group.streams.session.timeout.ms
    initial.broker.registration.timeout.ms inter.broker.listener.name
    kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.imbalance.check.interval.seconds log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.dir.failure.timeout.ms
    log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms
    max.connection.creation.rate max.connections.per.ip.overrides metadata.log.dir
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
    metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec
    process.roles producer.purgatory.purge.interval.requests queued.max.requests
    quota.window.num quota.window.size.seconds remote.fetch.max.wait.ms
    remote.list.offsets.request.timeout.ms replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms security.inter.broker.protocol
    security.providers share.coordinator.append.linger.ms
    share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
    share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms telemetry.max.bytes
    transaction.partition.verification.enable transaction.state.log.load.buffer.size
    transaction.two.phase.commit.enable
    """.split()  # noqa: SIM905 - a list of strings would take 150 lines
)

_PREFIXES = ("ssl.", "sasl.", "delegation.token.", "remote.log.", "listener.name.")


def is_ignored(key: str) -> bool:
    """Whether a key of Kafka's is accepted without effect."""
    return key in _NAMES or key.startswith(_PREFIXES)
