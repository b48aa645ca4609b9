"""`python -m examples.exactly_once localhost:9092`: run all demonstrations, or those named."""

from __future__ import annotations

import argparse

from examples.exactly_once import aggregation, crash, stateless_filter, zombie

DEMONSTRATIONS = {
    "filter": stateless_filter.main,
    "aggregation": aggregation.main,
    "crash": crash.main,
    "zombie": zombie.main,
}


def main() -> None:
    """Run the demonstrations one after the other."""
    parser = argparse.ArgumentParser(prog="python -m examples.exactly_once", description=__doc__)
    parser.add_argument("servers", help="address of a broker: host:port")
    parser.add_argument("names", nargs="*", choices=[*DEMONSTRATIONS, []], help="all without")
    arguments = parser.parse_args()
    for number, name in enumerate(arguments.names or DEMONSTRATIONS):
        if number:
            print()
        DEMONSTRATIONS[name](arguments.servers)


if __name__ == "__main__":
    main()
