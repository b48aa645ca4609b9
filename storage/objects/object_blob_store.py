"""The BlobStore on an object store: S3, GCS, Azure, or a directory, by obstore.

Rules of this file:

* obstore repeats no PUT by itself: each attempt needs a key of its own (F7). It repeats reads,
  listings and deletes.
* An object is one PUT, never a multipart upload: parts of an upload that ends half-way cost money,
  and no listing shows them.
* The timeout of a request grows with its body, so a packed segment has its time on a slow line.
* Errors have the store's own words, in one line and without credentials.
* A missing object is damage, so only the store's own code says that one is missing. A missing
  bucket, and at some servers a wrong access key, has the same status, and may pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

from barnabas.storage.errors import IndexClosed, StoreUnusable
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.objects.blob_store import (
    BlobNotFound,
    BlobRefused,
    BlobStoreError,
    BlobThrottled,
)
from barnabas.storage.objects.probe import probe

if TYPE_CHECKING:
    from obstore.store import ObjectStore

    from barnabas.storage.files.file_system import Buffer

_CONNECT_TIMEOUT_S: Final = 5
_TIMEOUT_S: Final = 30
"""Timeout of one request, with a body of up to ``_BODY_BYTES``."""
_BODY_BYTES: Final = 4 * 1024 * 1024
"""A body of twice the size has twice the time: a store that takes 140 kB/s takes each object."""
_REPEATS: Final = 3
"""Maximum number of times that a read, a listing or a delete is repeated."""
_WORDS_MAX: Final = 300
_FAILED_REQUEST: Final = "Server returned"
"""Text of each error that came with a status of HTTP."""
_REFUSED: Final = (PermissionDeniedError, UnauthenticatedError)
"""Errors of a read that the store refuses, of one object or of all."""
_THROTTLED: Final = (
    f"{_FAILED_REQUEST} non-2xx status code: 503",
    f"{_FAILED_REQUEST} non-2xx status code: 429",
)
"""Texts of the errors by which stores throttle a client."""
_MISSING: Final = ("NoSuchKey", "BlobNotFound")
"""Codes of S3 and GCS, and of Azure, for a key that has no object."""


class Address(NamedTuple):
    """Address of an object store, and how it is reached; see ``broker/config/cluster.py``."""

    url: str
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    path_style: bool = True
    allow_http: bool = False

    def below(self, name: str) -> Address:
        """Return the address of a prefix in this store."""
        return self._replace(url=f"{self.url.rstrip('/')}/{name}")


class ObjectEntry(NamedTuple):
    """An object in a listing."""

    key: str
    size_bytes: int
    written_s: float
    """Time of its upload by the store's clock, in seconds."""


class Clients:
    """Clients of one store, by their number of repeats and their timeout; any thread uses them."""

    def __init__(self, open_client: Callable[[int, int], ObjectStore]) -> None:
        """``open_client``: see ``ObjectBlobStore``."""
        self._open_client = open_client
        self._clients: dict[tuple[int, int], ObjectStore] = {}

    def of(self, repeats: int, body_bytes: int = 0) -> ObjectStore:
        """Return the client for requests with bodies of this size."""
        timeout_s, size_bytes = _TIMEOUT_S, _BODY_BYTES
        while size_bytes < body_bytes:
            timeout_s, size_bytes = 2 * timeout_s, 2 * size_bytes
        client = self._clients.get((repeats, timeout_s))
        if client is None:
            client = self._clients[repeats, timeout_s] = self._open_client(repeats, timeout_s)
        return client


class ObjectBlobStore:
    """A BlobStore whose objects lie below one prefix; several threads may share it."""

    repeats_calls: Final = False
    is_object_store: Final = True

    def __init__(
        self,
        open_client: Callable[[int, int], ObjectStore],
        url: str = "",
        secrets: Sequence[str] = (),
    ) -> None:
        """``open_client`` returns a client with a maximum number of repeats and a timeout in s.

        ``secrets`` are not shown in errors, ``url`` is.
        """
        self.url = url
        self._clients = Clients(open_client)
        self._secrets = secrets
        self._is_closed = False

    @classmethod
    def open(cls, address: Address, directories: dict[str, int] | None = None) -> ObjectBlobStore:
        """Return the store at an address; raises BlobStoreError if it has none.

        ``directories``: see ``DirectoryBlobStore``.
        """
        secrets = [each for each in (address.access_key, address.secret_key) if each]
        with _translated(secrets):
            if address.url.startswith("file:"):
                path = unquote(urlsplit(address.url).path)
                return DirectoryBlobStore(path, {} if directories is None else directories)
            opened = cls(partial(_store, address), address.url, secrets)
            opened._clients.of(_REPEATS)  # Raises the errors of the address.
            return opened

    @property
    def _others(self) -> ObjectStore:
        return self._clients.of(_REPEATS)

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """Store an object."""
        with self._calling():
            client = self._clients.of(0, sum(memoryview(each).nbytes for each in body))
            obstore.put(client, key, list(body), use_multipart=False)

    def put_new(self, key: str, body: Buffer) -> bool:
        """Store an object unless the key has one, and return whether it was stored."""
        with self._calling():
            try:
                client = self._clients.of(0, memoryview(body).nbytes)
                obstore.put(client, key, bytes(body), mode="create", use_multipart=False)
            except (AlreadyExistsError, FileExistsError):
                return False
            return True

    def check(self, name: str) -> None:
        """See ``BlobStore``."""
        try:
            probe(self, name)
        except StoreUnusable as error:
            raise StoreUnusable(f"the object store at {self.url} cannot be used: {error}") from None

    def get_range(self, key: str, position: int, length: int) -> bytes:
        """Return bytes of an object."""
        if not length:
            return b""  # obstore takes it for an error, which each attempt would meet.
        with self._calling(key):
            try:
                client = self._clients.of(_REPEATS, length)
                found = obstore.get_range(client, key, start=position, length=length)
            except _REFUSED:
                raise
            except BaseError as error:
                if self._size_of(key, error) <= position:
                    return b""
                raise
            return bytes(found)

    def _size_of(self, key: str, failure: BaseError) -> int:
        """Return the size of an object; raises ``failure`` if it is unknown."""
        try:
            return obstore.head(self._others, key)["size"]
        except BaseError:
            raise failure from None

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects."""
        with self._calling(), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._others, list(keys))

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """Return keys of objects."""
        with self._calling():
            found: list[str] = []
            pages = obstore.list(self._others, prefix, offset=after or None, chunk_size=most)
            for page in pages:
                found += [each["path"] for each in page]
                if len(found) >= most:
                    break
            return found[:most]

    def sizes(self, prefix: str) -> Iterator[ObjectEntry]:
        """Yield all objects whose keys start with a directory, in no order."""
        with self._calling():
            for page in obstore.list(self._others, prefix):
                yield from (
                    ObjectEntry(each["path"], each["size"], each["last_modified"].timestamp())
                    for each in page
                )

    def close(self) -> None:
        """Refuse calls from now on; one under way ends by itself, within its timeout."""
        self._is_closed = True

    @contextlib.contextmanager
    def _calling(self, key: str = "") -> Iterator[None]:
        self._require_open()
        with _translated(self._secrets, key):
            yield
        self._require_open()

    def _require_open(self) -> None:
        if self._is_closed:
            raise IndexClosed


class DirectoryBlobStore(ObjectBlobStore):
    """The store in a directory, whose objects are synced before they are durable.

    A directory that is not mounted now is a store that is unavailable: none of its objects is
    missing, and none is written to the disk below its mount point.
    """

    def __init__(self, path: str, directories: dict[str, int]) -> None:
        """Open ``path``; raises OSError and errors of obstore.

        ``directories`` has the identities of directories that were opened, which all connections
        of one broker share: the first one makes the directory, and later ones find it or fail.
        """
        super().__init__(lambda *_: LocalStore(prefix=path), f"file://{path}")
        self._path = path
        self._files = LocalFileSystem()
        self._synced: set[str] = set()
        """Directories whose names are durable."""
        if path not in directories:
            LocalStore(prefix=path, mkdir=True)
            directories[path] = self._files.identity(path)
        self._identity = directories[path]

    def put(self, key: str, body: Sequence[Buffer]) -> None:
        """Store an object."""
        super().put(key, body)
        with self._calling():
            path = self._files.join(self._path, key)
            with contextlib.closing(self._files.open(path)) as file:
                file.fdatasync()
            directory = path.rpartition("/")[0]
            self._files.sync_directory(directory)
            while directory not in self._synced and directory.startswith(self._path):
                self._synced.add(directory)
                directory = directory.rpartition("/")[0]
                self._files.sync_directory(directory)

    @contextlib.contextmanager
    def _calling(self, key: str = "") -> Iterator[None]:
        with super()._calling(key):
            self._require_mounted()
            try:
                yield
            finally:
                self._require_mounted()

    def _require_mounted(self) -> None:
        """Raise BlobStoreError unless the directory is the one that was opened first."""
        try:
            identity = self._files.identity(self._path)
        except OSError as error:
            raise BlobStoreError(f"directory {self._path} is unavailable: {error}") from None
        if identity != self._identity:
            raise BlobStoreError(
                f"directory {self._path} is another one than at the start: mount it again"
            )

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, one in each call, since a missing object ends a call of this store."""
        for key in keys:
            super().delete([key])

    def list(self, prefix: str, after: str, most: int) -> Sequence[str]:
        """Return keys of objects, in order, which obstore does not keep in a directory."""
        with self._calling():
            pages = obstore.list(self._others, prefix)
            found = sorted(each["path"] for page in pages for each in page)
            return [each for each in found if each > after][:most]


def _store(address: Address, repeats: int, timeout_s: int) -> ObjectStore:
    retries: Any = {"max_retries": repeats, "retry_timeout": timedelta(seconds=timeout_s)}
    client: Any = {
        "allow_http": address.allow_http,
        "connect_timeout": timedelta(seconds=_CONNECT_TIMEOUT_S),
        "timeout": timedelta(seconds=timeout_s),
    }
    options: Any = {"client_options": client, "retry_config": retries}
    if address.url.startswith("gs:"):
        given = {"service_account_key": address.secret_key}
        return GCSStore.from_url(address.url, config=_given(given), **options)
    if address.url.startswith("az:"):
        given = {
            "account_name": address.access_key,
            "account_key": address.secret_key,
            "endpoint": address.endpoint,
        }
        return AzureStore.from_url(address.url, config=_given(given), **options)
    given = {
        "access_key_id": address.access_key,
        "secret_access_key": address.secret_key,
        "endpoint": address.endpoint,
        "region": address.region,
    }
    config: Any = {**_given(given), "virtual_hosted_style_request": not address.path_style}
    return S3Store.from_url(address.url, config=config, **options)


def _given(values: dict[str, str | None]) -> Any:  # noqa: ANN401 - a config of obstore
    return {name: value for name, value in values.items() if value is not None}


@contextlib.contextmanager
def _translated(secrets: Sequence[str], key: str = "") -> Iterator[None]:
    """Raise an error of ``BlobStore`` for one of obstore or of the file system."""
    try:
        yield
    except FileNotFoundError as error:
        if key and _is_missing_object(str(error)):
            raise BlobNotFound(key) from None
        raise BlobStoreError(_words(error, secrets)) from None
    except _REFUSED as error:
        raise BlobRefused(_words(error, secrets)) from None
    except (BaseError, OSError, ValueError) as error:
        if any(each in str(error) for each in _THROTTLED):
            raise BlobThrottled(_words(error, secrets)) from None
        raise BlobStoreError(_words(error, secrets)) from None


def _is_missing_object(text: str) -> bool:
    return _FAILED_REQUEST not in text or any(each in text for each in _MISSING)


def _words(error: Exception, secrets: Sequence[str]) -> str:
    """Return the first line of an error's text, without secrets."""
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_WORDS_MAX]
