"""Parquet files that appear together and once: written aside, then renamed to their final place.

A rename to an existing directory changes nothing. So the first driver writes the batch, and an
overtaken driver is too late, even after a long pause. Its files are in a directory that readers of
the table skip (Spark ignores names that start with `_`), until a later batch deletes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.refusals import WrongUse
from barnabas.storage.runtime.chance import random_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASIDE: Final = "_barnabas"
RENAMES_AT_ONCE: Final = ("file", "hdfs")
"""Schemes of file systems whose rename is one step, and fails if its target exists."""


def write_once(
    rows: DataFrame, directory: str, query: str, batch_name: str, batch_id: int
) -> DataFrame:
    """Write `directory/query/batch_name=batch_id` unless it exists; return its rows."""
    folder = _Folder(rows, directory)
    final = f"{query}/{batch_name}={batch_id}"
    if not folder.has(final):
        folder.clear_up(f"{ASIDE}/{query}", batch_id)
        aside = f"{ASIDE}/{query}/{batch_id}-{random_bytes(8).hex()}"
        rows.write.parquet(f"{folder.uri}/{aside}")
        reach("T-aside")
        folder.publish(aside, final)
    return rows.sparkSession.read.parquet(f"{folder.uri}/{final}")


class _Folder:
    """A directory of a Hadoop file system, through Spark's JVM."""

    def __init__(self, rows: DataFrame, directory: str) -> None:
        context: Any = rows.sparkSession.sparkContext
        self._gateway = context._gateway  # noqa: SLF001 - it has no other name
        self._hadoop = context._jvm.org.apache.hadoop.fs  # noqa: SLF001
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001
        path = self._hadoop.Path(directory)
        self._files = path.getFileSystem(self._configuration)
        self._path = self._files.makeQualified(path)
        scheme = self._files.getUri().getScheme()
        if scheme not in RENAMES_AT_ONCE:
            raise WrongUse(
                f"{directory} is in a file system ({scheme}) where a directory is not renamed in"
                " one step, so half a batch could be seen: use one of a local disk or HDFS, or a"
                " table with transactions of its own, such as Delta's"
            )

    @property
    def uri(self) -> str:
        """Qualified URI of the directory, independent of the working directory."""
        return str(self._path.toString())

    def _at(self, name: str) -> Any:  # noqa: ANN401 - py4j has no types
        return self._hadoop.Path(self._path, name)

    def has(self, name: str) -> bool:
        """Return whether the name exists."""
        return bool(self._files.exists(self._at(name)))

    def clear_up(self, name: str, batch_id: int) -> None:
        """Delete leftovers of earlier batches, which no driver finishes any more."""
        if not self.has(name):
            return
        for each in self._files.listStatus(self._at(name)):
            number = str(each.getPath().getName()).partition("-")[0]
            if number.isdecimal() and int(number) < batch_id:
                self._files.delete(each.getPath(), True)

    def publish(self, aside: str, final: str) -> None:
        """Rename to the final place, unless another driver was faster."""
        target = self._at(final)
        self._files.mkdirs(target.getParent())
        # The older interface moves a directory into an existing one.
        none = self._gateway.new_array(self._hadoop.Options.Rename, 0)
        context = self._hadoop.FileContext.getFileContext(self._path.toUri(), self._configuration)
        try:
            context.rename(self._at(aside), target, none)
        except Exception:
            if not self._files.exists(target):
                raise
            self._files.delete(self._at(aside), True)
