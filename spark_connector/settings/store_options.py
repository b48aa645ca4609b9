"""Options `checkpoint.*`: how Python reaches a checkpoint on an object store.

Spark's JVM has Hadoop's settings for that, such as `fs.s3a.endpoint`, which a Python worker does
not read. The environment has the rest, as the store's own SDK reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from barnabas.spark_connector.errors import WrongOption

PREFIX: Final = "checkpoint."
S3: Final = "S3"
GOOGLE: Final = "Google Cloud Storage"
AZURE: Final = "Azure"
STORES: Final = {
    "s3": S3,
    "s3a": S3,
    "s3n": S3,
    "gs": GOOGLE,
    "abfs": AZURE,
    "abfss": AZURE,
}
"""The object stores that pyarrow knows, by the schemes that Hadoop has for them."""


class _Option(NamedTuple):
    field: str
    stores: tuple[str, ...]


OPTIONS: Final = {
    "checkpoint.endpoint": _Option("endpoint", (S3, GOOGLE, AZURE)),
    "checkpoint.region": _Option("region", (S3,)),
    "checkpoint.caFile": _Option("ca_file", (S3,)),
    "checkpoint.accessKey": _Option("access_key", (S3, AZURE)),
    "checkpoint.secretKey": _Option("secret_key", (S3,)),
    "checkpoint.sessionToken": _Option("session_token", (S3,)),
    "checkpoint.roleArn": _Option("role_arn", (S3,)),
    "checkpoint.externalId": _Option("external_id", (S3,)),
    "checkpoint.sasToken": _Option("sas_token", (AZURE,)),
    "checkpoint.tenantId": _Option("tenant_id", (AZURE,)),
    "checkpoint.clientId": _Option("client_id", (AZURE,)),
    "checkpoint.clientSecret": _Option("client_secret", (AZURE,)),
}
# Spark hides values by the names of options, too: every secret's name fits its default pattern.
STORE_OPTIONS: Final = tuple(OPTIONS)
_ALL: Final = ", ".join(STORE_OPTIONS)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Checked options of an object store; picklable, and without secrets in its ``repr``."""

    endpoint: str = ""
    """Another server than the provider's, as `http://HOST:PORT` or `https://HOST[:PORT]`."""
    region: str = ""
    ca_file: str = ""
    """Path of a file with certificate authorities, in PEM."""
    access_key: str = field(default="", repr=False)
    """The ID of an S3 key, or the key of an Azure storage account."""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    role_arn: str = ""
    external_id: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


def is_about_store(name: str) -> bool:
    """Whether an option, in lower case, is one of these."""
    return name.startswith(PREFIX)


def store_of(location: str | None) -> str | None:
    """Return the object store of a checkpoint by its URI, or `None` if it is on none."""
    scheme, separator, _rest = (location or "").partition("://")
    return STORES.get(scheme.lower()) if separator else None


def store_options(given: Mapping[str, str], location: str | None) -> StoreOptions | None:
    """Return the options of the checkpoint's store, or `None` if there are none.

    ``given`` has names in lower case. Raises :class:`WrongOption`, without the value of a secret.
    """
    names = {name.lower(): name for name in STORE_OPTIONS}
    found = {}
    for name, value in given.items():
        if not is_about_store(name):
            continue
        if name not in names:
            raise WrongOption(_unknown(name, names))
        found[names[name]] = _value(names[name], value, location)
    if not found:
        return None
    options = StoreOptions(**{OPTIONS[name].field: value for name, value in found.items()})
    _check_together(options, store_of(location))
    return options


def _unknown(name: str, names: Mapping[str, str]) -> str:
    short = {each.removeprefix(PREFIX): full for each, full in names.items()}
    near = get_close_matches(name.removeprefix(PREFIX), short, n=1)
    hint = f": did you mean {short[near[0]]}?" if near else f", which are {_ALL}."
    return f"The option {name} is not one of this sink's{hint}"


def _value(name: str, value: str, location: str | None) -> str:
    value = value.strip()
    if not value:
        raise WrongOption(f"The option {name} is empty: give it a value, or leave it out.")
    store, stores = store_of(location), OPTIONS[name].stores
    if store is not None and store not in stores:
        raise WrongOption(
            f"The option {name} is for checkpoints on {' and '.join(stores)}, but the"
            f" checkpointLocation is {location}: leave the option out."
        )
    if name == "checkpoint.endpoint":
        _check_endpoint(value)
    return value


def _check_endpoint(value: str) -> None:
    hint = "write it as http://HOST:PORT or https://HOST"
    try:
        parts = urlsplit(value)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_more = parts.path.strip("/") or parts.query or parts.fragment
        _ = parts.port  # Raises ValueError if it is no port.
    except ValueError:
        raise WrongOption(f"The option checkpoint.endpoint is no URL: {hint}.") from None
    if parts.username is not None:
        raise WrongOption(
            "The option checkpoint.endpoint has a user in its URL: give credentials in"
            " checkpoint.accessKey and checkpoint.secretKey."
        )
    if not is_one or has_more:
        raise WrongOption(f"The option checkpoint.endpoint is {value!r}; {hint}.")


def _check_together(options: StoreOptions, store: str | None) -> None:
    """Refuse options that have no effect without another one, or exclude each other."""
    if store == S3 and bool(options.access_key) != bool(options.secret_key):
        given, missing = "accessKey", "secretKey"
        if options.secret_key:
            given, missing = missing, given
        raise WrongOption(f"The option {PREFIX}{given} needs {PREFIX}{missing}, too.")
    if options.session_token and not options.access_key:
        raise WrongOption("The option checkpoint.sessionToken needs checkpoint.accessKey, too.")
    if options.role_arn and options.access_key:
        raise WrongOption(
            "The options checkpoint.roleArn and checkpoint.accessKey exclude each other: a role is"
            " assumed with the credentials of the environment."
        )
    if options.external_id and not options.role_arn:
        raise WrongOption("The option checkpoint.externalId needs checkpoint.roleArn, too.")
    if store == AZURE:
        _check_azure(options)


def _check_azure(options: StoreOptions) -> None:
    logins = [options.access_key, options.sas_token, options.client_id]
    if sum(map(bool, logins)) > 1:
        raise WrongOption(
            "The options checkpoint.accessKey, checkpoint.sasToken and checkpoint.clientId exclude"
            " each other: give one of them."
        )
    secret = options.client_secret
    if bool(secret) != bool(options.tenant_id) or (secret and not options.client_id):
        raise WrongOption(
            "The options checkpoint.tenantId, checkpoint.clientId and checkpoint.clientSecret are"
            " one login: give all three, or checkpoint.clientId alone for a managed identity."
        )
