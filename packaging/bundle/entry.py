"""The first module of the bundle: the program, or its own Python that answers requests, see `child.py`."""

from __future__ import annotations

import os
import sys


def start() -> int:
    """Run what was asked for."""
    # The bundle's libraries are ours alone: what we start (a Python, a file manager) has its own.
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        os.environ["LD_LIBRARY_PATH"] = before
    from inspector.child import SERVE  # noqa: PLC0415 - the environment comes first

    if sys.argv[1:] == [SERVE]:
        from inspector.worker.serve import main as serve  # noqa: PLC0415 - one of two programs

        serve()
    from inspector.cli import main  # noqa: PLC0415 - the same

    return main()


if __name__ == "__main__":
    sys.exit(start())
