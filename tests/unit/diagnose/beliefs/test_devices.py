from __future__ import annotations

from inspector.model.checkpoint import GlobalUse, HiddenDevice, HiddenPlace
from inspector.records import replace
from inspector.target.machine.wish import parse_target
from tests.unit.diagnose.beliefs.asking import CPU, ask, module, weights, wrong
from tests.unit.report.rows import checkpoint, storage, tensor

LOADS = 'checkpoint = torch.load("best.pth", map_location="cpu")'
GPU = weights("a", "b", device="cuda:1")
TWO = checkpoint(
    tensor("a", device="cuda:0", storage="0"),
    tensor("b", device="cuda", storage="1"),
    tensor("c", storage="2"),
    storage("0", "cuda:0"),
    storage("1", "cuda"),
    storage("2"),
)
HIDDEN = HiddenDevice(path="d", device="cuda:2", what=HiddenPlace.DEVICE)
WRAPPED = "torch.nn.parallel.distributed.DistributedDataParallel"


def slots(*, by_design: bool) -> object:
    return checkpoint(
        tensor("o", "state", 0, "exp_avg", role="optimizer", slot="exp_avg"),
        tensor("o", "state", 0, "step", role="optimizer", slot="step", nbytes=4, on_cpu_by_design=by_design),
    )


def test_devices_of_a_file_are_no_condition() -> None:
    one_gpu, two_gpus = parse_target("cuda"), parse_target("2xcuda")
    rows = [
        ("cpu", ask(weights("a"))["same-gpu"], "false", "Nothing in this file was saved on a GPU.", LOADS),
        ("gone", ask(GPU)["same-gpu"], "false", "(CPU only) has no cuda:1, and map_location", LOADS),
        ("there", ask(TWO, two_gpus)["same-gpu"], "false", "(2 NVIDIA GPUs) has all of them.", LOADS),
        (
            "this",
            ask(GPU, replace(CPU, id="this"))["same-gpu"],
            "false",
            " This machine has no cuda:1, and",
            LOADS,
        ),
        ("part", ask(TWO, CPU)["same-gpu"], "false", "has no cuda or cuda:0", LOADS),
        ("sizes", ask(TWO)["same-gpu"], "false", "cuda:0 (16 B); 16 B on the CPU.", LOADS),
        (
            "hidden",
            ask(replace(GPU, hidden_devices=(HIDDEN,)))["same-gpu"],
            "depends",
            "1 object in it names cuda:2",
            LOADS,
        ),
        (
            "hidden twice",
            ask(replace(GPU, hidden_devices=(HIDDEN, HIDDEN)))["same-gpu"],
            "depends",
            "2 objects in it name cuda:2",
            LOADS,
        ),
        (
            "hidden cpu",
            ask(replace(GPU, hidden_devices=(replace(HIDDEN, device="cpu"),)))["same-gpu"],
            "false",
            "",
            LOADS,
        ),
        ("module", ask(module())["same-gpu"], "false", "", "checkpoint-inspector snippet best.pth"),
        ("none", ask(weights("a"))["same-number-of-gpus"], "false", "Nothing in this file", LOADS),
        ("one", ask(GPU)["same-number-of-gpus"], "false", "is on one, cuda:1 (32 B).", LOADS),
        ("two", ask(TWO, one_gpu)["same-number-of-gpus"], "false", "It names 2 devices", LOADS),
        (
            "version",
            ask(GPU)["same-cuda-version"],
            "false",
            "2 tensors as plain bytes, with",
            "torch.version.cuda",
        ),
        (
            "no version",
            ask(weights("a"))["same-cuda-version"],
            "false",
            "1 tensor as plain bytes, none on",
            "",
        ),
    ]
    assert wrong(rows) == []


def test_tensors_on_the_cpu_are_counted() -> None:
    mixed = checkpoint(tensor("a", device="cuda:0"), tensor("b"), tensor("c", on_cpu_by_design=True))
    rows = [
        ("none", ask(GPU)["cpu-tensor-breaks"], "false", "No tensor in it is on the CPU.", ""),
        ("all", ask(weights("a"))["cpu-tensor-breaks"], "false", "On the CPU: 1 of 1 tensor.", ""),
        ("some", ask(mixed)["cpu-tensor-breaks"], "false", "2 of 3 tensors, 1 of them by design", ""),
        (
            "by design",
            ask(slots(by_design=True))["cpu-tensor-breaks"],
            "false",
            "2 of 2 tensors, 1 of them by design",
            "",
        ),
        (
            "all by design",
            ask(checkpoint(tensor("s", on_cpu_by_design=True)))["cpu-tensor-breaks"],
            "false",
            "1 of 1 tensor, all of them by design",
            "",
        ),
    ]
    assert wrong(rows) == []


def test_wrappers_are_taken_off() -> None:
    wrapper = module(globals=(GlobalUse(name=WRAPPED, count=1),))
    rows = [
        ("none", ask(weights("a"))["data-parallel-needed"], "false", "0 of its 1 names", ""),
        (
            "some",
            ask(weights("module.a", "b"))["data-parallel-needed"],
            "false",
            "1 of its 2 names begin with `module.`",
            'removeprefix("module.")',
        ),
        ("module", ask(module())["data-parallel-needed"], "false", "It holds no wrapper.", ""),
        (
            "wrapper",
            ask(wrapper)["data-parallel-needed"],
            "depends",
            "It holds a pickled wrapper",
            "model.module",
        ),
    ]
    assert wrong(rows) == []


def test_map_location_moves_what_is_read() -> None:
    rows = [
        ("dict", ask(GPU)["map-location-moves-model"], "false", "places its 32 B", "model.to(device)"),
        (
            "module",
            ask(module())["map-location-moves-model"],
            "depends",
            "places its 16 B",
            "model.to(device)",
        ),
        (
            "no state",
            ask(GPU)["map-location-moves-optimizer"],
            "false",
            "no optimizer state",
            "model.to(device)",
        ),
        (
            "state",
            ask(slots(by_design=True))["map-location-moves-optimizer"],
            "false",
            "2 tensors of optimizer state, 20 B; its step counters (1) stay",
            "before optimizer.load_state_dict",
        ),
        (
            "capturable",
            ask(slots(by_design=False))["map-location-moves-optimizer"],
            "false",
            "2 tensors of optimizer state, 20 B.",
            "",
        ),
    ]
    assert wrong(rows) == []


def test_exported_programs_need_the_device_that_they_were_saved_on() -> None:
    program = replace(GPU, format="pt2")
    answer = ask(program)["same-gpu"]
    assert (answer.truth, "has no map_location" in answer.why) == ("true", True)
    assert 'map_location="cpu"' not in answer.here
    assert ask(replace(weights("a"), format="pt2"))["same-gpu"].truth == "false"
    script = ask(replace(GPU, format="torchscript"))["same-gpu"]
    assert (script.truth, 'map_location="cpu" loads it there' in script.here) == ("false", True)
