"""Messages about dtypes: they are about precision, never about devices."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.running import are_apart, differ, read_type
from tests.sweep import table
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor

KERNEL = "RuntimeError: \"{}\" not implemented for '{}'"
# message, row, words of the title or the cause, words of the advice
ANSWERS = (
    ("expected scalar type Half but found Float", "dtype-mix", "float16 and of float32", "autocast"),
    ("Found dtype Double but expected Float", "dtype-mix", "float64 and of float32", "inputs.float()"),
    ("expected scalar type Long but found Float", "dtype-mix", "int64 and of float32", "labels.long()"),
    ("Input type (unsigned char) and bias type (float) should be the same", "dtype-mix", "uint8", "/ 255"),
    ("Input type (c10::Half) and bias type (float) should be the same", "dtype-mix", "float16", "inputs.to("),
    ("mat1 and mat2 must have the same dtype", "dtype-mix", "of two dtypes", "model.float()"),
    (
        "expected m1 and m2 to have the same dtype, but got: float != c10::BFloat16",
        "dtype-mix",
        "bfloat16",
        "torch.bfloat16",
    ),
    ("Found dtype ComplexFloat but expected Float", "dtype-mix", "complex64", "model.float()"),
    (
        "expected device cuda:0 and dtype Float but got device cuda:0 and dtype Half",
        "dtype-mix",
        "float32",
        "float()",
    ),
    (
        "expected device cpu and dtype Float but got device cuda:0 and dtype Float",
        "same-device-by-type",
        "CPU",
        "to(",
    ),
    (
        "Input type (torch.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
        "same-device-by-type",
        "CPU",
        "to(",
    ),
    (KERNEL.format("addmm_impl_cpu_", "Half"), "dtype-kernel", "half precision", "model.float()"),
    (KERNEL.format("triu_tril_cuda_template", "BFloat16"), "dtype-kernel", "CUDA code", "Update torch"),
    (
        KERNEL.format("_amp_non_finite_check_and_unscale_cuda", "BFloat16"),
        "dtype-kernel",
        "scaler",
        "GradScaler",
    ),
    (KERNEL.format("add_stub", "Float8_e4m3fn"), "dtype-kernel", "float8", "bfloat16"),
    (KERNEL.format("nll_loss_out_frame", "Float"), "dtype-kernel", "labels", "labels.long()"),
    (KERNEL.format("softmax_lastdim_kernel_impl", "Long"), "dtype-kernel", "integers", "x.float()"),
    (KERNEL.format("angle", "ComplexDouble"), "dtype-kernel", "does not exist", "float32"),
)


def test_answers() -> None:
    amiss = []
    for text, id_, about, advice in ANSWERS:
        found = explain_error(text, None)
        said = f"{found.title} {found.cause}"
        if found.id != id_ or about not in said or advice not in found.advice:
            amiss.append((text, found.id, said, found.advice))
        if id_ == "dtype-mix" and "different devices" in said:
            amiss.append((text, found.id, said, ""))
    assert amiss == []


def test_optimizer_state_of_another_dtype() -> None:
    frame = '  File "/v/site-packages/torch/optim/adam.py", line 3, in step\n    x\n'
    text = f"{frame}RuntimeError: expected scalar type Half but found Float"
    assert "Convert the model first" in explain_error(text, None).advice


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


def test_comparisons() -> None:
    gpu, cpu, half = (
        read_type("torch.cuda.FloatTensor"),
        read_type("torch.FloatTensor"),
        read_type("c10::Half"),
    )
    assert are_apart(gpu, cpu)
    assert not are_apart(gpu, half)
    assert not differ(gpu, cpu)
    assert differ(cpu, half)
    assert not differ(read_type("odd"), half)
