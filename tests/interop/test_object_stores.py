"""Object stores as obstore, the client library of Barnabas, finds them.

The table in `tests/counterparts/object_stores.py` has these facts in short.
"""

from __future__ import annotations

import contextlib
import os
from urllib.request import urlopen

import obstore.exceptions
import obstore.store
import pytest

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects import object_blob_store
from barnabas.storage.objects.blob_store import (
    BlobNotFound,
    BlobRefused,
    BlobStoreError,
    BlobThrottled,
)
from barnabas.storage.objects.object_blob_store import Address, ObjectBlobStore
from tests.checkout import ROOT
from tests.counterparts.go import tool
from tests.counterparts.object_stores import Rclone, Versitygw
from tests.counterparts.s3 import REGION, S3Server
from tests.counterparts.s3_gateway import S3Gateway
from tests.counterparts.scripted_s3 import Fault, Kind, ScriptedS3
from tests.products import case, for_the_night

BUFFERS = [memoryview(b"ab"), b"cd", bytearray(b"ef")]
RIGHT = {
    "PUT of a list of buffers": b"abcdef",
    "GET of a range": b"cd",
    "GET of a range over the end": b"cdef",
    "GET of a range behind the end": "GenericError",
    "GET of a missing key": "FileNotFoundError",
    "HEAD": 6,
    "PUT again": b"other",
    "PUT of a new key only": "AlreadyExistsError",
    "LIST": ["b/0", "b/1", "b/2", "b/3", "b/4"],
    "LIST from a key": ["b/2", "b/3", "b/4"],
    "LIST from the last key": [],
    "DELETE of a missing key": None,
    "DELETE": ["b/0"],
    "8 MiB of 128 buffers": 8 << 20,
}
"""Facts of a store that the cluster can use."""
DIFFERENT = {
    "moto": {},
    "versitygw": {},
    "scripted": {},
    "memory": {},
    "directory": {"DELETE of a missing key": "FileNotFoundError"},
    "rclone": {
        "GET of a range": "GenericError",
        "GET of a range over the end": "GenericError",
        "PUT of a new key only": b"new",
    },
}
"""Facts of a server that differ from ``RIGHT``."""


def s3_store(server, bucket="bucket", **settings):
    """Return obstore's client of a bucket; it repeats no request."""
    return obstore.store.S3Store(
        bucket,
        prefix="cluster/one",
        endpoint=server.url,
        region=REGION,
        **{
            "access_key_id": server.access_key,
            "secret_access_key": server.secret_key,
            "client_options": {"allow_http": True, "timeout": "10s"},
            "retry_config": {"max_retries": 0},
            **settings,
        },
    )


def moto(directory):
    """Return moto's server, which needs no directory."""
    return S3Server()


def scripted(directory):
    """Return our own server, which needs no directory."""
    return ScriptedS3()


@contextlib.contextmanager
def opened(name, directory):
    """Yield a store by its name in ``DIFFERENT``."""
    if name == "directory":
        yield obstore.store.LocalStore(str(directory))
    elif name == "memory":
        yield obstore.store.MemoryStore()
    else:
        made = {"moto": moto, "scripted": scripted, "versitygw": Versitygw, "rclone": Rclone}
        with made[name](directory) as server:
            server.create_bucket("bucket")
            yield s3_store(server)


def opened_as_configured(server, **settings):
    """Return the store as a broker opens it."""
    access = {"access_key": server.access_key, "secret_key": server.secret_key, **settings}
    address = Address("s3://bucket/prefix", server.url, REGION, allow_http=True, **access)
    return ObjectBlobStore.open(address)


@pytest.mark.parametrize(
    "make",
    [case(each, in_test=each is not Versitygw) for each in (moto, Versitygw, Rclone, scripted)],
)
def test_broker_takes_only_a_missing_object_for_missing(make, tmp_path):
    with make(tmp_path) as server:
        with pytest.raises(BlobStoreError):
            opened_as_configured(server).get_range("a", 0, 1)
        server.create_bucket("bucket")
        with pytest.raises(BlobNotFound):
            opened_as_configured(server).get_range("a", 0, 1)
        with pytest.raises(BlobStoreError):
            opened_as_configured(server, access_key="another").get_range("a", 0, 1)


@pytest.mark.parametrize(
    "make", [case(each, in_test=each is not Versitygw) for each in (moto, Versitygw, scripted)]
)
def test_broker_accepts_a_store_that_keeps_its_promises(make, tmp_path):
    with make(tmp_path) as server:
        server.create_bucket("bucket")
        for session in ("1", "2"):
            opened_as_configured(server).check(session)


@pytest.mark.parametrize("code", ["InvalidObjectState", "AccessDenied", "RequestTimeTooSkewed"])
def test_read_that_the_store_refuses_has_its_code(code):
    with ScriptedS3() as server:
        server.create_bucket("bucket")
        blobs = opened_as_configured(server)
        blobs.put("a", [b"abc"])
        server.script.append(Fault("GET", Kind.ERROR, status=403, code=code))
        with pytest.raises(BlobRefused, match=f"403 Forbidden.*{code}"):
            blobs.get_range("a", 0, 1)
        assert (server.count("GET"), server.count("HEAD")) == (1, 0)


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (429, "TooManyRequests")])
def test_store_that_throttles_is_known_by_its_status(status, code):
    with ScriptedS3() as server:
        server.create_bucket("bucket")
        blobs = opened_as_configured(server)
        server.script.append(Fault("PUT", Kind.ERROR, status=status, code=code))
        with pytest.raises(BlobThrottled, match=code):
            blobs.put("a", [b"abc"])
        assert server.count("PUT") == 1


def test_large_object_has_its_time_and_a_small_one_does_not(monkeypatch):
    """A packed segment over a slow line takes longer than the timeout of a small request."""
    monkeypatch.setattr(object_blob_store, "_TIMEOUT_S", 1)
    with ScriptedS3() as server:
        server.create_bucket("bucket")
        blobs = opened_as_configured(server)
        slow = Fault("PUT", Kind.SLOW, seconds=4, times=2)
        server.script.append(slow)
        with pytest.raises(BlobStoreError, match=r"after|timed? ?out|sending request"):
            blobs.put("small", [bytes(1024)])
        body = bytes(64 * 1024 * 1024)
        blobs.put("large", [body])
        assert len(server.bucket.objects["prefix/large"]) == len(body)


def test_broker_refuses_rclone_in_one_sentence(tmp_path):
    with Rclone(tmp_path) as server:
        server.create_bucket("bucket")
        with pytest.raises(StoreUnusable) as refused:
            opened_as_configured(server).check("1")
    place = "the object store at s3://bucket/prefix cannot be used"
    words = "Received non-partial response when range requested"
    assert str(refused.value) == f"{place}: GET failed: Generic S3 error: {words}"


@pytest.mark.parametrize(
    ("make", "error", "code"),
    [
        case(Versitygw, FileNotFoundError, "XAdminUserNotFound", in_test=False),
        case(Rclone, obstore.exceptions.PermissionDeniedError, "InvalidAccessKeyId", in_test=True),
    ],
)
def test_wrong_access_key_is_refused(make, error, code, tmp_path):
    """versitygw's refusal looks like a missing object to a client that reads no code."""
    with make(tmp_path) as server:
        server.create_bucket("bucket")
        with pytest.raises(error, match=code):
            s3_store(server, access_key_id="another").get("a")


class Composed(Versitygw):
    """versitygw as docker/compose.cluster.yaml starts it."""

    def __init__(self, directory):
        super().__init__(directory)
        self.secrets = directory / "secrets"
        self.secrets.mkdir()
        (self.secrets / "secret").write_text(f"{self.secret_key}\n")

    def command(self):
        name = self.directory / "versitygw"
        if not name.exists():
            name.symlink_to(tool("versitygw"))
        script = ROOT / "docker" / "cluster" / "objects"
        path = f"PATH={self.directory}:{os.environ['PATH']}"
        return ["env", path, str(script), str(self.secrets), str(self.directory), str(self.port)]


@for_the_night(
    beside="tests/postgresql/test_compose_cluster.py::test_object_store_and_brokers_get_one_secret"
)
def test_store_of_the_compose_file_keeps_its_promises(tmp_path):
    with Composed(tmp_path) as server:
        assert urlopen(f"{server.url}/health", timeout=30).status == 200
        address = Address(
            "s3://barnabas/cluster", server.url, "us-east-1", "barnabas", server.secret_key,
            allow_http=True,
        )  # fmt: skip
        ObjectBlobStore.open(address).check("1")
        server.kill()
        server.launch()
        server.wait_until_ready()
        ObjectBlobStore.open(address).check("2")


def outcome(call):
    """Return the result of a call, or the name of its exception."""
    try:
        return call()
    except (obstore.exceptions.BaseError, OSError) as error:
        return type(error).__name__


def keys(store, **from_where):
    """Return the keys below `b`, two in each page."""
    return [each["path"] for page in store.list("b", chunk_size=2, **from_where) for each in page]


def observed(store):
    """Return the facts of a store, by the names of ``RIGHT``."""
    facts = {}

    def put(key, content, **how):
        store.put(key, content, use_multipart=False, **how)

    def content():
        return bytes(store.get("a").bytes())

    def note(name, call):
        facts[name] = outcome(call)

    def put_and_read(content_to_put, **how):
        put("a", content_to_put, **how)
        return content()

    note("PUT of a list of buffers", lambda: put_and_read(BUFFERS))
    note("GET of a range", lambda: bytes(store.get_range("a", start=2, end=4)))
    note("GET of a range over the end", lambda: bytes(store.get_range("a", start=2, end=40)))
    note("GET of a range behind the end", lambda: bytes(store.get_range("a", start=20, end=40)))
    note("GET of a missing key", lambda: store.get("missing"))
    note("HEAD", lambda: store.head("a")["size"])
    note("PUT again", lambda: put_and_read(b"other"))
    note("PUT of a new key only", lambda: put_and_read(b"new", mode="create"))
    for number in range(5):
        put(f"b/{number}", bytes(number))
    note("LIST", lambda: sorted(keys(store)))
    note("LIST from a key", lambda: sorted(keys(store, offset="b/1")))
    note("LIST from the last key", lambda: keys(store, offset="b/4"))
    note("DELETE of a missing key", lambda: store.delete("b/9"))
    store.delete([f"b/{number}" for number in range(1, 5)])
    note("DELETE", lambda: keys(store))
    put("large", [memoryview(bytes(64 << 10))] * 128)
    note("8 MiB of 128 buffers", lambda: store.head("large")["size"])
    return facts


@pytest.mark.parametrize("name", [case(each, in_test=each != "versitygw") for each in DIFFERENT])
def test_object_store_does_what_its_facts_say(name, tmp_path):
    with opened(name, tmp_path) as store:
        assert observed(store) == {**RIGHT, **DIFFERENT[name]}


class TestScripted:
    """Each kind of fault, as the client meets it."""

    @pytest.fixture
    def server(self):
        with ScriptedS3() as running:
            running.create_bucket("bucket")
            yield running

    @pytest.mark.parametrize(
        ("kind", "error", "is_written"),
        [
            (Kind.ERROR, "GenericError", False),
            (Kind.ERROR_AFTER_EFFECT, "GenericError", True),
            (Kind.RESET, "GenericError", False),
            (Kind.RESET_AFTER_EFFECT, "GenericError", True),
            (Kind.LOST, None, False),
        ],
    )
    def test_put_that_fails(self, server, kind, error, is_written):
        store = s3_store(server)
        server.script.append(Fault("PUT", kind))
        assert outcome(lambda: store.put("a", b"content", use_multipart=False) and None) == error
        assert ("cluster/one/a" in server.bucket.objects) == is_written
        assert server.count("PUT") == 1

    def test_ghost_appears_after_its_number_of_requests(self, server):
        store = s3_store(server)
        server.script.append(Fault("PUT", Kind.GHOST, later=3))
        with pytest.raises(obstore.exceptions.GenericError, match="503"):
            store.put("a", b"content", use_multipart=False)
        assert [outcome(lambda: bytes(store.get("a").bytes())) for _ in range(3)] == [
            "FileNotFoundError",
            "FileNotFoundError",
            b"content",
        ]

    def test_response_that_is_cut_fails_and_one_that_is_damaged_does_not(self, server):
        store = s3_store(server)
        store.put("a", b"0123456789", use_multipart=False)
        server.script += [Fault("GET", Kind.CUT), Fault("GET", Kind.DAMAGED)]
        assert outcome(lambda: bytes(store.get_range("a", start=0, end=10))) == "GenericError"
        assert bytes(store.get_range("a", start=0, end=10)) == b"0123446789"

    def test_slow_response_ends_with_the_timeout_of_the_client(self, server):
        options = {"allow_http": True, "timeout": "200ms"}
        store = s3_store(server, client_options=options)
        server.script += [Fault("PUT", Kind.SLOW, seconds=60), Fault("PUT", Kind.SLOW, seconds=0.1)]
        with pytest.raises(obstore.exceptions.GenericError, match="kind: Timeout"):
            store.put("a", b"content", use_multipart=False)
        store.put("b", b"content", use_multipart=False)
        assert set(server.bucket.objects) == {"cluster/one/a", "cluster/one/b"}

    def test_late_listing_lacks_the_newest_objects(self, server):
        store = s3_store(server)
        for number in range(3):
            store.put(f"b/{number}", b"", use_multipart=False)
        server.script.append(Fault("LIST", Kind.STALE, later=2))
        assert keys(store) == ["b/0"]
        assert keys(store) == ["b/0", "b/1", "b/2"]

    def test_wrong_key_and_missing_bucket_are_refused(self, server):
        denied = s3_store(server, access_key_id="another")
        assert outcome(lambda: denied.put("a", b"", use_multipart=False)) == "PermissionDeniedError"
        server.bucket.exists = False
        store = s3_store(server)
        assert outcome(lambda: store.put("a", b"", use_multipart=False)) == "FileNotFoundError"
        assert outcome(lambda: keys(store)) == "GenericError"
        assert server.bucket.objects == {}

    def test_fault_takes_its_number_of_requests_and_only_those_of_its_key(self, server):
        store = s3_store(server)
        server.script.append(Fault("PUT", Kind.ERROR, key="b/", times=2))
        puts = ["a", "b/1", "b/2", "b/3"]
        found = [outcome(lambda k=k: store.put(k, b"", use_multipart=False) and None) for k in puts]
        assert found == [None, "GenericError", "GenericError", None]
        assert server.script == []


@for_the_night(
    beside="tests/interop/test_object_stores.py::test_object_store_does_what_its_facts_say"
)
def test_gateway_fails_by_its_script_and_passes_the_rest_on(tmp_path):
    with Versitygw(tmp_path) as server:
        server.create_bucket("bucket")
        with S3Gateway(server, "bucket") as gateway:
            store = s3_store(gateway)
            assert observed(store) == RIGHT
            gateway.script += [
                Fault("PUT", Kind.ERROR_AFTER_EFFECT, key="late"),
                Fault("PUT", Kind.ERROR, key="failed"),
                Fault("PUT", Kind.GHOST, key="ghost", later=1),
            ]
            keys = ("late", "failed", "ghost")
            puts = [
                outcome(lambda k=k: store.put(f"f/{k}", b"", use_multipart=False)) for k in keys
            ]
            assert puts == ["GenericError"] * len(keys)
            gateway.script.append(Fault("LIST", Kind.STALE, key="f/", later=1))
            assert [each["path"] for each in store.list("f/").collect()] == ["f/ghost"]
            assert [each["path"] for each in store.list("f/").collect()] == ["f/ghost", "f/late"]
            server.kill()
            assert outcome(lambda: store.put("f/away", b"", use_multipart=False)) == "GenericError"
            server.launch()
            server.wait_until_ready()
            store.put("f/back", b"", use_multipart=False)
