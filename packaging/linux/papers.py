"""Writes what packages hold beside the program: the manual page and the completions of three shells.

    python packaging/linux/papers.py OUT

All of it comes from the options that the commands declare, so that nothing is written twice.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

from argparse_manpage.manpage import Manpage

from inspector import __version__
from inspector.cli.commands.completion import SHORT_NAME, script
from inspector.cli.parser import parser_tree

PROGRAM = "checkpoint-inspector"
SHELLS = {
    "bash": "share/bash-completion/completions/{name}",
    "zsh": f"share/zsh/vendor-completions/_{PROGRAM}",
    "fish": "share/fish/vendor_completions.d/{name}.fish",
}
"""Where each shell looks: zsh into all files, which name the commands, the others for a file of the name."""


def main(out: Path) -> None:
    """Write all of it below a folder, as it lies below `/usr`."""
    for shell, place in SHELLS.items():
        _write(out, place, script(shell).encode())
    page = Manpage(parser_tree(), format="single-commands-section")
    page.description = "see what is inside a PyTorch checkpoint, and make it load on your machine"
    page.source, page.manual, page.date = f"Checkpoint Inspector {__version__}", "User Commands", ""
    # A line that begins with a quote is a request of roff.
    text = re.sub(r"^'", r"\\&'", str(page), flags=re.MULTILINE)
    _write(out, "share/man/man1/{name}.1.gz", gzip.compress(text.encode(), mtime=0))


def _write(out: Path, place: str, data: bytes) -> None:
    path, short = out / place.format(name=PROGRAM), out / place.format(name=SHORT_NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if short != path:
        short.unlink(missing_ok=True)
        short.symlink_to(path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
