"""An S3 server on loopback: moto's, in a process of its own, with users whose keys it checks.

`python -m tests.counterparts.s3` is that process: it prints where it listens, and ends with its
standard input.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.checkout import ROOT
from tests.counterparts.errors import MissingCounterpart

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
START_TIMEOUT_S = 120
USERS = {"spark": ["s3:*"], "reader": ["s3:Get*", "s3:Head*", "s3:List*"]}
"""The users, and the actions that they may take."""


class Key(NamedTuple):
    """The key of a user."""

    access_key: str
    secret_key: str


class S3Server:
    """The server, from the start of the `with` block to its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.counterparts.s3"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
        )
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], START_TIMEOUT_S)
        line = output.readline() if ready else ""
        if not line:
            self.__exit__(None, None, None)
            raise MissingCounterpart("moto is needed: `pip install '.[interop]'`")
        found = json.loads(line)
        self.url: str = found["url"]
        self.access_key, self.secret_key = found["keys"]["spark"]
        self.reader = Key(*found["keys"]["reader"])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process = self._process
        assert process is not None
        process.kill()
        process.communicate()

    def client(self) -> closing[Any]:
        """Return Amazon's own client of the server, for a `with` statement that closes it."""
        return client_of(self.url, self.access_key, self.secret_key)

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        with self.client() as client:
            client.create_bucket(Bucket=name)

    def objects(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Return the objects of a bucket, without the empty ones that stand for directories."""
        with self.client() as client:
            return {
                key: client.get_object(Bucket=bucket, Key=key)["Body"].read()
                for key in _keys(client, bucket, prefix)
                if not key.endswith("/")
            }

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Write an object."""
        with self.client() as client:
            client.put_object(Bucket=bucket, Key=key, Body=content)

    def hadoop_settings(self) -> dict[str, str]:
        """Return the settings with which Spark's JVM reaches the server as `s3a`."""
        settings = {
            "endpoint": self.url,
            "endpoint.region": REGION,
            "access.key": self.access_key,
            "secret.key": self.secret_key,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}

    def sink_options(self) -> dict[str, str]:
        """Return the options with which the commit worker reaches it."""
        return {
            "checkpoint.endpoint": self.url,
            "checkpoint.region": REGION,
            "checkpoint.accessKey": self.access_key,
            "checkpoint.secretKey": self.secret_key,
        }


def client_of(url: str, access_key: str, secret_key: str) -> closing[Any]:
    """Return Amazon's own client of an S3 server, for a `with` statement that closes it."""
    return closing(_client("s3", url, access_key, secret_key))


def _keys(client: Any, bucket: str, prefix: str) -> Iterator[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for each in page.get("Contents", []):
            yield each["Key"]


def _client(service: str, url: str, access_key: str, secret_key: str) -> Any:
    import boto3

    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
    )


def main() -> None:
    """Serve until standard input ends."""
    from moto import settings
    from moto.server import ThreadedMotoServer

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What moto prints must not come between.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = _client("iam", url, "setup", "setup")
    keys = {user: _create_user(client, user, actions) for user, actions in USERS.items()}
    # From here on a request has to be signed with one of these.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    print(json.dumps({"url": url, "keys": keys}), file=answers)
    sys.stdin.read()
    server.stop()


def _create_user(client: Any, user: str, actions: list[str]) -> Key:
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.create_user(UserName=user)
    client.put_user_policy(UserName=user, PolicyName="checkpoints", PolicyDocument=policy)
    key = client.create_access_key(UserName=user)["AccessKey"]
    return Key(key["AccessKeyId"], key["SecretAccessKey"])


if __name__ == "__main__":
    main()
