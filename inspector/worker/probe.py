"""`python -m inspector.worker.probe`: one line of JSON about what the installed torch finds here."""

from __future__ import annotations

import json
import sys


def probe() -> dict[str, object]:
    """Give torch's version and how many devices of each kind it can use.

    Raises:
        ImportError: torch is not installed.
    """
    import torch  # noqa: PLC0415 - the import itself is what may fail and is reported

    mps = getattr(torch.backends, "mps", None)
    xpu = getattr(torch, "xpu", None)
    return {
        "torch": str(torch.__version__),
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": bool(mps is not None and mps.is_available()),
        "xpu": xpu.device_count() if xpu is not None and xpu.is_available() else 0,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()) + "\n")
