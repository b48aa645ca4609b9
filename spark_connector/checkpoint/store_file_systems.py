"""pyarrow's file systems of object stores, made of URIs and options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from barnabas.spark_connector.errors import CheckpointUnusable
from barnabas.spark_connector.settings.store_options import (
    AZURE,
    GOOGLE,
    S3,
    StoreOptions,
    store_of,
)

CALL_TIMEOUT_S: Final = 60
"""Maximum time of one call to a store, with all its attempts."""
_ATTEMPTS_MAX: Final = 5
_SILENCE_S: Final = 10
_CONNECT_TIMEOUT_S: Final = 5
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def path_of(location: str) -> tuple[str, str]:
    """Return the bucket or container of a URI, and its path for pyarrow.

    The URI is read as Hadoop does: without quoting, and with repeated slashes as one.
    """
    _scheme, _, rest = location.partition("://")
    authority, _, path = rest.partition("/")
    bucket = authority.partition("@")[0]
    if not bucket:
        raise CheckpointUnusable(
            f"The checkpoint {location} names no bucket: write it as scheme://BUCKET/PATH."
        )
    return bucket, "/".join([bucket, *filter(None, path.split("/"))])


def file_system(location: str, options: StoreOptions) -> Any:  # noqa: ANN401 - pyarrow's
    """Return pyarrow's file system of a location; its errors are OSError, ValueError, TypeError."""
    make = {S3: _s3, GOOGLE: _google, AZURE: _azure}
    return make[store_of(location) or ""](location, options)


def _s3(location: str, options: StoreOptions) -> Any:  # noqa: ANN401
    from pyarrow import fs

    given = s3_arguments(options, os.environ)
    if not _has_region(given, os.environ):
        given["region"] = fs.resolve_s3_region(path_of(location)[0])
    try:
        # A small file is one PUT then, and leaves no parts behind where it is cut off.
        return fs.S3FileSystem(allow_delayed_open=True, **given)
    except TypeError:
        # Not in pyarrow before 20: three requests, of which the last one shows the file.
        return fs.S3FileSystem(**given)


def _has_region(given: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether options or environment say where the bucket is."""
    return "region" in given or any(map(environment.get, ("AWS_REGION", "AWS_DEFAULT_REGION")))


def s3_arguments(options: StoreOptions, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `pyarrow.fs.S3FileSystem`."""
    from pyarrow import fs

    # pyarrow reads the rest of AWS's variables itself.
    endpoint = options.endpoint or next(filter(None, map(environment.get, _ENDPOINTS)), "")
    given = {
        "access_key": options.access_key,
        "secret_key": options.secret_key,
        "session_token": options.session_token,
        "role_arn": options.role_arn,
        "external_id": options.external_id,
        "region": options.region or ("us-east-1" if endpoint else ""),
        "endpoint_override": endpoint,
        "tls_ca_file_path": options.ca_file,
    }
    return {
        **{name: value for name, value in given.items() if value},
        "request_timeout": _SILENCE_S,
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS_MAX),
    }


def _google(_location: str, options: StoreOptions) -> Any:  # noqa: ANN401
    from pyarrow import fs

    return fs.GcsFileSystem(**google_arguments(options))


def google_arguments(options: StoreOptions) -> dict[str, Any]:
    """Return the arguments of `pyarrow.fs.GcsFileSystem`."""
    given: dict[str, Any] = {"retry_time_limit": timedelta(seconds=CALL_TIMEOUT_S // 2)}
    if options.endpoint:
        given["scheme"], _, given["endpoint_override"] = options.endpoint.partition("://")
    return given


def _azure(location: str, options: StoreOptions) -> Any:  # noqa: ANN401
    from pyarrow import fs

    return fs.AzureFileSystem(**azure_arguments(location, options))


def azure_arguments(location: str, options: StoreOptions) -> dict[str, Any]:
    """Return the arguments of `pyarrow.fs.AzureFileSystem`.

    The account and its cloud are in the URI: `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`.
    """
    host = location.partition("://")[2].partition("/")[0].partition("@")[2]
    account, _, cloud = host.partition(".")
    if not account or not cloud.startswith("dfs."):
        raise ValueError(
            "the URI names no account: write it as"
            " abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
        )
    given = {
        "account_name": account,
        "account_key": options.access_key,
        "sas_token": options.sas_token,
        "tenant_id": options.tenant_id,
        "client_id": options.client_id,
        "client_secret": options.client_secret,
        "dfs_storage_authority": f".{cloud}",
        "blob_storage_authority": f".blob.{cloud.removeprefix('dfs.')}",
    }
    if options.endpoint:
        scheme, _, authority = options.endpoint.rstrip("/").partition("://")
        given |= {f"{each}_storage_authority": authority for each in ("dfs", "blob")}
        given |= {f"{each}_storage_scheme": scheme for each in ("dfs", "blob")}
    return {name: value for name, value in given.items() if value}
