"""Whose code a frame is."""

from __future__ import annotations

from inspector.diagnose.errors.reading.owners import locate
from tests.sweep import table


@table(
    ("path", "owner", "place"),
    [
        ("/v/lib/python3.8/site-packages/torch/optim/adam.py", "torch", "torch/optim/adam.py"),
        (r"C:\v\Lib\site-packages\torch\nn\modules\conv.py", "torch", "torch/nn/modules/conv.py"),
        ("/e/torch/lib/python3.8/site-packages/timm/a.py", "framework", "timm/a.py"),
        ("x/site-packages/torch-1.0-py3.7-linux-x86_64.egg/torch/nn/a.py", "torch", "torch/nn/a.py"),
        ("/opt/pytorch/torch/nn/functional.py", "torch", "torch/nn/functional.py"),
        ("torch/serialization.py", "torch", "torch/serialization.py"),
        ("/content/fairseq/fairseq/trainer.py", "framework", "fairseq/trainer.py"),
        ("/usr/lib/python3.8/runpy.py", "python", "python3.8/runpy.py"),
        ("<frozen importlib._bootstrap>", "python", "<frozen importlib._bootstrap>"),
        ("/home/u/torch/train.py", "yours", "torch/train.py"),
        ("train.py", "yours", "train.py"),
        ("<ipython-input-5-abc>", "yours", "<ipython-input-5-abc>"),
    ],
)
def test_owners(path: str, owner: str, place: str) -> None:
    found = locate(path)
    assert (found.owner, found.place) == (owner, place)
    assert (found.package == "torch") is (owner == "torch")
