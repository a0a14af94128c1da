"""`leadline completion SHELL`: a script that completes subcommands, options and files in bash, zsh or fish."""

from __future__ import annotations

import argparse
import importlib
import re
import sys

from leadline.cli.subcommands import SUBCOMMANDS

_BASH = """\
_leadline() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{subcommands}" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _leadline leadline
"""
_OPTION = re.compile(r"(?:^  |, )(--[a-z][a-z-]*)")
"""Where the long name of an option stands in a line of help."""
_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        '  bash  eval "$(leadline completion bash)"       in ~/.bashrc\n'
        '  zsh   eval "$(leadline completion zsh)"        in ~/.zshrc, after compinit\n'
        "  fish  leadline completion fish | source        in ~/.config/fish/config.fish"
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell that reads the script")


def run(arguments: argparse.Namespace) -> int:
    found = options()
    if arguments.shell == "fish":
        sys.stdout.write(_fish(found))
        return 0
    begin = "autoload -U +X bashcompinit && bashcompinit\n" if arguments.shell == "zsh" else ""
    cases = "\n".join(f'    {name}) options="{" ".join(words)}" ;;' for name, words in found.items())
    sys.stdout.write(begin + _BASH.format(subcommands=" ".join(found), cases=cases))
    return 0


def options() -> dict[str, list[str]]:
    """The options of every subcommand, as its parser has them."""
    found: dict[str, list[str]] = {}
    for one in SUBCOMMANDS:
        words = {mode.word for mode in one.modes}
        for module in (one.module, *(mode.module for mode in one.modes)):
            parser = argparse.ArgumentParser(prog="leadline")
            parser.set_defaults(help_all=True)
            importlib.import_module(module).add_arguments(parser)
            for line in parser.format_help().splitlines():
                words.update(_OPTION.findall(line) if line.startswith("  -") else ())
        found[one.name] = sorted(word for word in words if word.startswith("--"))
    return found


def _fish(found: dict[str, list[str]]) -> str:
    lines = ["complete -c leadline -n __fish_use_subcommand -f"]
    for one in SUBCOMMANDS:
        about = one.help.replace("'", "\\'")
        lines.append(f"complete -c leadline -n __fish_use_subcommand -f -a {one.name} -d '{about}'")
        seen = f"'__fish_seen_subcommand_from {one.name}'"
        lines += [f"complete -c leadline -n {seen} -l {word[2:]}" for word in found[one.name]]
    return "\n".join(lines) + "\n"
