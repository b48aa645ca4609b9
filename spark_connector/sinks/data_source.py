"""The sink ``df.writeStream.format("barnabas")``, which Spark finds by its name.

Spark's lookup of Python data sources imports this module in each session that uses one, through the
package ``pyspark_barnabas``. A module that raises there hides all data sources. So this module
imports only the standard library and PySpark; ``stream_writer.py`` is imported when a batch is
planned.

The package must be installed beside pyspark, in the same Python, on the machines of the driver and
of all executors.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NoReturn

from pyspark.sql.datasource import DataSource

from barnabas.spark_connector.errors import WrongOption
from barnabas.storage.runtime.chance import random_bytes

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from barnabas.spark_connector.sinks.stream_writer import BarnabasStreamWriter

_ASYNC_PROGRESS: Final = "asyncprogresstrackingenabled"


class BarnabasDataSource(DataSource):
    """The format "barnabas": writes streams exactly once.

    Spark registers it by its name; ``spark.dataSource.register(BarnabasDataSource)`` does the same.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "barnabas"

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002, FBT001 - complete mode: appended
    ) -> BarnabasStreamWriter:
        """Check options, columns and checkpoint; change nothing (see 1 in stream_writer.py).

        The writer raises a refusal of the checkpoint in its tasks: raised here, it would also
        prevent ``commit`` from aborting leftovers.
        """
        try:
            from barnabas.spark_connector.rows.spark_schema import check_frame
            from barnabas.spark_connector.settings.options import SinkOptions
            from barnabas.spark_connector.sinks.starting import find_refusal
            from barnabas.spark_connector.sinks.stream_writer import BarnabasStreamWriter
        except ImportError as error:
            raise WrongOption(_missing_package(error)) from error
        options = SinkOptions.parse(self.options)
        if self.options.get(_ASYNC_PROGRESS, "false").strip().lower() == "true":
            raise WrongOption(
                "The option asyncProgressTrackingEnabled cannot be used with this sink: with it"
                " Spark may change the offsets of a batch that it runs again."
            )
        check_frame(schema, options.topic)
        return BarnabasStreamWriter(options, random_bytes(8).hex(), find_refusal(options))

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, FBT001
        """Refuse batch writes: without a batch ID the sink cannot recognise a second run."""
        raise WrongOption(
            'The format "barnabas" is for streaming queries only: write a static DataFrame with'
            ' format("kafka"), or as a stream with trigger(availableNow=True).'
        )

    def schema(self) -> NoReturn:
        """Refuse to read: Spark's own source does that."""
        raise WrongOption(
            'The format "barnabas" only writes: read with format("kafka") and the option'
            " kafka.isolation.level=read_committed."
        )


def _missing_package(error: ImportError) -> str:
    return (
        f"The format barnabas cannot be used: {sys.executable}, the Python of Spark's workers,"
        f" cannot import {error.name or 'a package'} ({error}); install Barnabas with its"
        " extra spark there, for example pip install '.[spark]' in a checkout."
    )
