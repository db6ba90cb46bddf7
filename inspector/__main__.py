"""The same as the command `checkpoint-inspector`: `python -P -m inspector`, or this file by its path.

Without `-P`, Python itself takes what it needs from the working directory before anything here runs.
"""

import sys


def start() -> int:
    """Run the command; what lies in the working directory or beside this file is no module of Python's."""
    if not sys.flags.safe_path:
        del sys.path[0]
    from pathlib import Path  # noqa: PLC0415 - not before the path is right

    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)
    from inspector.cli import main  # noqa: PLC0415 - the same

    return main()


if __name__ == "__main__":
    sys.exit(start())
