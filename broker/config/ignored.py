"""Kafka's broker keys that mean nothing here, so that a file written for Kafka loads in peace.

They are about replication, controllers, thread pools, tiered storage, or about the Java virtual
machine; some are for brokers of a cluster, as each other's clients (broker/peers/settings.py). One
that would *protect* something (a policy class) is refused where it is set to more than its default:
see broker/config/protection.py. Other keys are misspelt.

DescribeConfigs reports all of them, with Kafka's types and defaults or with what was set, because
consoles and tools look for them. They cannot be changed while the broker runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import (
    ConfigEntry,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    Value,
)

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

# Name, type and default; a comment says why the keys below it have no effect.
_TABLE = r"""
# No Java class can be loaded.
alter.config.policy.class.name CLASS null
client.quota.callback.class CLASS null
create.topic.policy.class.name CLASS null
principal.builder.class CLASS \
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
replica.selector.class STRING null
ssl.engine.factory.class CLASS null

# Requests that wait are kept in another way.
delete.records.purgatory.purge.interval.requests INT 1
fetch.purgatory.purge.interval.requests INT 1000
producer.purgatory.purge.interval.requests INT 1000

# Brokers of a cluster wait for each other as long as their requests may take.
request.timeout.ms INT 30000
socket.connection.setup.timeout.max.ms LONG 30000

# The group coordinator works without it.
group.coordinator.append.linger.ms INT -1
group.coordinator.background.threads INT 2
group.coordinator.cached.buffer.max.bytes INT 1048588
group.coordinator.rebalance.protocols LIST classic,consumer,streams
group.coordinator.threads INT 4
offsets.commit.timeout.ms INT 5000
offsets.load.buffer.size INT 5242880
offsets.topic.compression.codec INT 0

# The storage works without it.
log.cleaner.io.buffer.load.factor DOUBLE 0.9
log.cleaner.io.buffer.size INT 524288
log.dir.failure.timeout.ms LONG 30000
log.flush.offset.checkpoint.interval.ms INT 60000
log.flush.start.offset.checkpoint.interval.ms INT 60000

# Always done: it costs a function call, and without it transactions could hang (KIP-890).
transaction.partition.verification.enable BOOLEAN true

# The transaction coordinator works without it.
add.partitions.to.txn.retry.backoff.max.ms INT 100
add.partitions.to.txn.retry.backoff.ms INT 20
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000
transaction.state.log.load.buffer.size INT 5242880

# There are no quotas.
alter.log.dirs.replication.quota.window.num INT 11
alter.log.dirs.replication.quota.window.size.seconds INT 1
replication.quota.window.num INT 11
replication.quota.window.size.seconds INT 1

# There are no share groups.
group.share.assignment.interval.ms INT 1000
group.share.assignors LIST simple
group.share.delivery.count.limit INT 5
group.share.heartbeat.interval.ms INT 5000
group.share.max.assignment.interval.ms INT 15000
group.share.max.delivery.count.limit INT 10
group.share.max.heartbeat.interval.ms INT 15000
group.share.max.partition.max.record.locks INT 4000
group.share.max.record.lock.duration.ms INT 60000
group.share.max.session.timeout.ms INT 60000
group.share.max.share.sessions INT 2000
group.share.max.size INT 200
group.share.min.assignment.interval.ms INT 0
group.share.min.delivery.count.limit INT 2
group.share.min.heartbeat.interval.ms INT 5000
group.share.min.partition.max.record.locks INT 100
group.share.min.record.lock.duration.ms INT 15000
group.share.min.session.timeout.ms INT 45000
group.share.partition.max.record.locks INT 2000
group.share.record.lock.duration.ms INT 30000
group.share.session.timeout.ms INT 45000
share.coordinator.append.linger.ms INT -1
share.coordinator.cached.buffer.max.bytes INT 1048588
share.coordinator.load.buffer.size INT 5242880
share.coordinator.snapshot.update.records.per.snapshot INT 500
share.coordinator.state.topic.compression.codec INT 0
share.coordinator.state.topic.min.isr SHORT 2
share.coordinator.state.topic.num.partitions INT 50
share.coordinator.state.topic.replication.factor SHORT 3
share.coordinator.state.topic.segment.bytes INT 104857600
share.coordinator.threads INT 1
share.coordinator.write.timeout.ms INT 5000
share.fetch.purgatory.purge.interval.requests INT 1000

# There are no streams groups.
group.streams.assignment.interval.ms INT 1000
group.streams.heartbeat.interval.ms INT 5000
group.streams.initial.rebalance.delay.ms INT 3000
group.streams.max.assignment.interval.ms INT 15000
group.streams.max.heartbeat.interval.ms INT 15000
group.streams.max.session.timeout.ms INT 60000
group.streams.max.size INT 2147483647
group.streams.max.standby.replicas INT 2
group.streams.min.assignment.interval.ms INT 0
group.streams.min.heartbeat.interval.ms INT 5000
group.streams.min.session.timeout.ms INT 45000
group.streams.num.standby.replicas INT 0
group.streams.session.timeout.ms INT 45000

# There are no such metrics.
kafka.metrics.polling.interval.secs INT 10
kafka.metrics.reporters LIST
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples INT 2
metrics.recording.level STRING INFO
metrics.sample.window.ms LONG 30000
telemetry.max.bytes INT 1048576

# They are about a Java virtual machine, or about clients.
ssl.keymanager.algorithm STRING SunX509
ssl.provider STRING null
ssl.secure.random.implementation STRING null
ssl.trustmanager.algorithm STRING PKIX

# In a cluster: how its brokers log in to each other.
sasl.login.callback.handler.class CLASS null
sasl.login.connect.timeout.ms INT null
sasl.login.read.timeout.ms INT null
sasl.login.refresh.buffer.seconds SHORT 300
sasl.login.refresh.min.period.seconds SHORT 60
sasl.login.refresh.window.factor DOUBLE 0.8
sasl.login.refresh.window.jitter DOUBLE 0.05
sasl.login.retry.backoff.max.ms LONG 10000
sasl.login.retry.backoff.ms LONG 100
sasl.oauthbearer.client.credentials.client.id STRING null
sasl.oauthbearer.client.credentials.client.secret PASSWORD null
sasl.oauthbearer.scope STRING null
sasl.oauthbearer.token.endpoint.url STRING null
ssl.endpoint.identification.algorithm STRING https

# There are no delegation tokens, and there is no Kerberos.
delegation.token.expiry.check.interval.ms LONG 3600000
delegation.token.expiry.time.ms LONG 86400000
delegation.token.max.lifetime.ms LONG 604800000
delegation.token.secret.key PASSWORD null
sasl.client.callback.handler.class CLASS null
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit
sasl.kerberos.min.time.before.relogin LONG 60000
sasl.kerberos.principal.to.local.rules LIST DEFAULT
sasl.kerberos.service.name STRING null
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8
sasl.login.class CLASS null
sasl.mechanism.controller.protocol STRING GSSAPI
sasl.oauthbearer.assertion.algorithm STRING RS256
sasl.oauthbearer.assertion.claim.aud STRING null
sasl.oauthbearer.assertion.claim.exp.seconds INT 300
sasl.oauthbearer.assertion.claim.iss STRING null
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60
sasl.oauthbearer.assertion.claim.sub STRING null
sasl.oauthbearer.assertion.file STRING null
sasl.oauthbearer.assertion.private.key.file STRING null
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD null
sasl.oauthbearer.assertion.template.file STRING null
sasl.oauthbearer.jwt.retriever.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class CLASS \
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.server.callback.handler.class CLASS null
security.providers STRING null

# There is no tiered storage.
follower.fetch.last.tiered.offset.enable BOOLEAN false
remote.fetch.max.wait.ms INT 500
remote.list.offsets.request.timeout.ms LONG 30000
remote.log.index.file.cache.total.size.bytes LONG 1073741824
remote.log.manager.copier.thread.pool.size INT 10
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807
remote.log.manager.copy.quota.window.num INT 11
remote.log.manager.copy.quota.window.size.seconds INT 1
remote.log.manager.expiration.thread.pool.size INT 10
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807
remote.log.manager.fetch.quota.window.num INT 11
remote.log.manager.fetch.quota.window.size.seconds INT 1
remote.log.manager.follower.thread.pool.size INT 2
remote.log.manager.task.interval.ms LONG 30000
remote.log.manager.thread.pool.size INT 2
remote.log.metadata.custom.metadata.max.bytes INT 128
remote.log.metadata.manager.class.name STRING \
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path STRING null
remote.log.metadata.manager.impl.prefix STRING rlmm.config.
remote.log.metadata.manager.listener.name STRING null
remote.log.reader.max.pending.tasks INT 100
remote.log.reader.threads INT 10
remote.log.storage.manager.class.name STRING null
remote.log.storage.manager.class.path STRING null
remote.log.storage.manager.impl.prefix STRING rsm.config.
remote.log.storage.system.enable BOOLEAN false

# There is one broker and no separate controller.
broker.heartbeat.interval.ms INT 2000
broker.session.timeout.ms INT 9000
controlled.shutdown.enable BOOLEAN true
controller.quorum.append.linger.ms INT 25
controller.quorum.auto.join.enable BOOLEAN false
controller.quorum.bootstrap.servers LIST
controller.quorum.election.backoff.max.ms INT 1000
controller.quorum.election.timeout.ms INT 1000
controller.quorum.fetch.max.bytes INT 1048576
controller.quorum.fetch.snapshot.max.bytes INT 1048576
controller.quorum.fetch.timeout.ms INT 2000
controller.quorum.request.timeout.ms INT 2000
controller.quorum.retry.backoff.ms INT 20
controller.quorum.voters LIST
controller.socket.timeout.ms INT 30000
early.start.listeners LIST null
initial.broker.registration.timeout.ms INT 60000
metadata.log.dir STRING null
metadata.log.max.record.bytes.between.snapshots LONG 20971520
metadata.log.max.snapshot.interval.ms LONG 3600000
metadata.log.segment.bytes INT 1073741824
metadata.log.segment.ms LONG 604800000
metadata.max.idle.interval.ms INT 500
metadata.max.retention.bytes LONG 104857600
metadata.max.retention.ms LONG 604800000
process.roles LIST broker,controller

# There is one event loop, not a pool of threads.
background.threads INT 10
num.io.threads INT 8
num.network.threads INT 3
num.recovery.threads.per.data.dir INT 2
queued.max.requests INT 500

# There is one replica of everything.
leader.imbalance.check.interval.seconds LONG 300
num.replica.alter.log.dirs.threads INT null
num.replica.fetchers INT 1
replica.fetch.backoff.ms INT 1000
replica.fetch.max.bytes INT 1048576
replica.fetch.min.bytes INT 1
replica.fetch.response.max.bytes INT 10485760
replica.fetch.wait.max.ms INT 500
replica.high.watermark.checkpoint.interval.ms LONG 5000
replica.lag.time.max.ms LONG 30000
replica.socket.receive.buffer.bytes INT 65536
replica.socket.timeout.ms INT 30000
"""

_PREFIXES = ("remote.log.",)
_OF_CLUSTERS = "# In a cluster: "

# A user who sets one of these expects something that will not happen.
_WARNED_ABOUT = frozenset(
    (
        "client.quota.callback.class",
        "replica.selector.class",
    )
)


def _keys_of(table: str) -> Iterator[ConfigKey]:
    """Read the table."""
    doc = ""
    for line in table.replace("\\\n", "").splitlines():
        if line.startswith(_OF_CLUSTERS):
            doc = f"No effect on a broker that is alone. {line[2:]}"
        elif line.startswith("# "):
            doc = f"No effect. {line[2:]}"
        elif line:
            name, kind_name, *defaults = line.split()
            kind = ConfigType[kind_name]
            text = defaults[0] if defaults else ""
            key = ConfigKey(name, kind, None, doc)
            yield ConfigKey(name, kind, None if text == "null" else key.parse(text), doc)


IGNORED_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _keys_of(_TABLE)}
"""Every broker key of Kafka 4.3.0 that means nothing here, by name."""


def is_ignored(key: str) -> bool:
    """Whether a key of Kafka's is accepted without effect."""
    return (key in IGNORED_CONFIGS or key.startswith(_PREFIXES)) and key not in _WARNED_ABOUT


def describe_ignored(config: BrokerConfig) -> list[ConfigEntry]:
    """Return the keys without effect, as DescribeConfigs lists them."""
    return [_describe(key, config) for key in IGNORED_CONFIGS.values()]


def _describe(key: ConfigKey, config: BrokerConfig) -> ConfigEntry:
    synonyms = synonyms_of(key.name, config)
    return ConfigEntry(
        name=key.name,
        value=synonyms[0].value if synonyms else None,
        type=key.type,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=True,
        synonyms=synonyms,
        documentation=key.doc,
    ).without_secrets()


def synonyms_of(name: str, config: BrokerConfig) -> tuple[ConfigSynonym, ...]:
    """Return where the value of any broker key of Kafka's comes from, with an effect or without."""
    key = IGNORED_CONFIGS.get(name)
    if key is None:
        return tuple(config.synonyms((name,)))
    given = [ConfigSynonym(name, each.text, each.source) for each in config.settings.get(name, ())]
    if key.default_text is not None:
        given.append(ConfigSynonym(name, key.default_text, ConfigSource.DEFAULT))
    return tuple(given)


def value_of(name: str, config: BrokerConfig) -> Value:
    """Return the value of any broker key of Kafka's; raises ConfigError for one that is no value.

    What was set for a key without effect has not been checked.
    """
    key = IGNORED_CONFIGS.get(name)
    if key is None:
        return config.value(name)
    settings = config.settings.get(name)
    return key.parse(settings[0].text) if settings else key.default
