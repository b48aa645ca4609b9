"""Asks Java and Apache Kafka once more: `python -m tests.real.tls.golden` writes both files.

It takes a JDK, which compiles the two programs in java/.
"""

import json
import random
import subprocess

from tests.broker.tls.mapping_cases import CASES
from tests.broker.tls.names import (
    BMP,
    GENERAL,
    IA5,
    NUMERIC,
    OBJECT_IDENTIFIERS,
    PRINTABLE,
    T61,
    UNIVERSAL,
    UTF8,
    VISIBLE,
    attribute,
    name,
    tlv,
)
from tests.checkout import ROOT
from tests.counterparts.jars import kafka_class_path
from tests.counterparts.java import java

DIRECTORY = ROOT / "tests" / "broker" / "tls"
NAMES = DIRECTORY / "java_names.txt"
MAPPING = DIRECTORY / "java_mapping.txt"
TAGS = (UTF8, NUMERIC, PRINTABLE, T61, IA5, VISIBLE, GENERAL, UNIVERSAL, BMP)
TEXTS = (
    *("a,b", "a=b", "a+b", "a<b", "a>b", "a#b", "#ab", "a;b", 'a"b', '"ab"', "a\\b", "a\\,b"),
    *(" a", "a ", " a ", "  a  b  ", " ", "  ", "", "\ta", "a\t", "\ra", "a\r", "a \r", "\na"),
    *("a\n", "a\nb", "a\0b", "\0", "\0 ", "é", "日本", "😀", "a😀b", "a/b", "a'b", "a(b)", "a:b?c"),
    *(
        "a*b",
        "a@b",
        "a_b",
        "a&b",
        "a%b",
        "a\x7fb",
        "a\x01b",
        "\xa0a\xa0",
        "\u200fa",
        "ﬁ",
        "e\u0301",
    ),
    *("#", "\\", "=", "CN=x,O=y"),
)
BAD_UTF8 = (b"Z\xfcrich", b"\xff\xfe\0a", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82", b"\xf8\x88x")


def names() -> list[bytes]:
    """Names of every kind, and random ones."""
    found = [name()]
    found += [name(attribute(kind, "value x", tag)) for kind in OBJECT_IDENTIFIERS for tag in TAGS]
    found += [name(attribute(kind, text)) for kind in ("CN", "e-mail") for text in TEXTS]
    found += [name(attribute("CN", "Zürich", tag)) for tag in (UTF8, T61, UNIVERSAL, BMP)]
    found += [name(attribute("CN", wrong, tag)) for wrong in BAD_UTF8 for tag in (UTF8, T61, BMP)]
    not_text = ((2, b"\x05"), (4, b"abc"), (1, b"\xff"), (5, b""), (3, b"\0\xaa"))
    found += [name(attribute("CN", content, tag)) for tag, content in not_text]
    found.append(name(attribute("CN", tlv(UTF8, b"x"), 0x30)))
    found += [
        name(attribute(kind, "q")) for kind in ("1.3.6.1.4.1.99999.1", "2.999.3", "2.5.4.3.1")
    ]
    found += [name(attribute(kind, "x" * 300)) for kind in ("CN", "e-mail")]
    country, user = attribute("C", "CH", PRINTABLE), attribute("CN", "alice")
    number = attribute("UID", "1234")
    found += [name(country, attribute("O", "Barn"), attribute("OU", "eng"), user)]
    found += [name(user, attribute("OU", "eng"), attribute("O", "Barn"), country)]
    found += [name(country, [user, number]), name(country, [number, user]), name(user, user)]
    draw = random.Random(2253)
    alphabet = 'ab ,=+<>#;"\\\r\n\0éß日😀'
    for _ in range(200):
        parts = [
            attribute(
                draw.choice(list(OBJECT_IDENTIFIERS)),
                "".join(draw.choices(alphabet, k=draw.randrange(8))).encode(),
                draw.choice((UTF8, UTF8, T61, GENERAL)),
            )
            for _ in range(draw.randrange(1, 5))
        ]
        found.append(name(*parts))
    lead = (
        b"\xc2",
        b"\xe0",
        b"\xe2",
        b"\xed",
        b"\xf0",
        b"\xf4",
        b"\xf5",
        b"a",
        b"\x80",
        b"\xa0",
        b"\xbf",
    )
    for _ in range(300):
        content = b"".join(draw.choices(lead, k=draw.randrange(1, 6)))
        found.append(name(attribute("CN", content)))
    return list(dict.fromkeys(found))


def ask(program: str, lines: list[str], *options: str) -> list[str]:
    """Run a program on lines of input; return as many lines of output."""
    answer = subprocess.run(
        [str(java()), *options, str(DIRECTORY / "java" / program)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    results = answer.stdout.splitlines()
    assert len(results) == len(lines), answer.stderr
    return results


def main() -> None:
    """Write both files."""
    encoded = [each.hex() for each in names()]
    texts = [bytes.fromhex(text).decode() for text in ask("JavaNames.java", encoded)]
    lines = [f"{der} {json.dumps(text)}\n" for der, text in zip(encoded, texts, strict=True)]
    NAMES.write_text("".join(lines))
    asked = [f"{rules.encode().hex()} {dn.encode().hex()}" for rules, dn in CASES]
    results = ask("JavaMapping.java", asked, "-cp", kafka_class_path())
    MAPPING.write_text(
        "".join(
            f"{json.dumps([rules, dn, _described(result)])}\n"
            for (rules, dn), result in zip(CASES, results, strict=True)
        )
    )


def _described(result: str) -> str:
    return "=" + bytes.fromhex(result[1:]).decode() if result.startswith("=") else result


if __name__ == "__main__":
    main()
