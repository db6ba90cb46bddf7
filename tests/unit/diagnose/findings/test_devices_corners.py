"""Findings about devices, in the cases that are less plain."""

from __future__ import annotations

from inspector.target.wish import parse_target
from tests.builders.pickles import list_, name, number, op, text
from tests.unit.diagnose.cases import MODULE, at, findings, optimizer, trained, with_device
from tests.unit.model.making import by_hand, call, pairs, view


def test_without_a_target_nothing_is_unloadable() -> None:
    assert "cuda-unavailable" not in findings(by_hand(at("cuda:0")))


def test_devices_of_one_kind_have_one_finding() -> None:
    from inspector.diagnose.run import diagnose
    from inspector.safety.verdict import judge

    checkpoint = by_hand(
        pairs(
            a=at("cuda:1", "0"), b=at("cuda:0", "1"), c=at("mps", "2"), d=at("npu:0", "3"), e=at("hpu", "4")
        )
    )
    found = diagnose(checkpoint, judge(checkpoint), parse_target("cpu"))
    errors = [(row.id, row.fix.rule) for row in found if row.severity == "error" and row.fix]
    assert errors == [
        ("cuda-unavailable", "*=cpu"),
        ("unknown-device", "*=cpu"),
        ("mps-unavailable", "*=cpu"),
    ]
    odd = findings(by_hand(pairs(a=at("a=b:0", "0"), b=at("a=b:1", "1"))), "cpu")["unknown-device"]
    assert odd.fix is None


def test_device_that_a_tensor_names_itself_is_unloadable_too() -> None:
    sent = call(
        "torch._utils._rebuild_device_tensor_from_cpu_tensor",
        view(), name("torch.float"), text("xla:0"), op("NEWFALSE"),
    )  # fmt: skip
    found = findings(by_hand(pairs(w=sent, n=number(1))), "cpu")["unknown-device"]
    assert found.paths == ("w",)
    assert "'XLA' backend" in found.detail


def test_text_that_is_no_rule_gets_no_fix() -> None:
    for device in ("", "a=b", "path:x"):
        found = findings(by_hand(at(device)), "cpu")["unknown-device"]
        assert found.fix is None
    assert "Map it to a device" in findings(by_hand(at("")), "cpu")["unknown-device"].detail


def test_two_models_with_equal_names_on_two_devices_are_no_reproach_to_the_optimizer() -> None:
    models = {
        "netG": pairs(w=at("cuda:0", "g"), b=at("cuda:0", "i")),
        "netD": pairs(w=at("cuda:1", "d"), b=at("cuda:1", "j")),
    }
    checkpoint = by_hand(pairs(**models, optimizer=optimizer("cpu", "cuda:1")))
    assert "optimizer-off-parameter-device" not in findings(checkpoint)
    checkpoint = by_hand(pairs(**models, optimizer=optimizer("cpu", "cuda:2")))
    assert "optimizer-off-parameter-device" in findings(checkpoint)


def test_parameters_of_a_whole_module_are_found_by_their_dotted_name() -> None:
    checkpoint = by_hand(pairs(model=MODULE, optimizer=optimizer("cpu", "cuda:2")))
    assert findings(checkpoint)["optimizer-off-parameter-device"].paths == ("optimizer/state/0/exp_avg",)
    checkpoint = by_hand(pairs(model=MODULE, optimizer=optimizer("cpu", "cpu")))
    assert "optimizer-off-parameter-device" not in findings(checkpoint)


def test_slots_of_unknown_parameters_are_left_alone() -> None:
    checkpoint = by_hand(pairs(optimizer=optimizer("cpu", "cuda:2")))
    assert "optimizer-off-parameter-device" not in findings(checkpoint)


def test_product_that_torch_moves_itself_is_no_stray_counter() -> None:
    checkpoint = trained("cpu", "cuda:0")
    tensors = [
        tensor._replace(slot="mu_product", device="cuda:0") if tensor.slot == "step" else tensor
        for tensor in checkpoint.tensors
    ]
    from inspector.records import replace

    assert "step-on-accelerator" not in findings(replace(checkpoint, tensors=tuple(tensors)))
    assert "step-on-accelerator" in findings(with_device(checkpoint, "cuda:0"))


def test_hidden_devices_are_listed_once() -> None:
    device = call("torch.device", text("cuda"), number(1))
    found = findings(by_hand(list_(device, device, call("torch._C.Generator", device))))["hidden-device"]
    assert found.detail.startswith("The file holds torch.Generator cuda:1, torch.device cuda:1 outside of")
    assert found.count == 3  # the argument of the generator is the generator's device
