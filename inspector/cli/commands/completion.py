"""The command `completion`: what a shell offers at Tab, made from the options that the commands declare."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

from inspector.cli.common import DONE, PROGRAM, say

SUMMARY = "Print the script that completes commands and options in a shell."
SHORT_NAME = "ckpti"
EXAMPLES = ("completion bash",)
NOTES = f"""\
To have it in every new shell, add the line of yours to the file beside it:
  ~/.bashrc                   source <({PROGRAM} completion bash)
  ~/.zshrc                    source <({PROGRAM} completion zsh)
  ~/.config/fish/config.fish  {PROGRAM} completion fish | source
The packages for Debian and for rpm bring all three."""
IS_PLAIN = True
_MOST_CHARS = 70
_FILES = {"file", "f", "f.py", "out", "out.py", "out.png"}
_TARGETS = ("this", "cpu", "mps", "xpu", "rocm", "cuda", "2xcuda")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that the script is for")


def run(options: argparse.Namespace) -> int:
    say(script(options.shell))
    return DONE


def script(shell: str) -> str:
    """Return the script for `bash`, `zsh` or `fish`; nothing in it starts the program."""
    return "\n".join(_SCRIPTS[shell](_tree())) + "\n"


# --- what can be completed ----------------------------------------------------------------------------------


class _Word(NamedTuple):
    """An option, or without names what stands behind a command.

    Attributes:
        words: What it can be; where that is nothing, `takes` says what it is.
        is_many: Whether it may stand several times.
    """

    names: tuple[str, ...]
    help: str
    label: str
    words: tuple[str, ...]
    takes: str
    is_many: bool


_Tree = dict[str, tuple[str, list[_Word]]]
"""The summary and the words of each command; the window has no name."""


def _tree() -> _Tree:
    from inspector.cli.commands import COMMANDS
    from inspector.cli.parser import parser_of

    found: _Tree = {}
    for command in ("", *COMMANDS):
        parser = parser_of(command)
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - no other table
        summary = (parser.description or "").partition("\n")[0]
        found[command] = summary, [_word(command, action) for action in shown]
    return found


def _word(command: str, action: argparse.Action) -> _Word:
    from textwrap import shorten

    label = action.metavar if isinstance(action.metavar, str) else action.dest
    return _Word(
        names=tuple(action.option_strings),
        help=shorten(action.help or "", _MOST_CHARS, placeholder=" ..."),
        label=label,
        words=_choices(command, action),
        takes=_kind(action, label),
        is_many=isinstance(action, argparse._AppendAction) or action.nargs in {"+", "*"},  # noqa: SLF001 - it has no public name
    )


def _choices(command: str, action: argparse.Action) -> tuple[str, ...]:
    from inspector.cli.commands import COMMANDS
    from inspector.report.schemas import schema_names
    from inspector.snippet.styles.table import STYLES

    known: dict[tuple[str, str], tuple[str, ...]] = {
        ("help", "command"): tuple(COMMANDS),
        ("schema", "command"): schema_names(),
        ("snippet", "style"): tuple(style.id for style in STYLES),
        (command, "target"): _TARGETS,
    }
    if action.nargs == 0:
        return ()
    return tuple(map(str, action.choices or known.get((command, action.dest), ())))


def _kind(action: argparse.Action, label: str) -> str:
    if action.nargs == 0:
        return "nothing"
    if action.nargs == argparse.REMAINDER:
        return "command"
    if label.lower() in _FILES or action.dest in {"target", "python"}:
        return "file"
    return "folder" if label == "FOLDER" else "text"


# --- bash ---------------------------------------------------------------------------------------------------

_BASH = """\
# What bash completes for {program}; made by: {program} completion bash
_{name}() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}}
    local takes=text words='' options='' place
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=''  # --option=
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    (( COMP_CWORD > 1 )) || command=''
    case $command in
{cases}
    esac
    for (( place = 2; place < COMP_CWORD; place++ )); do
        if [[ $command == run && ${{COMP_WORDS[place]}} == -- ]]; then
            (( place == COMP_CWORD - 1 )) && COMPREPLY=($(compgen -c -- "$cur"))
            return
        fi
    done
    [[ $cur != -* || $takes == value* ]] || words=$options
    [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
    case $takes in
    *folder) compopt +o default -o dirnames 2>/dev/null ;;
    *text) compopt +o default 2>/dev/null ;;
    esac
}}
complete -o default -F _{name} {program} {short}"""
"""Where nothing is found, readline completes names of files: it knows best how they are quoted."""


def _bash(tree: _Tree) -> Iterator[str]:
    cases = "\n".join(line for command in (*filter(None, tree), "") for line in _bash_case(command, tree))
    name = PROGRAM.replace("-", "_")
    yield _BASH.format(program=PROGRAM, name=name, short=SHORT_NAME, cases=cases)


def _bash_case(command: str, tree: _Tree) -> Iterator[str]:
    words = tree[command][1]
    first = next((word for word in words if not word.names), None)
    yield f"    {command or '*'})"
    yield f"        options='{' '.join(name for word in words for name in word.names)}'"
    if first is not None:
        yield f"        takes={first.takes} words='{' '.join(first.words)}'"
    if not command:
        yield f"        (( COMP_CWORD > 1 )) || words='{' '.join(filter(None, tree))}'"
    yield "        case $before in"
    for word in words:
        names, values = "|".join(word.names), " ".join(word.words)
        if names and word.takes != "nothing":
            yield f"        {names}) takes=value-{word.takes} words='{values}' ;;"
    yield "        esac ;;"


# --- zsh ----------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef {program} {short}
# What zsh completes for {program}; made by: {program} completion zsh
_{program}-target() {{
    compadd -- "$@"
    _files
}}
_{program}() {{
    local -a names=(
{commands}
    )
    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _alternative 'commands:command:{{_describe command names}}' 'files:file:_files'
        return
    fi
    case $words[2] in
{cases}
    esac
}}
if [[ $funcstack[1] == _{program} ]]; then
    _{program} "$@"
else
    (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
    compdef _{program} {program} {short}
fi"""
_ZSH_TAKES = {"file": "_files", "folder": "_files -/", "text": " ", "command": "_normal"}


def _zsh(tree: _Tree) -> Iterator[str]:
    commands = "\n".join(
        f"        {_quoted(f'{name}:{summary}')}" for name, (summary, _) in tree.items() if name
    )
    cases = "\n".join(line for command in (*filter(None, tree), "") for line in _zsh_case(command, tree))
    yield _ZSH.format(program=PROGRAM, short=SHORT_NAME, commands=commands, cases=cases)


def _zsh_case(command: str, tree: _Tree) -> Iterator[str]:
    yield f"    {command or '*'})"
    if command:
        yield "        shift words; (( CURRENT-- ))"
    lines = [spec for word in tree[command][1] for spec in _zsh_specs(word)]
    yield " \\\n            ".join(["        _arguments -s -S :", *lines]) + " ;;"


def _zsh_specs(word: _Word) -> Iterator[str]:
    words = " ".join(word.words)
    action = f"({words})" if words else _ZSH_TAKES.get(word.takes, "")
    if words and word.takes == "file":
        action = f" _{PROGRAM}-target {words}"  # a blank in front: nothing is put between the two
    if not word.names:
        many = "*::" if word.takes == "command" else "*" if word.is_many else ""
        yield _quoted(f"{many}:{word.label}:{action}")
        return
    others = "*" if word.is_many else f"({' '.join(word.names)})"
    for name in word.names:
        value, sign = "", ""
        if word.takes != "nothing":
            value, sign = f":{word.label}:{action}", "=" if name.startswith("--") else "+"
        text = word.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        yield _quoted(f"{others}{name}{sign}[{text}]{value}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ---------------------------------------------------------------------------------------------------

_FISH = """\
# What fish completes for {program}; made by: {program} completion fish
function __{name}_is
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"
end
function __{name}_command
    set -l words (commandline -opc) (commandline -ct)
    set -l place (contains -i -- -- $words); or return
    complete -C (string join ' ' -- (string escape -- $words[(math $place + 1)..]))
end
for program in {program} {short}
    complete -c $program -e
{lines}
end"""


def _fish(tree: _Tree) -> Iterator[str]:
    name = PROGRAM.replace("-", "_")
    lines = []
    for command, (summary, words) in tree.items():
        when, first = (
            f"-n '__{name}_is \"{command}\"'",
            next((word for word in words if not word.names), None),
        )
        if command:
            lines.append(f"-n '__{name}_is \"\"' -a {command} -d {_escaped(summary)}")
        lines += [f"{when} {_fish_line(word, name)}" for word in words if word.names or word is first]
    yield _FISH.format(
        program=PROGRAM,
        short=SHORT_NAME,
        name=name,
        lines="\n".join(f"    complete -c $program {line}" for line in lines),
    )


def _fish_line(word: _Word, name: str) -> str:
    values = f" -a {_escaped(' '.join(word.words))}" if word.words else ""
    if word.takes == "command":
        return f"-a '(__{name}_command)'"
    if not word.names:
        return f"{'-F' if word.takes == 'file' else '-f'}{values}"
    flags = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in word.names)
    takes = {"nothing": "", "file": " -rF", "folder": " -xa '(__fish_complete_directories)'"}
    return f"{flags}{takes.get(word.takes, ' -x')}{values} -d {_escaped(word.help)}"


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS: dict[str, Callable[[_Tree], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
