"""Make the files of `tests/data/frameworks` anew: `python -m tests.frameworks OUT [NAME ...]`.

Runs where the frameworks are installed beside this project's torch; the tests read the kept files alone.
The versions that the kept files were made with stand in `tests/data/frameworks/versions.json`. A name chooses
the makers whose name contains it. Weights are random and small, and so are the shapes: two runs give files of
one kind, never the same bytes.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "true", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}

import torch

from tests.frameworks.making.table import MAKERS, Out

MODULES = (
    "lightning",
    "transformers",
    "timm",
    "peft",
    "fastai",
    "ultralytics",
    "torchao",
    "sb3",
    "pyg",
    "torch",
)
VERSIONS = {
    "lightning": ("lightning", "pytorch-lightning"),
    "transformers": ("transformers", "accelerate", "safetensors"),
    "timm": ("timm",),
    "peft": ("peft",),
    "fastai": ("fastai",),
    "ultralytics": ("ultralytics",),
    "torchao": ("torchao",),
    "sb3": ("stable-baselines3",),
    "pyg": ("torch-geometric",),
    "torch": ("torch", "torchvision"),
}


def main(out: Path, *wanted: str) -> int:
    warnings.simplefilter("ignore")
    for module in MODULES:
        if not wanted or any(name.startswith(module) for name in wanted):
            importlib.import_module(f"tests.frameworks.making.{module}_files")
    failed = []
    for name, maker in MAKERS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        torch.manual_seed(0)
        random.seed(0)
        scratch = Path(tempfile.gettempdir(), "run")  # a name that may stand in the files
        scratch.mkdir()
        os.chdir(scratch)
        try:
            maker(Out(out, name.partition("/")[0], scratch))
        except Exception:  # noqa: BLE001 - the others are made all the same
            failed.append(name)
            traceback.print_exc()
        os.chdir("/")
        shutil.rmtree(scratch)
    _write_index(out)
    sys.stdout.write(f"failed: {failed}\n")
    return 1 if failed else 0


def _write_index(out: Path) -> None:
    entries = []
    for oracle in sorted((out / "oracle").glob("*.json")):
        facts = json.loads(oracle.read_text(encoding="utf-8"))
        entries.append(
            {
                "file": facts["file"],
                "oracle": f"oracle/{oracle.name}",
                "container": facts["container"],
                "torch_loads": facts.get("torch_loads"),
                "wo": facts.get("torch_loads_weights_only"),
            }
        )
    versions = {
        package: importlib.metadata.version(package) for packages in VERSIONS.values() for package in packages
    }
    for name, facts in (("index.json", entries), ("versions.json", versions)):
        (out / name).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *sys.argv[2:]))
