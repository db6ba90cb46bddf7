"""Messages tied to files: is it this one, by what is in it?"""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.running import read_type
from inspector.model.findings import Fix
from tests.sweep import table
from tests.unit.diagnose.cases import trained, whole_optimizer
from tests.unit.diagnose.explaining import asking, explained, on
from tests.unit.report.rows import checkpoint, storage, tensor

# --- tensors on different devices ---

SAME = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
PARALLEL = (
    "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on "
    "device: cuda:1"
)


def test_a_file_on_one_device_is_not_to_blame() -> None:
    found = explained(SAME, on(("a", "cuda:0"), ("b", "cuda:0")), id_="same-device")
    assert (found.fits, found.fix) == ("no", None)
    assert "is entirely on cuda:0" in found.here
    assert "holds no tensors" in explained(SAME, on(), id_="same-device").here


def test_data_parallel() -> None:
    found = explained(PARALLEL, on(("a", "cuda:0"), ("b", "cuda:1")), id_="data-parallel-device")
    assert (found.fits, found.paths, found.fix) == ("yes", ("b",), Fix(rule="cuda:1=cuda:0"))
    other = explained(PARALLEL, on(("a", "cuda:0")), id_="data-parallel-device")
    assert other.fits == "no"
    assert "its GPU tensors are on cuda:0" in other.here
    none = explained(PARALLEL, on(("a", "mps")), id_="data-parallel-device")
    assert none.here == "This file holds nothing on cuda:1. Your code put the model there."
    of_cpu = explained(PARALLEL.replace("cuda:1", "cpu"), on(("a", "cpu")), id_="data-parallel-device")
    assert (of_cpu.fits, of_cpu.here.partition(".")[0]) == ("unknown", "This file holds tensors on cpu")


# --- the step that failed ---

FRAME = '  File "/v/site-packages/torch/{}.py", line 7, in {}\n    {}\n'


def test_state_of_optimizers_is_named_and_not_blamed() -> None:
    text = FRAME.format("optim/adam", "step", "exp_avg.mul_(beta1)") + f"RuntimeError: {SAME}"
    found = explained(text, trained("cpu", "cpu"), id_="same-device")
    assert (found.fits, found.paths) == ("unknown", ("optimizer/state/0/exp_avg",))
    assert "exp_avg of model/w, saved on cpu" in found.here or "exp_avg of w, saved on cpu" in found.here
    assert "batch" not in found.here
    none = explained(text, on(("a", "cpu")), id_="same-device")
    assert (none.fits, "holds no optimizer state" in none.here) == ("no", True)
    other = FRAME.format("optim/adam", "step", "buf.add_(grad)") + f"RuntimeError: {SAME}"
    assert explained(other, trained("cpu", "cpu"), id_="same-device").count == 1
    pickled = explained(text, whole_optimizer("cpu", "cuda:1"), id_="same-device")
    assert (pickled.fits, pickled.finding) == ("yes", "optimizer-off-parameter-device")


def test_other_steps_have_other_causes() -> None:
    for path, function, word in (
        ("nn/functional", "cross_entropy", "targets"),
        ("nn/functional", "linear", "its input"),
        ("nn/utils/clip_grad", "clip_grad_norm_", "part of the model"),
        ("utils/data/_utils/fetch", "fetch", "dataset"),
        ("nn/modules/module", "_apply", "batch"),
    ):
        text = FRAME.format(path, function, "x") + f"RuntimeError: {SAME}"
        assert word in explained(text, on(("a", "cpu")), id_="same-device").here, function
        apart = explained(text, on(("a.w", "cpu"), ("b.w", "cuda:0")), id_="same-device")
        assert (apart.fits, word in apart.here) == ("unknown", True), function


# --- dtypes ---


def test_the_dtypes_of_a_file() -> None:
    text = "expected scalar type Half but found Float"
    half = checkpoint(tensor("a", dtype="float16"), tensor("b"))
    found = explained(text, half, id_="dtype-mix")
    assert found.fits == "unknown"
    assert "float16 (1 tensor), float32 (1 tensor)" in found.here
    assert "copies them into the dtypes that the model was built with" in found.here
    whole = checkpoint(tensor("a"), module_class="a.Net")
    assert explained(text, whole, id_="dtype-mix").fits == "yes"
    assert "no weights" in explained(text, on(), id_="dtype-mix").here


@table(
    ("text", "place", "dtype"),
    [
        ("torch.cuda.HalfTensor", "cuda", "float16"),
        ("torch.FloatTensor", "cpu", "float32"),
        ("torch.FloatT ensor", "cpu", "float32"),
        ("CUDABFloat16Type", "cuda", "bfloat16"),
        ("MPSFloatType", "mps", "float32"),
        ("CPUFloatType", "cpu", "float32"),
        ("c10::Half", "", "float16"),
        ("float", "", "float32"),
        ("unsigned char", "", "uint8"),
        ("long int", "", "int64"),
        ("Double", "", "float64"),
        ("torch.float64", "", "float64"),
        ("odd", "", ""),
    ],
)
def test_names(text: str, place: str, dtype: str) -> None:
    found = read_type(text)
    assert (found.place, found.dtype) == (place, dtype)


# --- shapes ---

GROUPS = (
    "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 2, 2] to have 3 "
    "channels"
)


def test_the_weight_that_the_message_names() -> None:
    made = checkpoint(tensor("conv.weight", shape=(64, 3, 7, 7)))
    found = explained(GROUPS, made, id_="input-shape")
    assert (found.fits, found.paths) == ("unknown", ("conv.weight",))
    assert explained(GROUPS, on(("a", "cpu")), id_="input-shape").fits == "no"
    loose = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 2x2)"
    assert "the input does not fit" in explained(loose, on(("a", "cpu")), id_="input-shape").here
    plane = "RuntimeError: Given groups=1, weight of size [3, 7], expected input"
    turned = checkpoint(tensor("a", shape=(7, 3)), tensor("b", shape=(3, 7)))
    assert explained(plane, turned, id_="input-shape").count == 2


# --- modules that cannot be imported ---


def test_modules() -> None:
    text = "ModuleNotFoundError: No module named 'models'"
    found = explained(text, asking("models.yolo.Model", "torch.Size"), id_="module-missing")
    assert (found.fits, found.finding, found.fix) == (
        "yes",
        "runs-code",
        Fix(style="plain"),
    )  # no module here
    assert found.here == "This file asks for models.yolo.Model."
    whole = asking("models.yolo.Model", module_class="models.yolo.Model")
    found = explained(text, whole, id_="module-missing")
    assert found.finding == "whole-module"
    assert "It is a whole pickled module, models.yolo.Model." in found.here
    assert explained(text, asking("modelsx.A"), id_="module-missing").fits == "no"


def test_torchscript_is_no_package() -> None:
    text = "ModuleNotFoundError: No module named '__torch__'"
    found = explained(text, on(("a", "cpu")), id_="torchscript-file")
    assert found.fits == "no"
    assert "torch.jit.load" in found.advice


def test_torchscript_is_the_archive() -> None:
    text = "ModuleNotFoundError: No module named '__torch__'"
    found = explained(text, on(("a", "cpu"), format="torchscript"), id_="torchscript-file")
    assert (found.fits, found.here) == ("yes", "This file is such an archive, with code of its own.")


# --- other processes ---

WORKER = "RuntimeError: DataLoader worker (pid 51) is killed by signal: {}."


def test_a_bus_error_is_about_the_file_that_lacks_bytes() -> None:
    cut = checkpoint(storage("0", missing=True), tensor("w", storage="0"))
    for text in ("Bus error (core dumped)", "exited with code 135", "SIGBUS"):
        found = explain_error(text, cut)
        assert (found.id, found.fits, found.finding) == ("dataloader-worker", "yes", "truncated"), text
        assert explain_error(text, checkpoint(storage("0"), tensor("w", storage="0"))).fits == "unknown"
    assert explain_error(WORKER.format("Bus error"), cut).fits == "no"


# --- paths ---

MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
DENIED = "PermissionError: [Errno 13] Permission denied: '{}'"


def test_a_file_of_the_same_name_elsewhere() -> None:
    made = on(("a", "cpu"))
    found = explained(MISSING.format("run/best.pth"), made, id_="file-missing")
    assert found.fits == "unknown"
    assert "looks for it in another folder" in found.here
    assert explained(MISSING.format("other.pth"), made, id_="file-missing").fits == "no"
    assert (
        explained("RuntimeError: Parent directory a does not exist.", made, id_="file-missing").fits == "no"
    )


def test_folders() -> None:
    made = on(("a", "cpu"))
    assert (
        explained("IsADirectoryError: [Errno 21] Is a directory: 'a'", made, id_="folder-given").fits == "no"
    )
    for path in ("./best_model/", "C:/models/checkpoints", "run.dir"):
        found = explained(DENIED.format(path), made, id_="folder-given")
        assert found.title == "A folder was given instead of a file", path
    own = explained(DENIED.format("/root/out.log"), made, id_="folder-given")
    assert "no right" in own.cause
    found = explained(DENIED.format("C:/models/best.pth"), made, id_="folder-given")
    assert found.title == "Access to the file is denied"
    assert "also where a folder is named like a file" in found.cause


def test_a_denial_elsewhere_is_no_folder() -> None:
    text = '  File "x/torch/optim/adam.py", line 3, in step\n' + DENIED.format("/dev/nvidia0")
    assert explained(text, on(), id_="unrecognised").fits == "unknown"
