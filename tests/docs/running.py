"""Running the blocks of a page, and comparing what they print with what stands there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from tests.docs.pages import Block, blocks
from tests.docs.samples import write_samples

PROGRAM = "checkpoint-inspector"
ELLIPSIS = "..."
HOME = "/home/you/runs"
"""What stands on a page for the folder in which its blocks run."""
_SHELL = re.compile(r"[|<>;&$`~*?]")


class WrongBlockError(Exception):
    """A block does not do what its page says."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and what it prints according to the page."""

    line: str
    output: tuple[str, ...]


def run_page(page: Path, folder: Path, *, update: bool = False) -> list[str]:
    """Run the blocks of a page one after the other, in a folder with the sample files.

    Args:
        page: The page.
        folder: An empty folder.
        update: Write what commands print into the page, where it differs.

    Returns:
        What went wrong, each with its place.
    """
    write_samples(folder)
    names: dict[str, object] = {"__name__": "page"}
    failures, changed = [], {}
    with _inside(folder), mock.patch.dict(os.environ, _environment(folder)):
        for block in blocks(page):
            if not is_run(block):
                continue
            try:
                if block.language == "python":
                    _run_python(block, names)
                elif block.language == "console":
                    new = _run_console(block, folder, update=update)
                    if new != block.lines:
                        changed[block.line] = (block, new)
            except WrongBlockError as wrong:
                failures.append(f"{block.name}: {wrong}")
    if changed:
        _rewrite(page, changed)
    return failures


def is_run(block: Block) -> bool:
    """Return whether a block holds what can be run, with the packages that it needs."""
    is_code = block.language in {"console", "python"} and "not run" not in block.marks
    return is_code and all(map(find_spec, block.marks.get("needs", "").split()))


def commands(block: Block) -> list[Command]:
    """Split a console block into commands, each with its output.

    Raises:
        WrongBlockError: It does not begin with a command.
    """
    found: list[tuple[str, list[str]]] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise WrongBlockError("a console block begins with `$ ` and a command")
    return [Command(line, tuple(output)) for line, output in found]


def run_line(line: str, folder: Path) -> tuple[int, str]:
    """Run one line as a shell would: this program within this process, which is quicker."""
    words = shlex.split(line, comments=True)
    if words[:1] == [PROGRAM] and not _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"| # .*", "", line)):
        return _run_here(words[1:])
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _run_here(arguments: list[str]) -> tuple[int, str]:
    from inspector.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(arguments)
        except SystemExit as stop:  # argparse leaves this way
            code = int(stop.code or 0)
    return code, out.getvalue()


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which the program is found by its name."""
    place = folder / ".bin"
    if not place.exists():
        place.mkdir()
        program = place / PROGRAM
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m inspector "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        for name in ("python", "python3"):
            (place / name).symlink_to(sys.executable)
    return {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# --- console ------------------------------------------------------------------------------------------------


def _run_console(block: Block, folder: Path, *, update: bool) -> tuple[str, ...]:
    """Run the commands of a block; return its lines, with the output that they have now if that is wanted.

    Raises:
        WrongBlockError: A command ended with another code, or printed something else.
    """
    every = commands(block)
    lines: list[str] = []
    codes = block.marks.get("exit", "0").split()
    for command, expected in zip(every, [0] * (len(every) - len(codes)) + list(map(int, codes)), strict=True):
        code, text = run_line(command.line, folder)
        printed = tuple(line.rstrip() for line in text.replace(str(folder), HOME).splitlines())
        if code != expected or "Traceback (most recent" in "".join(printed[:1]):
            raise WrongBlockError(f"{command.line}: exit code {code}, not {expected}\n{text[-2000:]}")
        lines += [f"$ {command.line}"]
        if "output varies" in block.marks or not command.output or matches(command.output, printed):
            lines += command.output
        elif update:
            lines += shortened(command.output, printed)
        else:
            raise WrongBlockError(
                f"{command.line} prints something else (python -m tests.docs writes it):\n{text}"
            )
    return tuple(lines)


def matches(said: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Return whether an output is the one that is said, where a line of dots stands for any lines."""
    parts = [re.escape(line.rstrip()) + "\n" for line in said]
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == ELLIPSIS else part for line, part in zip(said, parts, strict=True)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def shortened(said: tuple[str, ...], printed: tuple[str, ...]) -> tuple[str, ...]:
    """Return of an output what the page shows: as many lines before, between and after its lines of dots.

    Raises:
        WrongBlockError: What stands between two such lines begins otherwise now, and somebody must choose.
    """
    parts: list[list[str]] = [[]]
    for line in said:
        if line.strip() == ELLIPSIS:
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return printed
    first, *middle, last = parts
    found = [*printed[: len(first)], ELLIPSIS]
    for part in middle:
        if part[0] not in printed:
            raise WrongBlockError(f"choose by hand what is shown of:\n{chr(10).join(printed)}")
        place = printed.index(part[0])
        found += [*printed[place : place + len(part)], ELLIPSIS]
    return (*found, *(printed[-len(last) :] if last else ()))


def _rewrite(page: Path, changed: dict[int, tuple[Block, tuple[str, ...]]]) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    for first, (block, new) in sorted(changed.items(), reverse=True):
        lines[first - 1 : first - 1 + len(block.lines)] = [
            f"{' ' * block.indent}{line}".rstrip() for line in new
        ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


# --- Python -------------------------------------------------------------------------------------------------


def _run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block with the names of those before it on its page.

    Raises:
        WrongBlockError: It raised something.
    """
    source = "\n" * (block.line - 1) + "\n".join(block.lines)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, str(block.page), "exec"), names)
    except Exception as error:  # whatever it is, the page is wrong
        raise WrongBlockError(f"{type(error).__name__}: {error}") from error
