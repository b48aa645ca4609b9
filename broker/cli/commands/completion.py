"""``barnabas completion``: print a completion script, made from the parsers of all commands."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from typing import Final

from barnabas.broker.cli.arguments import Verbs
from barnabas.broker.config.broker_config import BROKER_CONFIGS

OVERRIDE: Final = "--override"
"""Option whose values begin with a key of the broker."""
_ZSH: Final = "autoload -Uz +X compinit bashcompinit && compinit && bashcompinit\n"
_SCRIPT: Final = r"""
_barnabas_words() {
  case $1 in
%s
    *) return 1 ;;
  esac
}
_barnabas() {
  local verbs="" word words previous="" index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    previous=${COMP_WORDS[index]}
    if [[ $previous != -* ]] && _barnabas_words "$verbs$previous " >/dev/null; then
      verbs="$verbs$previous "
    fi
  done
  words=$(_barnabas_words "$verbs$previous") || words=$(_barnabas_words "$verbs")
  COMPREPLY=($(compgen -W "$words" -- "$2"))
  if [[ $words == *= ]] && type compopt >/dev/null 2>&1; then
    compopt -o nospace
  fi
}
complete -o default -F _barnabas barnabas
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a shell."""
    parser.usage = "barnabas completion bash|zsh"
    parser.epilog = (
        'For this shell: eval "$(barnabas completion bash)". For every one: put that line into '
        "~/.bashrc or ~/.zshrc."
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from barnabas.broker.cli.main import COMMANDS, parser_with

    sys.stdout.write(script(parser_with(COMMANDS), arguments.shell))
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell."""
    places: dict[str, list[str]] = {}
    for place, words in places_of(parser, ""):
        places.setdefault(" ".join(words), []).append(shlex.quote(place))
    cases = "\n".join(
        f"    {'|'.join(same)}) echo {shlex.quote(words)} ;;" for words, same in places.items()
    )
    return (_ZSH if shell == "zsh" else "") + _SCRIPT.lstrip() % cases


def places_of(parser: argparse.ArgumentParser, verbs: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each place before the cursor and its next words; an empty list means a file name.

    ``verbs`` is the command and its verb, each with a blank behind it.
    """
    words: list[str] = []
    for action in parser._actions:  # noqa: SLF001  argparse lists its arguments nowhere else.
        if isinstance(action, Verbs):
            for name, verb in action.choices.items():
                if verb.get_default("old_verb") is None:
                    words.append(name)
                    yield from places_of(verb, f"{verbs}{name} ")
            continue
        shown = action.option_strings[:2]
        choices = [str(each) for each in action.choices or ()]
        words += shown or choices
        if OVERRIDE in shown:
            choices = [f"{key}=" for key in BROKER_CONFIGS]
        if action.nargs != 0:
            for option in shown:
                yield f"{verbs}{option}", choices
    yield verbs, words
