"""The generator: what it reads, refuses and writes, and that the committed code is current."""

import os
import subprocess
import sys
import types

import pytest

from barnabas.protocol.generate.__main__ import PROTOCOL, generate, main
from barnabas.protocol.generate.module import module_text
from barnabas.protocol.generate.schema import SchemaError, Versions, parse_schema
from barnabas.protocol.generate.writer import Code, Names, snake_case
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.checkout import PYTHONPATH
from tests.protocol.schemas import DIRECTORY, SCHEMAS

# Every feature of the format, some of which no API of Kafka's combines.
EXAMPLE = """
api 7 Example versions 1-4 flexible 3+

struct Shared
  id  int32

request
  size     int16
  title    string?2+            = null
  origin   string     2+        = "here"
  items    [Item]?
    id     uuid
    pair   Shared?              = null
    names  [string]
    ratio  float64
  shared   Shared
  flags    [bool]     4
  limit    int64      1-2       = -1
  blob     bytes?     4+ tag 3  = null
  secret   bytes?                = null
  numbers  [int32]?
  ids      [uuid]?    3+ tag 0  = null
  wanted   bool       3+ tag 1  = true
  inner    Shared     3+ tag 5
  maybe    Shared?    3+ tag 6  = null
  other    Shared?    3+ tag 8
  epochs   [int32]?   3+ tag 9
  word     string     3+ tag 7

response
"""


@pytest.fixture(scope="module", params=[True, False], ids=["straight", "fields"])
def example(request):
    """The module that the generator makes of EXAMPLE."""
    name = "generated_example"
    module = types.ModuleType(name)
    sys.modules[name] = module
    schema = parse_schema(EXAMPLE, "example.schema")
    text = module_text(schema, "example", is_straight=request.param)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    yield module
    del sys.modules[name]


def full_request(example):
    return example.ExampleRequest(
        size=5,
        title="title",
        origin="there",
        items=[
            example.Item(b"i" * 16, example.Shared(1), ["a", "b" * 200], 0.5),
            example.Item(b"j" * 16, None, [], -1e300),
        ],
        shared=example.Shared(2),
        flags=[True, False],
        limit=9,
        secret=b"secret",
        numbers=[1, -1],
        blob=b"blob",
        ids=[b"k" * 16],
        wanted=False,
        inner=example.Shared(3),
        maybe=example.Shared(4),
        other=None,
        epochs=None,
        word="word",
    )


ABSENT = {
    1: ("origin", "flags", "blob", "ids", "wanted", "inner", "maybe", "word", "other", "epochs"),
    2: ("flags", "blob", "ids", "wanted", "inner", "maybe", "word", "other", "epochs"),
    3: ("flags", "limit", "blob"),
    4: ("limit",),
}


@pytest.mark.parametrize("version", ABSENT)
def test_every_feature_goes_both_ways(example, version):
    request = full_request(example)
    data = b"".join(example.EXAMPLE.encode_request(request, version))
    default = example.ExampleRequest()
    for name in ABSENT[version]:
        setattr(request, name, getattr(default, name))
    assert example.EXAMPLE.decode_request(memoryview(data), 0, version) == request


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_null_goes_both_ways(example, version):
    request = example.ExampleRequest(items=None, numbers=None)
    data = b"".join(example.EXAMPLE.encode_request(request, version))
    assert example.EXAMPLE.decode_request(memoryview(data), 0, version) == request
    with pytest.raises(ValueError, match="title may not be None"):
        example.EXAMPLE.encode_request(request, 1)


def test_every_length_of_a_record_batch_length():
    for size in (0, 1, 126, 127, 16_382, 16_383, 2_097_150, 2_097_151):
        request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[])])
        records = memoryview(bytes(size))
        request.topic_data[0].partition_data.append(PartitionProduceData(0, records))
        data = b"".join(PRODUCE.encode_request(request, 9))
        assert PRODUCE.decode_request(memoryview(data), 0, 9) == request


def test_the_bytes_of_the_last_version(example):
    request = example.ExampleRequest(
        size=1, title=None, origin="o", items=None, shared=example.Shared(2), wanted=False
    )
    assert b"".join(example.EXAMPLE.encode_request(request, 4)) == (
        b"\0\1"  # size
        b"\0"  # title: null
        b"\2o"  # origin
        b"\0"  # items: null
        b"\0\0\0\2\0"  # shared, no tags
        b"\1"  # flags: empty
        b"\0"  # secret: null
        b"\1"  # numbers: empty
        b"\1\1\1\0"  # one tagged field: wanted, one byte, false
    )


def test_the_committed_code_is_what_the_schemas_say(capsys):
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_check_prints_what_differs_and_write_repairs_it(tmp_path, capsys):
    schemas, messages = tmp_path / "schemas", tmp_path / "messages"
    schemas.mkdir()
    messages.mkdir()
    (schemas / "heartbeat.schema").write_text((DIRECTORY / "heartbeat.schema").read_text())
    (messages / "__init__.py").write_text("by hand\n")
    (messages / "stale.py").write_text("stale\n")
    options = ["--schemas", str(schemas), "--messages", str(messages)]
    assert main([*options, "--check"]) == 1
    printed = capsys.readouterr().out
    assert "+class HeartbeatRequest(Structure):" in printed
    assert "-stale" in printed
    assert main(options) == 0
    assert {path.name for path in messages.iterdir()} == {
        "__init__.py",
        "heartbeat.py",
        "registry.py",
    }
    assert (messages / "__init__.py").read_text() == "by hand\n"
    assert main([*options, "--check"]) == 0
    before = (messages / "heartbeat.py").stat().st_mtime_ns
    assert main(options) == 0
    assert (messages / "heartbeat.py").stat().st_mtime_ns == before


def test_the_command_exits_with_what_it_found():
    command = [sys.executable, "-m", "barnabas.protocol.generate", "--check"]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_a_structure_of_texts_needs_no_struct_module():
    schema = parse_schema("data X versions 0 flexible 0+\n\nfields\n  a  string\n", "x")
    text = module_text(schema, "x", is_straight=True)
    assert "import Struct" not in text
    compile(text, "x.py", "exec")


def test_a_bad_schema_is_one_line_and_an_exit_code(tmp_path, capsys):
    (tmp_path / "bad.schema").write_text("api x\n")
    assert main(["--schemas", str(tmp_path), "--messages", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "bad.schema, line 1: cannot be understood: api x\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("api 1 X versions 0\n\nquestion\n", "expected a section"),
        ("api 1 X versions 0\n\nrequest\n", "needs the sections"),
        ("data X versions 0\n\nfields\n  a int32 what\n", "line 4: cannot be understood"),
        ("data X versions 0\n\nfields\n  a [int32\n", "unbalanced bracket"),
        ("data X versions 0\n\nfields\n  a int32\n  a int32\n", "a field is named twice"),
        ("data X versions 0\n\nfields\n  a Unknown\n", "must be spelled out once"),
        (
            "data X versions 0\n\nstruct S\n  b int8\n\nfields\n  a S\n    b int8\n",
            "must be spelled out once",
        ),
        (
            "data X versions 0\n\nfields\n  a S\n    b int8\n  c S\n    d int8\n",
            "two different structures are called S",
        ),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(text, problem):
    with pytest.raises(SchemaError, match=problem):
        _ = parse_schema(text, "x.schema").structs


def test_ranges():
    schema = parse_schema(EXAMPLE, "example.schema")
    fields = {field.name: field for field in schema.sections["request"].fields}
    assert schema.versions == Versions(1, 4)
    assert fields["size"].versions == Versions(1, 4)
    assert fields["title"].nullable == Versions(2, 4)
    assert fields["limit"].versions == Versions(1, 2)
    assert fields["flags"].versions == Versions(4, 4)
    assert 3 not in fields["limit"].versions
    assert "3" not in fields["size"].versions


def test_the_generated_code_of_every_schema_compiles():
    files = generate(DIRECTORY)
    assert set(files) == {f"{name}.py" for name in SCHEMAS} | {"registry.py"}
    for name, text in files.items():
        compile(text, name, "exec")
        assert text == (PROTOCOL / "messages" / name).read_text()


def test_local_names_avoid_keywords_builtins_and_each_other():
    names = Names()
    assert names.new("topics", "request") == "topics"
    assert names.new("topics", "request") == "request_topics"
    assert names.new("from", "request") == "request_from"
    assert names.new("type", "request") == "request_type"
    assert names.new("size", "request") == "request_size"


def test_a_long_call_is_broken_at_its_arguments():
    code = Code()
    code.call("short(", ["a", "b"])
    code.call("call(", ["a" * 50, "b" * 50])
    assert code.text() == f"short(a, b)\ncall(\n    {'a' * 50},\n    {'b' * 50},\n)\n"


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("TopicData", "topic_data"),
        ("KRaftVersion", "k_raft_version"),
        ("X", "x"),
        ("IdV3", "id_v3"),
    ],
)
def test_snake_case(name, snake):
    assert snake_case(name) == snake
