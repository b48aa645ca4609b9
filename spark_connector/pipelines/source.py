"""Spark's stock Kafka source, by default with committed records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.settings.options import SERVERS
from barnabas.spark_connector.settings.security import security_of_options
from barnabas.spark_connector.settings.servers import servers_or_default

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.broker.client.security import ClientSecurity

ISOLATION = "kafka.isolation.level"
STARTING_OFFSETS = "startingOffsets"
POLL_RECORDS = "kafka.max.poll.records"
MAX_OFFSETS = "maxOffsetsPerTrigger"
_BATCH_BOUNDS: Final = {"maxoffsetspertrigger", "minoffsetspertrigger"}
DEFAULTS: Final = {
    ISOLATION: "read_committed",
    # Spark's consumers send two ListOffsets requests for each poll. With Kafka's default of 500
    # records a batch read had 0.56 of the rate (446,000 to 248,000 rows/s).
    POLL_RECORDS: "10000",
}
"""Options of Spark's source with another default here."""
BATCH_OFFSETS_MAX: Final = 1_000_000
"""Default of maxOffsetsPerTrigger if batches follow each other without a pause."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The topics that a pipeline reads, from their beginning by default.

    `options` are those of Spark's Kafka source; `DEFAULTS` lists those with another default here.
    A source of another kind is a function of the SparkSession that returns a streaming DataFrame.
    """

    topic: str | Sequence[str] | None = None
    pattern: str | None = None
    """A Java regular expression instead of topics."""
    servers: str | None = None
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    def load(self, spark: SparkSession, *, is_bounded: bool = False) -> DataFrame:
        """Return the stream; with ``is_bounded`` a batch has at most BATCH_OFFSETS_MAX offsets.

        The options maxOffsetsPerTrigger and minOffsetsPerTrigger take the place of that bound.
        """
        given = self.spark_options(starting="earliest")
        if is_bounded and not _BATCH_BOUNDS & {name.lower() for name in given}:
            given[MAX_OFFSETS] = str(BATCH_OFFSETS_MAX)
        return spark.readStream.format("kafka").options(**given).load()

    def resolved_servers(self) -> str:
        """Return the addresses of the source's brokers."""
        return servers_or_default(self.servers)

    def security(self) -> ClientSecurity | None:
        """Return the security settings for the source's brokers; raises WrongOption."""
        return security_of_options(self.options)

    def topics(self) -> list[str]:
        """Return the names of the topics; empty if a pattern selects them."""
        if self.topic is None:
            return []
        return [self.topic] if isinstance(self.topic, str) else list(self.topic)

    def spark_options(self, *, starting: str | None = None) -> dict[str, str]:
        """Return the options of Spark's source; raises WrongOption."""
        return source_options(
            self.topic, self.pattern, self.servers, self.options, starting=starting
        )


def read(
    spark: SparkSession,
    topic: str | Sequence[str] | None = None,
    *,
    pattern: str | None = None,
    servers: str | None = None,
    **options: object,
) -> DataFrame:
    """Return the present committed records of topics as a static DataFrame."""
    given = source_options(topic, pattern, servers, options)
    return spark.read.format("kafka").options(**given).load()


def read_stream(
    spark: SparkSession,
    topic: str | Sequence[str] | None = None,
    *,
    pattern: str | None = None,
    servers: str | None = None,
    **options: object,
) -> DataFrame:
    """Return the committed records of topics, from the beginning, as a streaming DataFrame."""
    return Source(topic=topic, pattern=pattern, servers=servers, options=options).load(spark)


def source_options(
    topic: str | Sequence[str] | None,
    pattern: str | None,
    servers: str | None,
    options: Mapping[str, object],
    *,
    starting: str | None = None,
) -> dict[str, str]:
    """Return the options of Spark's Kafka source; raises WrongOption."""
    if (topic is None) == (pattern is None):
        raise WrongOption("A source needs a topic or a pattern, and not both.")
    given = {SERVERS: servers_or_default(servers), **DEFAULTS}
    names = {name.lower(): name for name in options}
    if starting is not None and not any(name.startswith("starting") for name in names):
        given[STARTING_OFFSETS] = starting
    for option in ("subscribe", "subscribePattern", "assign"):
        if option.lower() in names:
            raise WrongOption(f"The source's option {option} is said with topic= or pattern=.")
    if SERVERS in names:
        raise WrongOption(f"The source's option {SERVERS} is said with servers=.")
    for name, value in options.items():
        # Spark reads names without their case; a second spelling would be a second option.
        key = name.lower() if name.lower() in DEFAULTS else name
        given[key] = str(value).lower() if isinstance(value, bool) else str(value)
    if pattern is not None:
        return given | {"subscribePattern": pattern}
    names_of_topics = [topic] if isinstance(topic, str) else list(topic or ())
    if not names_of_topics:
        raise WrongOption("A source needs at least one topic.")
    return given | {"subscribe": ",".join(names_of_topics)}
