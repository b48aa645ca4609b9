"""The files of a checkpoint on an object store, reached from Python without Spark's JVM.

Such a store has no directories and no rename. A folder exists if the name of an object begins with
it, and a file is written by one request, whole or not at all. (Azure's client creates an empty file
first; an empty note counts as none.)

A store that fails ends the query with one sentence, before the batch is decided: otherwise batches
would be written without being compared with the checkpoint. There is one exception. Where neither
options nor the environment have credentials, only Spark's JVM may have them, in its Hadoop
settings. Then Python cannot know whether the store is reachable: it warns once, and leaves the
comparison out.
"""

from __future__ import annotations

import os
import platform
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from barnabas.spark_connector.checkpoint.store_file_systems import (
    CALL_TIMEOUT_S,
    file_system,
    path_of,
)
from barnabas.spark_connector.errors import CheckpointUnusable
from barnabas.spark_connector.settings.store_options import (
    AZURE,
    GOOGLE,
    S3,
    StoreOptions,
    store_of,
)
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import start_thread

Value = TypeVar("Value")

LARGEST_FILE_BYTES: Final = 64 * 1024 * 1024
RETRY_AFTER_S: Final = 300
"""Time between two attempts to reach a store whose credentials are not known."""

CREDENTIALS: Final = {
    S3: (
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ),
    GOOGLE: ("GOOGLE_APPLICATION_CREDENTIALS",),
    AZURE: ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
}
"""Variables of the environment that name credentials."""
_CREDENTIAL_FILES: Final = {
    S3: ".aws/credentials",
    GOOGLE: ".config/gcloud/application_default_credentials.json",
    AZURE: ".azure",
}
_LOGIN: Final = {
    S3: (
        "the options checkpoint.accessKey and checkpoint.secretKey (and, where the server is not"
        " AWS's, checkpoint.endpoint), or AWS_* variables for Spark's Python workers"
    ),
    GOOGLE: "the variable GOOGLE_APPLICATION_CREDENTIALS for Spark's Python workers",
    AZURE: (
        "the option checkpoint.accessKey, checkpoint.sasToken or checkpoint.clientId, or AZURE_*"
        " variables for Spark's Python workers"
    ),
}
"""The places for a login."""
_NETWORK: Final = "check the network and the option checkpoint.endpoint"
_DENIED: Final = (
    "ACCESS_DENIED",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_ACCESS_KEY_ID",
    "403",
    "401",
)
_REQUEST_ID: Final = re.compile(r" \(Request ID: [^)]*\)")
_SILENT: Final = ("NETWORK_CONNECTION", "curlCode", "timed out", "Could not connect")


class ObjectFiles:
    """A checkpoint's directory on an object store; every error is a :class:`CheckpointUnusable`."""

    def __init__(self, location: str, options: StoreOptions | None) -> None:
        self._location = location
        self._store = store_of(location) or ""
        self._bucket, self._path = path_of(location)
        self._files: Any = self._bounded(lambda: file_system(location, options or StoreOptions()))

    def check(self) -> None:
        """Raise CheckpointUnusable unless the bucket exists and lets in."""
        if not self._exists(self._bucket):
            raise self._unusable(*self._no_bucket)
        self.read("metadata")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or `None` if it does not exist."""

        def read() -> bytes | None:
            try:
                with self._files.open_input_file(self._at(name)) as file:
                    return bytes(file.read(LARGEST_FILE_BYTES))
            except FileNotFoundError:
                return None

        return self._bounded(read)

    def exists(self, name: str) -> bool:
        """Whether there is such a file, or a file in such a folder."""
        return self._exists(self._at(name))

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, empty if it does not exist."""
        from pyarrow import fs

        chosen = fs.FileSelector(self._at(folder), allow_not_found=True)
        found = self._bounded(lambda: self._files.get_file_info(chosen))
        return [str(each.base_name) for each in found]

    def replace(self, name: str, content: bytes) -> None:
        """Write a file by one request; a reader sees either the old or the new content."""

        def write() -> None:
            with self._files.open_output_stream(self._at(name)) as file:
                file.write(content)

        self._bounded(write)

    def remove(self, name: str) -> None:
        """Delete a file."""
        self._bounded(lambda: self._files.delete_file(self._at(name)))

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _exists(self, path: str) -> bool:
        from pyarrow import fs

        info = self._bounded(lambda: self._files.get_file_info(path))
        return bool(info.type != fs.FileType.NotFound)

    def _bounded(self, call: Callable[[], Value]) -> Value:
        try:
            return _within(CALL_TIMEOUT_S, call)
        except _ERRORS as error:
            raise self._unusable(*self._reason_of(error)) from error

    def _reason_of(self, error: Exception) -> tuple[str, str]:
        """Return the reason of a failure, in the store's own words, and the action to take."""
        # Without what is another one each time: Python shows a warning once, by its text.
        text = _REQUEST_ID.sub("", " ".join(str(error).split()))
        if any(each in text for each in _DENIED):
            login = f"use a login that may list, read and write it: {_LOGIN[self._store]}"
            return f"access denied: {text}", login
        if isinstance(error, TimeoutError) or any(each in text for each in _SILENT):
            return f"the store did not respond: {text}", _NETWORK
        if isinstance(error, TypeError):
            return f"this pyarrow does not support an option: {text}", "install a newer pyarrow"
        if "NO_SUCH_BUCKET" in text:
            return self._no_bucket
        return text, "correct checkpointLocation or the options checkpoint.*"

    @property
    def _no_bucket(self) -> tuple[str, str]:
        return (
            f"the bucket {self._bucket} does not exist there",
            "create it, or correct checkpointLocation or the option checkpoint.endpoint",
        )

    def _unusable(self, reason: str, action: str) -> CheckpointUnusable:
        return CheckpointUnusable(
            f"The checkpoint {self._location} cannot be used from Python on {platform.node()}"
            f" ({reason}): {action}."
        )


# ------------------------------------------------------------------------------ opened in a process


@dataclass
class _Failure:
    """A store that is left out, and the error of the latest attempt."""

    error: CheckpointUnusable
    since_s: float
    is_reported: bool = False


_Key = tuple[str, StoreOptions | None]
_opened: dict[_Key, ObjectFiles] = {}
_left_out: dict[_Key, _Failure] = {}
_KEPT_MAX: Final = 8


def object_files(
    location: str,
    options: StoreOptions | None,
    *,
    warns: bool = True,
    environment: Mapping[str, str] = os.environ,
    now: Callable[[], float] = monotonic,
) -> ObjectFiles | None:
    """Return the files of a checkpoint, or `None` if only Spark's JVM may have its credentials.

    Raises :class:`CheckpointUnusable` if the store fails and credentials are known.
    """
    key = (location, options)
    if key in _opened:
        return _opened[key]
    failure = _left_out.get(key)
    if failure is None or now() - failure.since_s >= RETRY_AFTER_S:
        try:
            files = ObjectFiles(location, options)
            files.check()
        except CheckpointUnusable as error:
            if options is not None or has_credentials(store_of(location) or "", environment):
                raise
            failure = _Failure(error, now(), failure is not None and failure.is_reported)
            _keep(_left_out, key, failure)
        else:
            _left_out.pop(key, None)
            _keep(_opened, key, files)
            return files
    if warns and not failure.is_reported:
        failure.is_reported = True
        _warn(location, failure.error)
    return None


def has_credentials(store: str, environment: Mapping[str, str]) -> bool:
    """Whether the environment of this process says how to log in at a store."""
    home = environment.get("HOME", "")
    return any(environment.get(name) for name in CREDENTIALS[store]) or (
        bool(home) and Path(home, _CREDENTIAL_FILES[store]).exists()
    )


_ERRORS: Final = (
    # pyarrow's errors are kinds of these.
    *(OSError, ValueError, TypeError),
    # A pyarrow that was built without this store.
    *(ImportError, AttributeError, NotImplementedError),
)


def _warn(location: str, error: CheckpointUnusable) -> None:
    warnings.warn(
        f"{error} Batches are not compared with the checkpoint, and no source offsets are committed"
        " to a group. Python does not read Spark's Hadoop settings: set"
        f" {_LOGIN[store_of(location) or '']}; or use foreachBatch(two_phase(...)), which reads"
        " the checkpoint through Spark's JVM.",
        RuntimeWarning,
        stacklevel=5,
    )


def _keep(kept: dict[_Key, Value], key: _Key, value: Value) -> None:
    if len(kept) >= _KEPT_MAX:
        kept.clear()
    kept[key] = value


def _within(seconds: float, call: Callable[[], Value]) -> Value:
    """Return the result of a call, or raise TimeoutError; its thread then runs on by itself."""
    found: list[Value] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again, in the caller's thread
            raised.append(error)

    # A daemon, so that a call that never ends does not keep the process.
    thread = start_thread("barnabas-checkpoint", run)
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"no response in {seconds} seconds")
    if raised:
        raise raised[0]
    return found[0]
