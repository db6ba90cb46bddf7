"""Which program opens a file type, as the user's `mimeapps.list` says it.

The file belongs to the user and to every program of the desktop: all lines that do not concern us stay as
they are, byte for byte, and what is added goes away again.
https://specifications.freedesktop.org/mime-apps-spec/latest/

Formats of others that are read here: the program is offered under Open With, and is nobody's default. An
association of one's own makes a program the default wherever no other is chosen, so the program that opens
such a file today is written down before ours, and taken out again with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from inspector.child import SAFE_FOLDER, find_program
from inspector.desktop.freedesktop.caches import outside_environment

DEFAULTS = "[Default Applications]"
ADDED = "[Added Associations]"


def add_default(text: str, entry: str, types: Iterable[str]) -> str:
    """Put `entry` first among the programs for each of `types`; the others stay, as second choice."""
    rows = dict.fromkeys(types, (entry,))
    return _edit(
        text, DEFAULTS, rows, lambda names, new: [*new, *(name for name in names if name not in new)]
    )


def add_last(text: str, rows: Mapping[str, Sequence[str]]) -> tuple[str, dict[str, str]]:
    """Offer the last program of each row behind all that are associated with its type.

    Returns:
        The text, and the first program of each row that was written to stand before it.
    """
    known = {_split(line)[0] for section, line in _by_section(text.splitlines()) if section == ADDED}
    kept = {name: row[0] for name, row in rows.items() if name not in known and len(row) > 1}
    after = _edit(text, ADDED, rows, lambda names, new: list(dict.fromkeys([*names, new[-1]])))
    return after, kept


def remove_everywhere(text: str, entry: str, kept: Mapping[str, str]) -> str:
    """Take `entry` out of every list, also where a file manager put it; a section left bare goes too.

    Args:
        kept: What `add_last` wrote to stand before it.
    """
    lines: list[str] = []
    touched = False  # whether something was taken out of the section at the end of `lines`
    for section, line in _by_section(text.splitlines(keepends=True)):
        key, names = _split(line)
        if line.startswith("["):
            _drop_bare_section(lines, touched=touched)
            touched = False
        others = [name for name in names if name != entry]
        if section == ADDED and key in kept and others == [kept[key]]:
            others = []
        if len(others) == len(names):
            lines.append(line)
            continue
        touched = True
        if others:
            lines.append(_join(key, others))
    _drop_bare_section(lines, touched=touched)
    return "".join(lines)


_Merge = Callable[[list[str], Sequence[str]], list[str]]


def _edit(text: str, section: str, rows: Mapping[str, Sequence[str]], merge: _Merge) -> str:
    lines = text.splitlines(keepends=True)
    missing = dict(rows)
    last = None  # the last line of the section that says anything
    for index, (place, line) in enumerate(_by_section(lines)):
        if place != section or not line.strip():
            continue
        last = index
        key, names = _split(line)
        if key in missing:
            lines[index] = _join(key, merge(names, missing.pop(key)))
    added = [_join(key, names) for key, names in missing.items()]
    if last is not None:
        lines[last] = _with_line_end(lines[last])
        lines[last + 1 : last + 1] = added
    elif added:
        lines = [*map(_with_line_end, lines), f"{section}\n", *added]
    return "".join(lines)


def _by_section(lines: list[str]) -> Iterator[tuple[str, str]]:
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip()
        yield section, line


def _split(line: str) -> tuple[str, list[str]]:
    if line.startswith("#"):
        return "", []
    key, _, value = line.partition("=")
    return key.strip(), [name for part in value.split(";") if (name := part.strip())]


def _join(key: str, names: list[str] | Sequence[str]) -> str:
    return f"{key}={';'.join(names)};\n"


def _with_line_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _drop_bare_section(kept: list[str], *, touched: bool) -> None:
    if touched and kept[-1].startswith("["):
        kept.pop()


OFFERED: Mapping[str, str] = {
    "application/x-npy": "",
    "application/x-python-pickle": "",
    "application/x-npz": "application/zip",
    "application/zip": "application/zip",
    "application/x-checkpoint-index+json": "application/json",
}
"""The types, and by which other type is found what opens a file of it today; empty where nothing does."""

_TIMEOUT_S = 10.0
_SUFFIX = ".desktop"


def plan_offers(entry: str) -> dict[str, tuple[str, ...]]:
    """Return for each type that is offered the programs for it in their order, with `entry` the last."""
    found = {parent: _find_default(parent, entry) for parent in dict.fromkeys(OFFERED.values()) if parent}
    planned: dict[str, tuple[str, ...]] = {}
    for name, parent in OFFERED.items():
        if not parent:
            planned[name] = (entry,)
        elif default := found[parent]:
            planned[name] = (default, entry)
    return planned


def format_kept(pairs: Mapping[str, str]) -> str:
    """Write which program was added before ours for each type."""
    return "".join(f"{name}:{program};" for name, program in pairs.items())


def parse_kept(text: str) -> dict[str, str]:
    """Read what `format_kept` wrote."""
    rows = (row.partition(":") for row in text.split(";"))
    return {name: program for name, colon, program in rows if colon and program}


def _find_default(name: str, entry: str) -> str:
    """Ask the desktop's own library what opens a file of a type; empty where it is not known, or is ours."""
    tool = find_program("gio")
    if tool is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed tool of the desktop
            [tool, "mime", name],
            check=False,
            capture_output=True,
            cwd=SAFE_FOLDER,
            env=outside_environment() | {"LC_ALL": "C"},
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    program = next(iter(done.stdout.splitlines()), "").rpartition(": ")[2].strip()
    return program if program.endswith(_SUFFIX) and program != entry and ";" not in program else ""
