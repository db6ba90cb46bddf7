from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from tests.sweep import table
from tests.unit.diagnose.beliefs.asking import ask, module, weights, wrong
from tests.unit.report.rows import checkpoint, storage, tensor, value


def sized(dtype: str, nbytes: int, *, file_nbytes: int, role: str = "parameter", rest: int = 0) -> Checkpoint:
    return checkpoint(
        tensor("w", dtype=dtype, nbytes=nbytes, storage="0", role=role),
        tensor("v", dtype=dtype, nbytes=nbytes, storage="0", role=role),
        tensor("m", dtype="float32", nbytes=rest, storage="1", role="optimizer"),
        storage("0", nbytes=nbytes),
        storage("1", nbytes=rest),
        file_nbytes=file_nbytes,
    )


@table(
    ("made", "truth", "here"),
    [
        (
            sized("float32", 1000, file_nbytes=1050),
            "true",
            "its 1.0 KB of weights would be 500 B, and the file 550 B",
        ),
        (
            sized("float64", 1000, file_nbytes=1050),
            "true",
            "weights would be 250 B, and the file 300 B instead of",
        ),
        (
            sized("float32", 1000, file_nbytes=3100, rest=2000),
            "depends",
            "the file 2.6 KB instead of 3.1 KB: 2.0 KB of optimizer state stay.",
        ),
        (sized("bfloat16", 1000, file_nbytes=1050), "false", "Its weights are bfloat16 (2.0 KB)"),
        (sized("int8", 1000, file_nbytes=1050), "false", "float16 would save nothing"),
        (sized("float32", 1000, file_nbytes=1050, role="ema"), "true", "the file 550 B instead of 1.1 KB"),
        (sized("float32", 1000, file_nbytes=1050, role="other"), "false", "No tensor in it is known"),
        (checkpoint(tensor("w", dtype="float32")), "false", "Its weights are float32 (16 B)"),
        (sized("float32", 1000, file_nbytes=100), "true", "the file 0 B instead of 100 B"),
    ],
)
def test_half_is_computed(made: Checkpoint, truth: str, here: str) -> None:
    assert wrong([("half", ask(made)["half-size-as-half"], truth, here, "")]) == []


def test_code_never_writes_over_the_file() -> None:
    for made in (weights("a"), module(), sized("float32", 1000, file_nbytes=3100, rest=2000)):
        codes = [belief.code for belief in ask(made).values() if "torch.save" in belief.code]
        assert codes
        assert [code for code in codes if '"best-' not in code] == []
    odd = ask(replace(weights("a"), path="/x/it's \u202e.pt"))
    assert odd["save-from-cpu"].code.endswith("""  "it's \\u202e-cpu.pt")""".strip())


def test_sizes_and_containers() -> None:
    training = sized("float32", 1000, file_nbytes=3100, rest=2000)
    packed = checkpoint(tensor("w", storage="0"), storage("0", file_offset=None))
    lost = checkpoint(tensor("w", storage="0"), storage("0", file_offset=None, missing=True))
    rows = [
        (
            "training",
            ask(training)["file-size-is-model-size"],
            "depends",
            "1.0 KB of its 3.1 KB are weights; besides them optimizer 2.0 KB.",
            "-weights",
        ),
        (
            "weights",
            ask(weights("a", file_nbytes=17))["file-size-is-model-size"],
            "true",
            "16 B of its 17 B",
            "",
        ),
        (
            "small",
            ask(weights("a", file_nbytes=99))["file-size-is-model-size"],
            "depends",
            "are weights.",
            "",
        ),
        ("none", ask(checkpoint())["file-size-is-model-size"], "depends", "No tensor in it is known", ""),
        ("zip", ask(weights("a"))["zip-compresses"], "false", "1.0 KB on disk for 16 B of tensors.", ""),
        ("legacy", ask(weights("a", format="legacy"))["zip-compresses"], "false", "It is no zip.", ""),
        ("packed", ask(packed)["zip-compresses"], "depends", "1 storage of it were compressed", ""),
        ("lost", ask(lost)["zip-compresses"], "false", "", ""),
    ]
    assert wrong(rows) == []


def test_what_a_module_keeps_and_a_state_dict_does_not() -> None:
    modes = replace(
        module(),
        values=(value(".training", text="False"), value("._modules", "l", ".training", text="True")),
    )
    inside = checkpoint(tensor("model", "._parameters", "w"))
    grads = checkpoint(tensor("w", ".grad"), tensor("w", "grad"))
    gpu = weights("a", device="cuda:0")
    rows = [
        ("whole", ask(module())["save-whole-model"], "false", "This file is a whole nets.Net", "-weights"),
        ("inside", ask(inside)["save-whole-model"], "false", "This file holds whole modules", "-weights"),
        (
            "dict",
            ask(weights("a"))["save-whole-model"],
            "false",
            "no module, but 1 tensor of weights",
            "-weights",
        ),
        ("neither", ask(checkpoint())["save-whole-model"], "false", "This file holds no module.", ""),
        ("frozen", ask(module())["requires-grad-saved"], "true", "1 of its 1 parameter.", ""),
        (
            "dict",
            ask(weights("a"))["requires-grad-saved"],
            "false",
            "0 of its 1 parameter.",
            "requires_grad_(False)",
        ),
        ("neither", ask(checkpoint())["requires-grad-saved"], "false", "No tensor in it is known", ""),
        (
            "mode",
            ask(modes)["eval-mode-saved"],
            "true",
            "In training mode: 1 of its 2 modules.",
            "model.eval()",
        ),
        ("no mode", ask(weights("a"))["eval-mode-saved"], "false", "No module", "model.eval()"),
        ("grad", ask(grads)["gradients-saved"], "false", "Under the name grad: 2 tensors.", ""),
        ("no grad", ask(module())["gradients-saved"], "false", "There are none", ""),
        (
            "from a GPU",
            ask(gpu)["save-from-cpu"],
            "false",
            "saved from cuda:0 (16 B), and nothing",
            "-cpu.pth",
        ),
        ("from the CPU", ask(weights("a"))["save-from-cpu"], "false", "Nothing in this one is on a GPU.", ""),
    ]
    assert wrong(rows) == []


def test_safetensors_takes_tensors() -> None:
    state = checkpoint(
        tensor("o", "m", role="optimizer", storage="0"), storage("0"), value("epoch"), value("o", "lr")
    )
    rows = [
        (
            "optimizer",
            ask(state)["safetensors-no-optimizer"],
            "depends",
            "The 1 tensor of optimizer state (16 B) would fit under names of their own; the 2 other values",
            "",
        ),
        ("weights", ask(weights("a"))["safetensors-no-optimizer"], "depends", "0 values besides tensors", ""),
    ]
    assert wrong(rows) == []
