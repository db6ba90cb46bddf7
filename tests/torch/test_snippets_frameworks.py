"""Loading code for Lightning and Transformers, run with them where they are installed.

Neither is asked for by this project: each brings some twenty packages. So in their absence stand-ins are used
that do what the real ones do with a file, see `running.py`; a change of those programs would go unnoticed
then, and for who has them it would not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.snippet.unopened import render_unopened
from inspector.target.profile import CPU_ONLY, Profile
from tests.torch.running import LightningModule, play_transformers, pretend, run, save_as_if_on
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
TARGETS = pytest.mark.parametrize("target", [CPU_ONLY, THIS], ids=lambda target: target.id)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, Profile(id="this", label=""))


# --- Lightning ----------------------------------------------------------------------------------------------


def lightning_base() -> Any:
    if importlib.util.find_spec("lightning") is None:
        return LightningModule
    import lightning.pytorch

    return lightning.pytorch.LightningModule


def module_class() -> Any:
    class Lit(lightning_base()):
        def __init__(self, width: int) -> None:
            super().__init__()
            if hasattr(self, "save_hyperparameters"):
                self.save_hyperparameters()
            self.model = torch.nn.Linear(3, width)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    return Lit


def save_lightning(module: Any, path: Path, tag: str) -> None:
    """Save as the Trainer does: by itself, or in the shape that it gives to a file."""
    if importlib.util.find_spec("lightning") is None:
        saved = {
            "epoch": 0,
            "global_step": 0,
            "pytorch-lightning_version": "2.6.6",
            "state_dict": module.state_dict(),
            "loops": {},
            "optimizer_states": [module.configure_optimizers().state_dict()],
            "lr_schedulers": [],
            "hparams_name": "kwargs",
            "hyper_parameters": {"width": 2},
        }
    else:
        import lightning.pytorch

        options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.pytorch.Trainer(accelerator="cpu", max_epochs=0, **options)
        trainer.strategy.connect(module)
        trainer.save_checkpoint(path)
        saved = torch.load(path, weights_only=True)
    save_as_if_on(tag, saved, path)


@TARGETS
@pytest.mark.parametrize("tag", ["cpu", "cuda:0", "cuda:3"])
def test_lightning(tmp_path: Path, caplog: Any, tag: str, target: Profile) -> None:
    lit = module_class()
    module, path = lit(width=2), tmp_path / "last.ckpt"
    save_lightning(module, path, tag)
    rows = open_checkpoint(str(path))
    assert [style.id for style in styles(rows)][:2] == ["lightning", "lightning-weights"]
    found = run(render(rows, style="lightning", target=target), MyModel=lit)
    assert isinstance(found.model, lit)
    assert not found.model.training
    assert torch.equal(found.model.model.weight, module.model.weight)
    inner = torch.nn.Linear(3, 2)
    found = run(render(rows, style="lightning-weights", target=target), model=inner)
    assert torch.equal(inner.weight, module.model.weight)
    assert found.hyper_parameters["width"] == 2
    caplog.clear()  # the real one has much to say


@pytest.mark.parametrize("odd", [argparse.Namespace(lr=0.1), defaultdict(int, lr=1)], ids=["allowed", "run"])
def test_lightning_file_with_more_than_weights(tmp_path: Path, caplog: Any, odd: Any) -> None:
    lit = module_class()
    module, path = lit(width=2), tmp_path / "last.ckpt"
    save_lightning(module, path, "cuda:0")
    saved = torch.load(path, map_location="cpu", weights_only=True)
    save_as_if_on("cuda:0", {**saved, "callbacks": {"odd": odd}}, path)
    code = render(open_checkpoint(str(path)), style="lightning", target=THIS)
    assert ("add_safe_globals" in code) == isinstance(odd, argparse.Namespace)
    assert ("weights_only=False" in code) != isinstance(odd, argparse.Namespace)
    allowed = torch.serialization.get_safe_globals()
    found = run(code, MyModel=lit)
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    assert torch.equal(found.model.model.weight, module.model.weight)
    caplog.clear()


# --- Transformers -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as `save_pretrained` leaves it, with the weights saved on cuda:0."""
    path = tmp_path / 'it\'s a "model"'
    path.mkdir()
    if importlib.util.find_spec("transformers") is None:
        play_transformers(monkeypatch)
        (path / "config.json").write_text(json.dumps({"vocab_size": 5, "hidden_size": 4}), encoding="utf-8")
        state = {"embedding.weight": torch.randn(5, 4)}
    else:
        state = save_bert(path)
    save_as_if_on("cuda:0", state, path / "pytorch_model.bin")
    return path


def save_bert(path: Path) -> dict[str, torch.Tensor]:
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "some", "text", "."]
    (path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
    )
    config.save_pretrained(path)
    state: dict[str, torch.Tensor] = transformers.BertModel(config).state_dict()
    return state


@TARGETS
def test_transformers(folder: Path, caplog: Any, target: Profile) -> None:
    rows = open_checkpoint(str(folder / "pytorch_model.bin"))
    assert styles(rows)[0].id == "transformers"
    for code in (
        render(rows, style="transformers", target=target),
        render_unopened("pretrained", str(folder), target),
    ):
        found = run(code)
        saved = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
        (name, weight), *_ = found.model.named_parameters()
        assert torch.equal(weight, saved[name])
        assert found.inputs["input_ids"].device == found.model.device
        assert not found.model.training
        output = found.outputs if torch.is_tensor(found.outputs) else found.outputs.last_hidden_state
        assert output.shape[-1] == 4
    caplog.clear()
