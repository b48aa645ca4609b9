"""The object store behind its interface: a directory, and obstore's store in memory."""

import shutil

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore

from barnabas.storage.errors import IndexClosed
from barnabas.storage.files.io import LocalFile
from barnabas.storage.objects.blob_store import BlobNotFound, BlobStoreError
from barnabas.storage.objects.object_blob_store import (
    Address,
    Clients,
    DirectoryBlobStore,
    ObjectBlobStore,
)

KEYS = ["wal/10/0-0000000000000000-1", "wal/2/0-0000000000000000-1", "wal/2/0-0000000000000001-2"]


@pytest.fixture(params=["directory", "memory"])
def blobs(request, tmp_path):
    if request.param == "directory":
        return ObjectBlobStore.open(Address(f"file://{tmp_path}/objects").below("cluster"))
    store = MemoryStore()
    return ObjectBlobStore(lambda *_: store)


def test_object_is_read_by_ranges_as_it_was_put(blobs):
    blobs.put(KEYS[0], [b"ab", memoryview(b"cdef")[1:], bytearray(b"g")])
    assert blobs.get_range(KEYS[0], 0, 99) == b"abdefg"
    assert blobs.get_range(KEYS[0], 1, 3) == b"bde"
    assert blobs.get_range(KEYS[0], 5, 9) == b"g"
    assert blobs.get_range(KEYS[0], 6, 9) == b""
    assert blobs.get_range(KEYS[0], 70, 9) == b""
    assert blobs.get_range(KEYS[0], 3, 0) == b""


def test_missing_object_is_reported(blobs):
    with pytest.raises(BlobNotFound, match=KEYS[0]):
        blobs.get_range(KEYS[0], 0, 1)


def test_keys_are_listed_in_order_a_page_at_a_time(blobs):
    for key in reversed(KEYS):
        blobs.put(key, [b"x"])
    blobs.put("probe/1", [b"x"])
    assert blobs.list("wal/", "", 2) == KEYS[:2]
    assert blobs.list("wal/", KEYS[1], 2) == KEYS[2:]
    assert blobs.list("wal/", KEYS[2], 2) == []


def test_delete_ignores_keys_without_an_object(blobs):
    blobs.put(KEYS[0], [b"x"])
    blobs.put(KEYS[2], [b"x"])
    blobs.delete([KEYS[0], KEYS[1], KEYS[2]])
    assert blobs.list("wal/", "", 9) == []


def test_closed_connection_refuses_calls(blobs):
    blobs.close()
    with pytest.raises(IndexClosed):
        blobs.get_range(KEYS[0], 0, 1)


def test_directory_has_object_store_below_the_cluster(tmp_path):
    blobs = ObjectBlobStore.open(Address(f"file://{tmp_path}/a%20b").below("cluster"))
    blobs.put(KEYS[0], [b"abc"])
    assert (tmp_path / "a b" / "cluster" / KEYS[0]).read_bytes() == b"abc"


def test_directory_syncs_each_object_and_the_names_above_it_once_f6(tmp_path, monkeypatch):
    blobs = DirectoryBlobStore(str(tmp_path / "objects"), {})
    synced = []
    monkeypatch.setattr(blobs._files, "sync_directory", synced.append)
    monkeypatch.setattr(LocalFile, "fdatasync", lambda file: synced.append(file.path))
    blobs.put(KEYS[1], [b"abc"])
    root = tmp_path / "objects"
    names = (root / KEYS[1], root / "wal/2", root / "wal", root, tmp_path)
    assert synced == [str(each) for each in names]
    synced.clear()
    blobs.put(KEYS[2], [b"abc"])
    assert synced == [str(root / KEYS[2]), str(root / "wal/2")]


def test_call_that_the_store_refuses_has_its_words(tmp_path):
    (tmp_path / "wal").write_bytes(b"in the way")
    blobs = DirectoryBlobStore(str(tmp_path), {})
    with pytest.raises(BlobStoreError, match="wal"):
        blobs.put(KEYS[0], [b"x"])


def test_error_has_one_line_without_secrets():
    address = Address("s3://bucket", "http://127.0.0.1:1", "r", "ACCESS", "SECRET", allow_http=True)
    blobs = ObjectBlobStore.open(address.below("SECRET/ACCESS"))
    with pytest.raises(BlobStoreError) as refused:
        blobs.put("key", [b"x"])
    text = str(refused.value)
    assert text.startswith("Generic S3 error: Error performing PUT")
    assert "SECRET" not in text
    assert "ACCESS" not in text
    assert "\n" not in text


def test_error_of_an_address_without_an_access_key_is_readable():
    address = Address("gs://bucket", secret_key='{"private_key": "SECRET"')
    with pytest.raises(BlobStoreError) as refused:
        ObjectBlobStore.open(address)
    text = str(refused.value)
    assert text.startswith("Generic GCS error: ")
    assert "SECRET" not in text


def test_put_is_one_request_of_any_size(monkeypatch):
    seen = []
    monkeypatch.setattr(obstore, "put", lambda *_args, **named: seen.append(named))
    store = MemoryStore()
    ObjectBlobStore(lambda *_: store).put("key", [bytes(6 * 1024 * 1024)] * 4)
    assert seen == [{"use_multipart": False}]


def test_timeout_of_a_request_grows_with_its_body():
    opened = []

    def open_client(repeats, timeout_s):
        opened.append((repeats, timeout_s))
        return len(opened)

    clients = Clients(open_client)
    mib = 1024 * 1024
    assert clients.of(0, 4 * mib) == clients.of(0)
    assert clients.of(3, 4 * mib) != clients.of(0)
    assert clients.of(0, 64 * mib) == clients.of(0, 33 * mib)
    assert opened == [(0, 30), (3, 30), (0, 480)]


def test_address_that_names_no_store_is_refused():
    with pytest.raises(BlobStoreError):
        ObjectBlobStore.open(Address("s3://"))


def test_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BlobStoreError):
        ObjectBlobStore.open(Address(f"file://{tmp_path}/file/objects"))


def test_directory_that_is_not_mounted_is_an_unavailable_store(tmp_path):
    mounted, away, directories = tmp_path / "mounted", tmp_path / "away", {}
    address = Address(f"file://{mounted}/prefix").below("cluster")
    blobs = ObjectBlobStore.open(address, directories)
    blobs.put("wal/1/a", [b"abc"])

    def assert_unavailable(words):
        for store in (blobs, ObjectBlobStore.open(address, directories)):
            for call in (
                lambda store=store: store.put("wal/1/b", [b"x"]),
                lambda store=store: store.get_range("wal/1/a", 0, 1),
                lambda store=store: store.list("wal/", "", 10),
                lambda store=store: store.delete(["wal/1/a"]),
            ):
                with pytest.raises(BlobStoreError, match=words):
                    call()

    mounted.rename(away)
    assert_unavailable("is unavailable.*No such file")
    assert not mounted.exists()
    (mounted / "prefix" / "cluster").mkdir(parents=True)
    assert_unavailable("is another one than at the start")
    assert [*(mounted / "prefix" / "cluster").iterdir()] == []
    shutil.rmtree(mounted)
    away.rename(mounted)
    assert blobs.get_range("wal/1/a", 0, 3) == b"abc"
    with pytest.raises(BlobNotFound):
        blobs.get_range("wal/1/b", 0, 1)


def test_directory_that_is_lost_during_a_put_confirms_nothing(tmp_path, monkeypatch):
    mounted = tmp_path / "mounted"
    blobs = ObjectBlobStore.open(Address(f"file://{mounted}/prefix"))
    put = obstore.put

    def unmount_and_put(*arguments, **named):
        mounted.rename(tmp_path / "away")
        put(*arguments, **named)

    monkeypatch.setattr(obstore, "put", unmount_and_put)
    with pytest.raises(BlobStoreError):
        blobs.put("wal/1/a", [b"abc"])


def test_keys_are_those_of_the_store(tmp_path):
    blobs = DirectoryBlobStore(str(tmp_path), {})
    blobs.put(KEYS[0], [b"abc"])
    assert bytes(obstore.get_range(LocalStore(tmp_path), KEYS[0], start=0, length=3)) == b"abc"
