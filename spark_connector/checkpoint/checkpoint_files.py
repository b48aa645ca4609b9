"""Files of a checkpoint, on a local disk or on any file system that Spark supports.

The driver's process reaches them through Spark's JVM. A process without a JVM reaches them
directly: local paths, object stores (`object_store.py`), and the other URIs of ``pyarrow.fs``.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.spark_connector.checkpoint.object_store import LARGEST_FILE_BYTES, object_files
from barnabas.spark_connector.settings.store_options import StoreOptions, store_of
from barnabas.storage.runtime.chance import random_bytes

_ABORTABLE: Final = "fs.capability.outputstream.abortable"
"""Hadoop's capability of file systems whose files appear when their streams are closed."""


_is_quiet = False


class Files(Protocol):
    """A checkpoint's directory; names are paths in it."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it does not exist."""

    def exists(self, name: str) -> bool:
        """Whether the file exists."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none if it does not exist."""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all; an existing file is replaced."""

    def remove(self, name: str) -> None:
        """Delete a file."""


def files_at(location: str | None, store: StoreOptions | None = None) -> Files | None:
    """Return the files of a checkpoint, or `None` if it is unreachable from this process.

    ``store`` has the options of an object store, for processes without Spark's JVM.
    """
    if location is None:
        return None
    context = _spark_context()
    if context is not None:
        return _files_of_spark(context, location)
    if store_of(location) is not None:
        return object_files(location, store, warns=not _is_quiet)
    path = local_path(location)
    if path is None:
        return _files_at_uri(location)
    if not os.path.isdir(path):
        # A path alone can be on another file system, whose name only the JVM knows.
        _unreachable(location, "no such local directory")
        return None
    return LocalFiles(path)


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the warning about an unreachable checkpoint: another process of the query warns."""
    global _is_quiet  # noqa: PLW0603 - warnings.catch_warnings() would let all others repeat
    _is_quiet = True
    try:
        yield
    finally:
        _is_quiet = False


def local_path(location: str) -> str | None:
    """Return the path of ``/a/b``, ``file:/a/b`` or ``file:///a/b``, or `None` for other URIs."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return unquote(parts.path)
    return None if parts.scheme else location


def _spark_context() -> Any:  # noqa: ANN401 - py4j has no types
    """Return the SparkContext of this process, or `None` in a worker or without PySpark."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._active_spark_context  # noqa: SLF001


def _unreachable(location: str, reason: str) -> None:
    if _is_quiet:
        return
    warnings.warn(
        f"The checkpoint {location} cannot be read from {platform.node()} ({reason}): batches are"
        " not compared with it, and no source offsets are committed to a group.",
        RuntimeWarning,
        stacklevel=4,
    )


class LocalFiles:
    """Files of this machine."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it does not exist."""
        try:
            with (self._path / name).open("rb") as file:
                return file.read(LARGEST_FILE_BYTES)
        except FileNotFoundError:
            return None

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return (self._path / name).exists()

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none if it does not exist."""
        try:
            return os.listdir(self._path / folder)
        except FileNotFoundError:
            return []

    def replace(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all; an existing file is replaced."""
        self._path.mkdir(parents=True, exist_ok=True)
        unready = self._path / _unready(name)
        with unready.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            unready.replace(self._path / name)
        except OSError:
            unready.unlink()
            raise
        directory = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self._path / name).unlink()


class HadoopFiles:
    """Files of a Hadoop file system, through Spark's JVM."""

    def __init__(self, context: Any, path: Any) -> None:  # noqa: ANN401
        self._context = context
        self._jvm = context._jvm  # noqa: SLF001
        self._path = path
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001
        self._files = path.getFileSystem(self._configuration)

    def _at(self, name: str) -> Any:  # noqa: ANN401
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it does not exist."""
        if not self.exists(name):
            return None
        stream = self._files.open(self._at(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return bool(self._files.exists(self._at(name)))

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none if it does not exist."""
        if not self.exists(folder):
            return []
        return [str(each.getPath().getName()) for each in self._files.listStatus(self._at(folder))]

    def replace(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all; an existing file is replaced."""
        if self._files.hasPathCapability(self._path, _ABORTABLE):
            self._put(name, content)
            return
        unready = self._at(_unready(name))
        stream = self._files.create(unready, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        # As Spark does it: the older interface cannot replace an existing file.
        fs = self._jvm.org.apache.hadoop.fs
        overwriting = self._context._gateway.new_array(fs.Options.Rename, 1)  # noqa: SLF001
        overwriting[0] = fs.Options.Rename.OVERWRITE
        context = fs.FileContext.getFileContext(self._path.toUri(), self._configuration)
        context.rename(unready, self._at(name), overwriting)

    def _put(self, name: str, content: bytes) -> None:
        """Write a file of an object store in one request; a rename would copy and delete it."""
        stream = self._files.create(self._at(name), True)
        try:
            stream.write(bytearray(content))
        except BaseException:
            stream.abort()
            raise
        stream.close()

    def remove(self, name: str) -> None:
        """Delete a file."""
        self._files.delete(self._at(name), False)


@lru_cache(maxsize=8)
def _files_of_spark(context: Any, location: str) -> Files:  # noqa: ANN401
    path = context._jvm.org.apache.hadoop.fs.Path(location)  # noqa: SLF001
    files = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
    if files.getUri().getScheme() == "file":
        # Directly, as workers do, without the checksum files that Hadoop writes beside its files.
        return LocalFiles(str(files.makeQualified(path).toUri().getPath()))
    return HadoopFiles(context, path)


class ArrowFiles:
    """Files at a URI that pyarrow supports."""

    def __init__(self, files: Any, path: str) -> None:  # noqa: ANN401
        self._files = files
        self._path = path.rstrip("/")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it does not exist."""
        if not self.exists(name):
            return None
        with self._files.open_input_file(f"{self._path}/{name}") as file:
            return bytes(file.read(LARGEST_FILE_BYTES))

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        from pyarrow import fs

        info = self._files.get_file_info(f"{self._path}/{name}")
        return bool(info.type != fs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none if it does not exist."""
        from pyarrow import fs

        chosen = fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        return [str(each.base_name) for each in self._files.get_file_info(chosen)]

    def replace(self, name: str, content: bytes) -> None:
        """Write a file completely or not at all; an existing file is replaced."""
        unready = f"{self._path}/{_unready(name)}"
        with self._files.open_output_stream(unready) as file:
            file.write(content)
        self._files.move(unready, f"{self._path}/{name}")

    def remove(self, name: str) -> None:
        """Delete a file."""
        self._files.delete_file(f"{self._path}/{name}")


def _files_at_uri(location: str) -> Files | None:
    from pyarrow import fs

    try:
        files = ArrowFiles(*fs.FileSystem.from_uri(location))
        files.exists("metadata")
    except (OSError, ValueError) as error:  # pyarrow's errors are kinds of these
        _unreachable(location, str(error))
        return None
    return files


def _unready(name: str) -> str:
    return f".{name}.{random_bytes(8).hex()}.tmp"
