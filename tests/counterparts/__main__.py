"""`python -m tests.counterparts fetch`: get everything the interop tests and benchmarks need.

`compiler`: only what compiles Barnabas. `tools`: Helm, kubeconform, actionlint and versitygw, which
`make nightly` and `make release` need; the first build of Helm takes 20 minutes of CPU time, that
of versitygw 10.
"""

import argparse
import sys

from tests.counterparts.apicurio import apicurio
from tests.counterparts.archives import make_archives
from tests.counterparts.chromium import chromium
from tests.counterparts.compiler import compiler
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.go import tool
from tests.counterparts.jars import avro_jars, delta_jars, kafka_jars, s3a_jars, spark_kafka_jars
from tests.counterparts.java import java
from tests.counterparts.kcat import kcat
from tests.counterparts.postgresql import postgresql

TOOLS = ("actionlint", "kubeconform", "versitygw", "helm")


def main() -> int:
    """Fetch and check the counterparts; print where each one is."""
    parser = argparse.ArgumentParser(prog="python -m tests.counterparts", description=__doc__)
    parser.add_argument("command", choices=["fetch", "compiler", "tools"])
    command = parser.parse_args().command
    try:
        if command == "tools":
            for name in TOOLS:
                print(f"{name:<12}{tool(name)}")
            return 0
        print(f"compiler    {compiler()}")
        if command == "fetch":
            fetch()
    except MissingCounterpart as error:
        print(f"counterparts: {error}", file=sys.stderr)
        return 1
    return 0


def fetch() -> None:
    """Fetch and check all that is not for compiling."""
    print(f"java        {java()}")
    print(f"kafka jars  {kafka_jars()}")
    for jar in [*spark_kafka_jars(), *delta_jars(), *s3a_jars(), *avro_jars()]:
        print(f"spark jar   {jar}")
    print(f"apicurio    {apicurio()}")
    print(f"kcat        {kcat()}")
    print(f"chromium    {chromium().path}")
    print(f"postgresql  {postgresql().programs}")
    for name, is_there in make_archives().items():
        print(f"classes     {name}: {'archived' if is_there else 'loaded at every start'}")


sys.exit(main())
