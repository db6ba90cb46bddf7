"""What kind of file it is."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.snippet.traits import (
    Traits,
    is_adapter_file,
    is_deepspeed,
    is_lightning,
    is_pretrained,
    look_at,
)
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.snippet.rows import checkpoint, tensor, value

NOTHING = Traits(
    has_model=False,
    has_module=False,
    has_optimizer=False,
    is_lightning=False,
    is_pretrained=False,
    is_data=False,
)


def test_nothing() -> None:
    assert look_at(checkpoint()) == NOTHING


def test_data_is_no_model() -> None:
    traits = look_at(checkpoint(tensor("x"), tensor("y")))
    assert (traits.is_data, traits.has_model) == (True, False)


def test_modules() -> None:
    assert look_at(checkpoint(tensor("._parameters", "w"))).has_module
    assert look_at(checkpoint(tensor("m", "._modules", "l", "._parameters", "w"))).has_module
    assert not look_at(checkpoint(tensor("m", "w"))).has_module


def test_a_genuine_file_of_lightning() -> None:
    traits = look_at(open_checkpoint(str(CORPUS / "frameworks/lightning.ckpt")))
    assert traits.is_lightning
    assert traits.has_optimizer
    assert traits.has_model


def test_lightning_needs_both_of_its_marks() -> None:
    version = value("pytorch-lightning_version", type="str")
    assert is_lightning(checkpoint(tensor("state_dict", "w"), values=(version,)))
    assert not is_lightning(checkpoint(tensor("state_dict", "w")))
    assert not is_lightning(checkpoint(tensor("model", "w"), values=(version,)))


@table(
    ("path", "expected"),
    [
        ("pytorch_model.bin", True),
        ("/a/b/pytorch_model-00001-of-00002.bin", True),
        ("C:\\models\\model.safetensors", True),
        ("a/model-00001-of-00002.safetensors", True),
        ("a/model.safetensors.index.json", True),
        ("pytorch_model.bin.index.json", True),
        ("a/my_pytorch_model.bin", False),
        ("pytorch_model.bin/a.pt", False),
        ("model.pt", False),
        ("pytorch_model.bin\n", False),
    ],
)
def test_names_of_pretrained_weights(path: str, expected: bool) -> None:
    assert is_pretrained(path) == expected


def test_adapters() -> None:
    names = ("base_model.model.q.lora_A.weight", "q.lora_B.default.weight", "lora_E")
    assert look_at(checkpoint(*(tensor("m", name) for name in names))).is_adapter
    assert not look_at(checkpoint(tensor("m", names[0]), tensor("m", "q.weight"))).is_adapter
    assert not look_at(checkpoint()).is_adapter
    assert is_adapter_file("run\\adapter_model.safetensors")
    assert not is_adapter_file("adapter_model.bin/x.bin")


def test_a_genuine_file_of_deepspeed() -> None:
    folder = CORPUS / "frameworks" / "deepspeed" / "global_step10"
    assert look_at(open_checkpoint(str(folder / "mp_rank_00_model_states.pt"))).is_deepspeed
    assert not is_deepspeed(checkpoint(tensor("module", "w")))
    assert not is_deepspeed(checkpoint(tensor("model", "w"), values=(value("ds_version"),)))
