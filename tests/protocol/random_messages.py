"""Random messages of any schema and version, from a seeded generator.

Values stay within what the stricter oracle accepts where its types are narrower than the wire's:
error codes that exist, durations and timestamps that fit its clock types.
"""

import importlib
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.protocol.api import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.generate.schema import Field, Schema, Struct
from tests.protocol.schemas import FIRST_TAG_OF_OURS, SCHEMAS

ERROR_CODES = [int(code) for code in ErrorCode]
RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LETTERS = "abcXYZ019-._ äß€😀"


class Case(NamedTuple):
    """One structure of one module, in one version."""

    module: str
    section: str
    schema: Schema
    message: Message[Any]
    version: int

    @property
    def struct(self) -> Struct:
        return self.schema.sections[self.section]

    def __str__(self) -> str:
        return f"{self.struct.name} v{self.version}"


def all_cases() -> Iterator[Case]:
    """Every request, response, record key and value and lone structure, in every version."""
    for module, schema in SCHEMAS.items():
        constant = getattr(generated(module), module.upper())
        for section in schema.sections:
            message = constant if section == "fields" else getattr(constant, section)
            for version in range(message.min_version, message.max_version + 1):
                yield Case(module, section, schema, message, version)


def generated(module: str) -> Any:
    return importlib.import_module(f"barnabas.protocol.messages.{module}")


class RandomMessages:
    """Makes messages; the same seed makes the same messages.

    Without ``own_tags`` they have nothing that only this project's schemas know.
    """

    def __init__(self, seed: int, *, own_tags: bool = True) -> None:
        self.random = random.Random(seed)
        self._own_tags = own_tags

    def message(self, case: Case) -> Any:
        """A message that has only what its version can carry, so that decoding gives it back."""
        return self._struct(generated(case.module), case.struct, case.version)

    def _struct(self, module: Any, struct: Struct, version: int) -> Any:
        values = {
            field.name: self._field(module, field, version)
            for field in struct.fields
            if version in field.versions
        }
        return getattr(module, struct.name)(
            **{name: value for name, value in values.items() if value is not Ellipsis}
        )

    def _field(self, module: Any, field: Field, version: int) -> Any:
        if field.tag is not None and self.random.random() < 0.5:
            return ...
        if field.tag is not None and field.tag >= FIRST_TAG_OF_OURS and not self._own_tags:
            return ...
        if field.nullable and version in field.nullable and self.random.random() < 0.25:
            return None
        if not field.is_array:
            return self._value(module, field, version)
        # Now and then an array long enough for a length of two bytes.
        long = field.struct is None and self.random.random() < 0.03
        count = self.random.randrange(120, 140) if long else self.random.randrange(4)
        return [self._value(module, field, version) for _ in range(count)]

    def _value(self, module: Any, field: Field, version: int) -> Any:
        if field.struct is not None:
            value = self._struct(module, field.struct, version)
            if field.tag is not None and not field.is_array and value == type(value)():
                # A tagged structure full of defaults is left out by every other encoder.
                return ...
            return value
        return getattr(self, f"_{field.type}")(field.name)

    def _bool(self, _name: str) -> bool:
        return self.random.random() < 0.5

    def _integer(self, kind: str, name: str) -> int:
        if name.endswith("error_code"):
            return self.random.choice(ERROR_CODES)
        if "time" in name or name.endswith("_ms"):
            return self.random.randrange(1_000_000)
        top = 1 << (RANGES[kind] - 1)
        return self.random.choice(
            (0, 1, -1, top - 1, -top, self.random.randrange(-top, top), self.random.randrange(100))
        )

    def _int8(self, name: str) -> int:
        return self._integer("int8", name)

    def _int16(self, name: str) -> int:
        return self._integer("int16", name)

    def _int32(self, name: str) -> int:
        return self._integer("int32", name)

    def _int64(self, name: str) -> int:
        return self._integer("int64", name)

    def _uint16(self, _name: str) -> int:
        return self.random.randrange(1 << 16)

    def _float64(self, _name: str) -> float:
        return self.random.choice((0.0, -1.5, 1e300, self.random.random()))

    def _uuid(self, _name: str) -> bytes:
        return self.random.randbytes(16)

    def _string(self, _name: str) -> str:
        length = self.random.choice((0, 1, 5, 12, 130 if self.random.random() < 0.1 else 3))
        return "".join(self.random.choice(LETTERS) for _ in range(length))

    def _bytes(self, _name: str) -> bytes:
        return self.random.randbytes(self.random.choice((0, 1, 20, 200)))

    def _records(self, _name: str) -> memoryview:
        return memoryview(self._bytes(_name))
