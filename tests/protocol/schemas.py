"""The schemas, parsed once for all tests."""

from pathlib import Path

from barnabas import protocol
from barnabas.protocol.generate.schema import read_schema

FIRST_TAG_OF_OURS = 1000
"""Tagged fields from here on are in no definition of Kafka's."""

DIRECTORY = Path(protocol.__file__).parent / "schemas"
SCHEMAS = {path.stem: read_schema(path) for path in sorted(DIRECTORY.glob("*.schema"))}
