"""What names that differ have in common."""

from __future__ import annotations

from inspector.diagnose.errors.names import say_names


def test_names_of_each_kind() -> None:
    titles = {
        ((), ("a.total_ops", "b.n_averaged")): "entries beside the weights",
        ((), ("ema_a.weight", "ema_b.weight")): "moving averages",
        (("a.weight",), ("a.qweight", "a.scales")): "file holds quantized weights",
        (("a.SCB",), ("a.weight",)): "model is quantized",
        ((), ("a.lora_A.weight",)): "file is an adapter",
        (("a.lora_A.weight",), ()): "model has adapters",
        (("a",), ("epoch", "netG_state_dict")): "whole checkpoint was passed",
        ((), ("module.bn.num_batches_tracked",)): "different versions",
        (("a",), ("module.a",)): "begin with module., those of the model",
        (("module.a",), ("a",)): "names of the model begin with module.",
        (("a.to_q.weight",), ("a.to_to_q.weight",)): "another version of diffusers",
        (("a.to_q.weight",), ("a.query.weight",)): "another version of diffusers",
        (("_model.module.a.w",), ("_model.a.w",)): "names of the model begin with module.",
        (("_model.a.w",), ("_model.module.a.w",)): "have module. within them",
        (("a.module.b",), ("c",)): "",
        (("c",), ("a.module.b",)): "",
        (("e.weight",), ("prefix.e.weight",)): "file begin with prefix., those of the model",
        (("prefix.e.weight",), ("e.weight",)): "model begin with prefix., those in the file",
        (("a.e",), ("b.a.f", "e")): "",
        (("a",), ("b",)): "",
    }
    assert {names: title for names, title in titles.items() if title not in say_names(*names).title} == {}
    assert say_names(("a",), ("b",)).title == ""


def test_the_part_of_a_checkpoint_is_named_where_it_is_known() -> None:
    assert "checkpoint['netG_state_dict']" in say_names((), ("epoch", "netG_state_dict")).advice
    assert "print checkpoint.keys()" in say_names((), ("epoch", "optimizer")).advice
