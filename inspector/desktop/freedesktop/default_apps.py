"""Which program opens a file type, as the user's `mimeapps.list` says it.

The file belongs to the user and to every program of the desktop: all lines that do not concern us stay as
they are, byte for byte, and what is added goes away again.
https://specifications.freedesktop.org/mime-apps-spec/latest/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULTS = "[Default Applications]"


def add_default(text: str, entry: str, types: Iterable[str]) -> str:
    """Put `entry` first among the programs for each of `types`; the others stay, as second choice."""
    lines = text.splitlines(keepends=True)
    missing = dict.fromkeys(types)
    last = None  # the last line of the section that says anything
    for index, (section, line) in enumerate(_by_section(lines)):
        if section != DEFAULTS or not line.strip():
            continue
        last = index
        key, names = _split(line)
        if key in missing:
            del missing[key]
            others = [name for name in names if name != entry]
            lines[index] = _join(key, [entry, *others])
    added = [_join(key, [entry]) for key in missing]
    if last is not None:
        lines[last] = _with_line_end(lines[last])
        lines[last + 1 : last + 1] = added
    elif added:
        lines = [*map(_with_line_end, lines), f"{DEFAULTS}\n", *added]
    return "".join(lines)


def remove_everywhere(text: str, entry: str) -> str:
    """Take `entry` out of every list, also where a file manager put it; a section left bare goes too."""
    kept: list[str] = []
    touched = False  # whether something was taken out of the section at the end of `kept`
    for _, line in _by_section(text.splitlines(keepends=True)):
        key, names = _split(line)
        if line.startswith("["):
            _drop_bare_section(kept, touched=touched)
            touched = False
        if entry not in names:
            kept.append(line)
            continue
        touched = True
        others = [name for name in names if name != entry]
        if others:
            kept.append(_join(key, others))
    _drop_bare_section(kept, touched=touched)
    return "".join(kept)


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


def _join(key: str, names: list[str]) -> str:
    return f"{key}={';'.join(names)};\n"


def _with_line_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _drop_bare_section(kept: list[str], *, touched: bool) -> None:
    if touched and kept[-1].startswith("["):
        kept.pop()
