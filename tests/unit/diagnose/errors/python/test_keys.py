"""Keys that a checkpoint does not have."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor, value


def test_keys() -> None:
    text = "KeyError: 'state_dict'"
    made = checkpoint(tensor("model", "w"), value("args", "state_dict"), value("epoch"))
    found = explained(text, made, id_="key-missing")
    assert (found.fits, found.here.partition(";")[0]) == ("yes", "state_dict is in this file, but deeper")
    assert explained(text, on(("state_dict/w", "cpu")), id_="key-missing").fits == "no"
    other = explained(text, on(("net/w", "cpu")), id_="key-missing")
    assert (other.fits, "top-level keys are net" in other.here) == ("unknown", True)
    bare = on(*((f"layer{number}.weight", "cpu") for number in range(50)))
    assert "it is itself a state dict" in explained(text, bare, id_="key-missing").here
    assert "it has no keys" in explained(text, checkpoint(), id_="key-missing").here


def test_keys_of_other_dictionaries_are_left_alone() -> None:
    frame = '  File "data.py", line 3, in f\n    {}\n'
    for text, id_ in (
        (frame.format("return row['size']") + "KeyError: 'size'", "unrecognised"),
        (frame.format("return ckpt['size']") + "KeyError: 'size'", "key-missing"),
        (frame.format("return row['x']") + "KeyError: 'model_state_dict'", "key-missing"),
        ("KeyError: 'Net is not in the registry'", "unrecognised"),
        ("KeyError: 'size'", "unrecognised"),
        ("KeyError: 'net_g'", "key-missing"),
        ("Resuming from last.ckpt\nKeyError: 'size'", "key-missing"),
    ):
        assert explain_error(text, None).id == id_, text


def test_a_state_dict_itself_has_no_key_to_it() -> None:
    made = on(("a.weight", "cpu"), ("b.weight", "cpu"))
    found = explained("KeyError: 'state_dict'", made, id_="key-missing")
    assert (found.fits, "Leave the key out" in found.advice) == ("yes", True)
    assert "skip what reads optimizer" in explained("KeyError: 'optimizer'", made, id_="key-missing").advice


def test_kinds_of_keys() -> None:
    said = {
        "base_model.model.layers.0.weight": "-U peft",
        "bert.embeddings.weight": "names in the file",
        "optimizer_state_dict": "leave out what resumes",
        "layers.23.mlp.down_proj.SCB": "how the file is quantized",
        "params_ema": "checkpoint.keys() lists them",
    }
    assert {
        key: part
        for key, part in said.items()
        if part not in explain_error(f"KeyError: '{key}'", None).advice
    } == {}


def test_an_error_as_repr_writes_it() -> None:
    assert explain_error("failed: KeyError('model_state_dict')", None).id == "key-missing"
