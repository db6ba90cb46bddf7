"""Writes what packages hold beside the program: the manual page and the completions of three shells.

    python packaging/linux/papers.py OUT

All of it comes from the options that the commands declare, so that nothing is written twice.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from pathlib import Path

import shtab
from argparse_manpage.manpage import Manpage

from inspector import __version__
from inspector.cli.parser import parser_tree

PROGRAM = "checkpoint-inspector"
SHELLS = {
    "bash": f"share/bash-completion/completions/{PROGRAM}",
    "zsh": f"share/zsh/vendor-completions/_{PROGRAM}",
    "fish": f"share/fish/vendor_completions.d/{PROGRAM}.fish",
}
FILES = {"FILE", "F", "F.py", "OUT", "OUT.png", "PATH", "A", "B"}
"""Metavars of options that take files."""


def make_parser() -> argparse.ArgumentParser:
    """Return all commands as one parser that knows which options take files."""
    tree = parser_tree()
    for parser in (tree, *_commands(tree).values()):
        for action in parser._actions:  # noqa: SLF001 - there is no other list of them
            if action.metavar in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    return tree


def _commands(tree: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next(
        action.choices
        for action in tree._actions  # noqa: SLF001 - there is no other list of them
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - it has no public name
    )


def main(out: Path) -> None:
    """Write all of it below a folder, as it lies below `/usr`."""
    parser = make_parser()
    for shell, place in SHELLS.items():
        path = out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shtab.complete(parser, shell=shell), encoding="utf-8")
    page = Manpage(parser, format="single-commands-section")
    page.description = "see what is inside a PyTorch checkpoint, and make it load on your machine"
    page.source, page.manual, page.date = f"Checkpoint Inspector {__version__}", "User Commands", ""
    path = out / f"share/man/man1/{PROGRAM}.1.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    # A line that begins with a quote is a request of roff.
    text = re.sub(r"^'", r"\\&'", str(page), flags=re.MULTILINE)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
