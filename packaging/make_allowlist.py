"""Write `inspector/safety/allowlist.json` from the installed torch: what `weights_only=True` imports.

Run with the newest torch that the verdict shall speak for: `python packaging/make_allowlist.py [FILE]`.
"""

import json
import pathlib
import sys

import torch
from torch import _weights_only_unpickler as unpickler

TARGET = pathlib.Path(__file__).parent.parent / "inspector" / "safety" / "allowlist.json"


def main(arguments: list[str]) -> int:
    """Write the list, sorted, with the version that it was read from."""
    target = pathlib.Path(arguments[0]) if arguments else TARGET
    names = sorted(unpickler._get_allowed_globals())  # noqa: SLF001 - torch publishes only what users added
    document = {"torch": torch.__version__.partition("+")[0], "globals": names}
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{target}: {len(names)} names of torch {document['torch']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
