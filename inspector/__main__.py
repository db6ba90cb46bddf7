"""The command `checkpoint-inspector`, which is also `python -P -m inspector`, or this file by its path.

Without `-P`, Python itself takes what it needs from the working directory before anything here runs.
"""

import sys


def start() -> int:
    """Run the command; what lies in the working directory or beside this file is no module of Python's."""
    if not sys.flags.safe_path:
        del sys.path[0]
    # `PYTHONPATH=.` names the working directory, too; Python's `site` may have made an absolute path of it.
    sys.path[:] = [entry for entry in sys.path if entry.startswith(("/", "\\")) or entry[1:2] == ":"]
    import os  # noqa: PLC0415 - not before the path is right

    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = {os.path.abspath(entry) for entry in named if not os.path.isabs(entry)}  # noqa: PTH100, PTH117
    sys.path[:] = [entry for entry in sys.path if entry not in relative]
    from pathlib import Path  # noqa: PLC0415 - the same

    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)
    from inspector.cli import main  # noqa: PLC0415 - the same

    return main()


if __name__ == "__main__":
    sys.exit(start())
