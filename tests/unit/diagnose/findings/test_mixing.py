"""What is said of models and losses on several devices, and of which it must not be said."""

from __future__ import annotations

from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.findings import Finding
from inspector.safety.verdict import judge
from inspector.target.profile import Profile
from inspector.target.wish import parse_target
from tests.builders.pickles import op, text
from tests.unit.diagnose.cases import at, findings, module, parallel, whole
from tests.unit.model.making import built, by_hand, call, pairs
from tests.unit.report.rows import checkpoint, optimizer, tensor

IDS = {"mixed-devices", "loss-buffer-left-behind", "optimizer-off-parameter-device", "step-on-accelerator"}


def found(made: Checkpoint, target: Profile | None = None) -> list[Finding]:
    return [finding for finding in diagnose(made, judge(made), target) if finding.id in IDS]


def weights(place: str, device: str, *names: str, **fields: object) -> list[Tensor]:
    names = names or ("conv.weight", "conv.bias")
    return [tensor(place, name, device=device, **fields) for name in names]


def test_files_of_which_nothing_is_to_be_said() -> None:
    gan = (*weights("netG", "cuda:0"), *weights("netD", "cuda:1"))
    average = (*weights("model", "cuda:0"), *weights("ema", "cpu", role="ema"))
    replay = tuple(tensor("replay", at, "obs", device="cpu", role="other") for at in range(3))
    batch = (tensor("batch", "obs", device="cpu"), tensor("batch", "mask", device="cuda:0"))
    counted = (*weights("model", "cuda:0"), *weights("model", "cpu", "bn.num_batches_tracked", shape=()))
    slots = tensor("o", "state", 0, "exp_avg", device="cuda:1", role="optimizer", slot="exp_avg")
    resume = (*weights("model", "cuda:1"), slots, tensor("rng", role="rng", dtype="uint8"), optimizer("o"))
    dqn = (*weights("policy", "cuda:0"), *weights("target_net", "cuda:0"), *replay)
    for rows in (gan, average, replay, batch, counted, resume, dqn):
        assert not found(checkpoint(*rows)), [row.path for row in rows]


def test_state_dict_on_several_devices_is_nothing_to_tell_of() -> None:
    rows = (*weights("model", "cuda:0"), *weights("model", "cuda:1", "other"))
    assert not found(checkpoint(*rows))


def test_whole_module_on_two_devices_is_warned_of() -> None:
    made = whole(a=at("cuda:0", "0", 9), b=at("cuda:1", "1"))
    for target, rule in ((None, "*=cuda:0"), ("cpu", "*=cpu"), ("mps", "*=mps")):
        (finding,) = found(made, None if target is None else parse_target(target))
        assert finding.severity == "warning"
        assert finding.title == "The module is on several devices"
        assert finding.fix is not None
        assert finding.fix.rule == rule
        assert "Call .to(device) on it" in finding.detail
    (odd,) = found(whole(a=at("odd!", "0", 9), b=at("cpu", "1")))
    assert odd.fix is None


def test_several_whole_modules_share_a_warning() -> None:
    rows = [
        tensor(name, "._parameters", key, device=device)
        for name in ("g", "d")
        for key, device in (("v", "cuda:0"), ("w", "cuda:1"))
    ]
    (finding,) = found(checkpoint(*rows))
    assert finding.title == "g and d are on several devices"


def test_plain_attribute_is_not_moved_by_the_module() -> None:
    made = checkpoint(
        tensor("net", "._parameters", "w", device="cuda:0", nbytes=99),
        tensor("net", ".anchors", device="cpu", role="other"),
    )
    (finding,) = found(made)
    assert finding.title == "net is on several devices"
    assert finding.detail.endswith(
        "to one device: .to(device) does not move plain attributes such as net/.anchors."
    )


def test_parts_of_a_tensor_do_not_mix() -> None:
    sparse = call(
        "torch._utils._rebuild_sparse_tensor",
        text("torch.sparse_coo"),
        op("MARK") + at("cpu", "0") + at("cuda:0", "1") + op("EMPTY_TUPLE") + op("TUPLE"),
    )
    assert not found(by_hand(pairs(weight=sparse, bias=at("cuda:0", "2"))))


def test_loss_that_is_copied_needs_no_map() -> None:
    made = checkpoint(*weights("model", "cuda:0"), tensor("criterion", "pos_weight", role="other"))
    (finding,) = found(made)
    assert (finding.severity, finding.fix) == ("note", None)
    assert "so mapping them changes nothing" in finding.detail
    inside = checkpoint(*weights("model", "cuda:0"), *weights("model", "cpu", "criterion.pos_weight"))
    assert not found(inside)


def test_weights_of_a_loss_that_are_used_as_loaded() -> None:
    made = checkpoint(*weights("model", "cuda:0"), tensor("class_weights", role="other"))
    (finding,) = found(made)
    assert finding.severity == "warning"
    assert finding.fix is not None
    assert finding.fix.rule == "path:class_weights@cuda:0"
    assert not found(made, parse_target("cpu"))  # there the model is on the CPU as well
    assert len(found(made, parse_target("cuda"))) == 1


def test_loss_without_a_model_is_at_home() -> None:
    assert not found(
        checkpoint(tensor("class_weights", role="other"), tensor("x", device="cuda:0", role="other"))
    )


def test_weights_of_a_loss_within_a_module() -> None:
    (finding,) = found(whole(a=at("cuda:0", "0", 9), pos_weight=at("cpu", "1")))
    assert finding.id == "loss-buffer-left-behind"
    assert finding.paths == ("._parameters/pos_weight",)


def test_loss_below_a_module_and_other_strays_are_told_apart() -> None:
    loss = module(weight=at("cpu", "2"))
    state = pairs(
        _parameters=pairs(a=at("cuda:0", "0", 9), b=at("cuda:1", "1")), _modules=pairs(criterion=loss)
    )
    told = {finding.id: finding.paths for finding in found(by_hand(built(call("net.Net"), state)))}
    assert told == {
        "mixed-devices": ("._parameters/b",),
        "loss-buffer-left-behind": ("._modules/criterion/._parameters/weight",),
    }


def test_wrapper_wants_its_first_device() -> None:
    made = parallel(0, 1, w=at("cuda:1"))
    two = Profile(id="x", label="x", accelerators=(("cuda", 2),))
    for target in (None, two):
        found_ = findings(made, target)["data-parallel-device"]
        assert "parameters and buffers on device cuda:0 (device_ids[0])'" in found_.detail
    assert "data-parallel-device" not in findings(made, "cpu")  # there it cannot be used at all


def test_number_of_a_loss_on_the_cpu_is_no_stray() -> None:
    number = tensor("pos_weight", role="other", shape=())
    assert not found(checkpoint(*weights("model", "cuda:0"), number))
    away = number._replace(device="cuda:1")
    assert len(found(checkpoint(*weights("model", "cuda:0"), away))) == 1
