"""Options `checkpoint.*`, and the arguments for pyarrow: no store is running."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from barnabas.spark_connector.checkpoint.object_store import has_credentials
from barnabas.spark_connector.checkpoint.store_file_systems import (
    azure_arguments,
    google_arguments,
    path_of,
    s3_arguments,
)
from barnabas.spark_connector.errors import CheckpointUnusable, WrongOption
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.settings.security import SECRETS_OF_SPARK
from barnabas.spark_connector.settings.store_options import (
    AZURE,
    GOOGLE,
    S3,
    STORE_OPTIONS,
    StoreOptions,
    store_of,
)

SECRET = "not-to-be-seen"
LEAST = {"kafka.bootstrap.servers": "localhost:9092", "sinkId": "orders"}
ON_S3 = {**LEAST, "checkpointLocation": "s3a://bucket/orders"}
ON_AZURE = {
    **LEAST,
    "checkpointLocation": "abfss://container@account.dfs.core.windows.net/orders",
}
KEY = {"checkpoint.accessKey": "AKIA", "checkpoint.secretKey": SECRET}
LOGIN = {"checkpoint.tenantId": "t", "checkpoint.clientId": "c", "checkpoint.clientSecret": SECRET}


def parsed(given):
    # As Spark passes them on.
    return SinkOptions.parse({name.lower(): value for name, value in given.items()})


def test_options_of_a_store_are_read_in_the_case_that_spark_passes_on():
    options = parsed(
        {**ON_S3, **KEY, "checkpoint.endpoint": "https://minio:9000", "checkpoint.region": "eu"}
    )
    assert options.checkpoint_store == StoreOptions(
        endpoint="https://minio:9000", region="eu", access_key="AKIA", secret_key=SECRET
    )
    assert parsed(ON_S3).checkpoint_store is None
    assert pickle.loads(pickle.dumps(options)) == options


def test_secrets_are_in_no_repr_and_their_names_are_hidden_by_spark():
    import re

    given = parsed({**ON_AZURE, **LOGIN})
    assert SECRET not in repr(given)
    secret = StoreOptions("", "", "", *[SECRET] * 3, "", SECRET, SECRET, "", "", SECRET)
    assert SECRET not in repr(secret)
    # What Spark hides by default, too.
    for pattern in (SECRETS_OF_SPARK, "(?i)secret|password|token|access[.]?key"):
        hidden = {name for name in STORE_OPTIONS if re.search(pattern, name)}
        assert hidden == {
            "checkpoint.accessKey",
            "checkpoint.secretKey",
            "checkpoint.sessionToken",
            "checkpoint.sasToken",
            "checkpoint.clientSecret",
        }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"checkpoint.endpont": "x"}, "did you mean checkpoint.endpoint?"),
        ({"checkpoint.access.key": SECRET}, "did you mean checkpoint.accessKey?"),
        ({"checkpoint.zzz": "x"}, "which are checkpoint.endpoint, checkpoint.region"),
        ({"checkpointEndpoint": "x"}, "did you mean checkpoint.endpoint?"),
        ({"checkpoint.region": " "}, "checkpoint.region is empty"),
        ({"checkpoint.endpoint": "minio:9000"}, "'minio:9000'; write it as http://HOST:PORT"),
        ({"checkpoint.endpoint": "http://minio:port"}, "is no URL: write it as http://HOST:PORT"),
        ({"checkpoint.endpoint": "http://minio/bucket"}, "write it as http://HOST:PORT"),
        ({"checkpoint.endpoint": f"http://me:{SECRET}@minio"}, "has a user in its URL"),
        ({"checkpoint.accessKey": "AKIA"}, "accessKey needs checkpoint.secretKey"),
        ({"checkpoint.secretKey": SECRET}, "secretKey needs checkpoint.accessKey"),
        ({"checkpoint.sessionToken": SECRET}, "sessionToken needs checkpoint.accessKey"),
        ({**KEY, "checkpoint.roleArn": "arn:x"}, "exclude each other: a role is assumed"),
        ({"checkpoint.externalId": "x"}, "externalId needs checkpoint.roleArn"),
        (
            {"checkpoint.sasToken": SECRET},
            "is for checkpoints on Azure, but the",
        ),
    ],
)
def test_wrong_options_on_s3_are_refused(given, sentence):
    with pytest.raises(WrongOption) as caught:
        parsed({**ON_S3, **given})
    assert sentence in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"checkpoint.region": "x"}, "is for checkpoints on S3"),
        ({**LOGIN, "checkpoint.sasToken": SECRET}, "exclude each other"),
        ({"checkpoint.tenantId": "t", "checkpoint.clientId": "c"}, "give all three"),
        ({"checkpoint.clientId": "c", "checkpoint.clientSecret": SECRET}, "give all three"),
        ({"checkpoint.tenantId": "t", "checkpoint.clientSecret": SECRET}, "give all three"),
    ],
)
def test_wrong_options_on_azure_are_refused(given, sentence):
    with pytest.raises(WrongOption) as caught:
        parsed({**ON_AZURE, **given})
    assert sentence in str(caught.value)
    assert SECRET not in str(caught.value)


def test_right_options_on_azure():
    for given in (
        {"checkpoint.accessKey": SECRET},
        {"checkpoint.sasToken": SECRET},
        {"checkpoint.clientId": "managed"},
        LOGIN,
    ):
        assert parsed({**ON_AZURE, **given}).checkpoint_store is not None


@pytest.mark.parametrize(
    ("location", "store"),
    [
        ("s3a://b/c", S3),
        ("S3://b/c", S3),
        ("s3n://b/c", S3),
        ("gs://b/c", GOOGLE),
        ("abfs://c@a.dfs.core.windows.net/x", AZURE),
        ("abfss://c@a.dfs.core.windows.net/x", AZURE),
        ("hdfs://b/c", None),
        ("/s3a/c", None),
        ("s3a", None),
        (None, None),
    ],
)
def test_store_of_a_location(location, store):
    assert store_of(location) == store


def test_path_of_a_location_is_the_one_that_hadoop_reads():
    assert path_of("s3a://bucket/a//b/") == ("bucket", "bucket/a/b")
    assert path_of("s3a://bucket") == ("bucket", "bucket")
    assert path_of("gs://bucket/a%20b c") == ("bucket", "bucket/a%20b c")
    assert path_of("abfss://c@a.dfs.core.windows.net/x") == ("c", "c/x")
    with pytest.raises(CheckpointUnusable, match="names no bucket"):
        path_of("s3a:///x")


def test_arguments_for_s3():
    given = s3_arguments(parsed({**ON_S3, **KEY}).checkpoint_store, {})
    assert (given["access_key"], given["secret_key"]) == ("AKIA", SECRET)
    assert {"endpoint_override", "region", "session_token", "tls_ca_file_path"}.isdisjoint(given)
    own = StoreOptions(endpoint="http://minio:9000", ca_file="/ca.pem", role_arn="arn:x")
    given = s3_arguments(own, {"AWS_ENDPOINT_URL": "http://another"})
    assert given["endpoint_override"] == "http://minio:9000"
    # A server that is not AWS's has no regions to look for.
    assert given["region"] == "us-east-1"
    assert (given["tls_ca_file_path"], given["role_arn"]) == ("/ca.pem", "arn:x")
    environment = {"AWS_ENDPOINT_URL": "http://general", "AWS_ENDPOINT_URL_S3": "http://s3"}
    assert s3_arguments(StoreOptions(), environment)["endpoint_override"] == "http://s3"


def test_arguments_for_google():
    assert google_arguments(StoreOptions()) == {"retry_time_limit": timedelta(seconds=30)}
    given = google_arguments(StoreOptions(endpoint="http://localhost:4443"))
    assert (given["scheme"], given["endpoint_override"]) == ("http", "localhost:4443")


def test_arguments_for_azure():
    location = "abfss://container@account.dfs.core.windows.net/orders"
    assert azure_arguments(location, parsed({**ON_AZURE, **LOGIN}).checkpoint_store) == {
        "account_name": "account",
        "tenant_id": "t",
        "client_id": "c",
        "client_secret": SECRET,
        "dfs_storage_authority": ".dfs.core.windows.net",
        "blob_storage_authority": ".blob.core.windows.net",
    }
    china = azure_arguments("abfss://c@a.dfs.core.chinacloudapi.cn/x", StoreOptions())
    assert china["blob_storage_authority"] == ".blob.core.chinacloudapi.cn"
    local = azure_arguments(location, StoreOptions(endpoint="http://127.0.0.1:10000"))
    assert local["dfs_storage_authority"] == local["blob_storage_authority"] == "127.0.0.1:10000"
    assert local["dfs_storage_scheme"] == "http"
    for wrong in ("abfss://container/orders", "abfss://c@account/orders"):
        with pytest.raises(ValueError, match="abfss://CONTAINER@ACCOUNT"):
            azure_arguments(wrong, StoreOptions())


def test_arguments_are_those_that_pyarrow_has():
    from pyarrow import fs

    fs.S3FileSystem(**s3_arguments(parsed({**ON_S3, **KEY}).checkpoint_store, {}))
    fs.GcsFileSystem(**google_arguments(StoreOptions(endpoint="http://localhost:4443")))
    fs.AzureFileSystem(
        **azure_arguments(ON_AZURE["checkpointLocation"], StoreOptions(sas_token="sv=1"))
    )


def test_credentials_of_the_environment(tmp_path):
    assert not has_credentials(S3, {})
    assert has_credentials(S3, {"AWS_PROFILE": "me"})
    assert has_credentials(GOOGLE, {"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"})
    assert not has_credentials(AZURE, {"AZURE_CLIENT_ID": ""})
    assert not has_credentials(S3, {"HOME": str(tmp_path)})
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").touch()
    assert has_credentials(S3, {"HOME": str(tmp_path)})
