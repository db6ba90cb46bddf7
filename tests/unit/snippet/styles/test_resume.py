"""The style `resume`, as text; `test_styles_torch.py` runs it."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.machine.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, optimizer, tensor, value

PYTHON_STATE = (value("py", 0, text="3"), value("py", 1, type="tuple"), value("py", 2, type="NoneType"))
NUMPY_STATE = (value("np", 0, type="str", text="MT19937"), value("np", 1, type="numpy.ndarray"))


def resume(rows: Checkpoint, target: Profile) -> str:
    return render(rows, style="resume", target=target, path="demo.pth")


def run(*rows: object, values: tuple[object, ...] = (), count: int = 1) -> Checkpoint:
    places = tuple(optimizer("opt", index) for index in range(count))
    return checkpoint(tensor("net", "w", device="cuda:0"), *rows, values=values, optimizers=places)


def test_demo_on_one_gpu() -> None:
    assert resume(open_checkpoint(str(demo_path())), parse_target("cuda")) == (
        "import torch\n\n"
        'checkpoint = torch.load("demo.pth", map_location="cpu", weights_only=True)\n\n'
        "# Yours, created as in the run that was saved: model, optimizer, scheduler and scaler.\n"
        'model.to("cuda:0")\n'
        'model.load_state_dict(checkpoint["model"])\n\n'
        "# Only now: an optimizer puts its state where the parameters are.\n"
        'optimizer.load_state_dict(checkpoint["optimizer"])\n'
        'scheduler.load_state_dict(checkpoint["scheduler"])\n'
        'scaler.load_state_dict(checkpoint["scaler"])\n'
        'averages = checkpoint["ema"]  # the averaged weights, on the CPU\n\n'
        'torch.set_rng_state(checkpoint["rng_state"]["torch"])\n'
        "for index in range(min(2, torch.cuda.device_count())):\n"
        '    torch.cuda.set_rng_state(checkpoint["rng_state"]["cuda"][index], index)\n\n'
        'epoch = checkpoint["epoch"]\n'
    )


def test_demo_on_the_cpu_has_no_use_for_the_states_of_gpus() -> None:
    text = resume(open_checkpoint(str(demo_path())), CPU_ONLY)
    assert "cuda" not in text
    assert ".to(" not in text
    assert "Only now" not in text


def test_demo_wherever_the_code_runs() -> None:
    text = resume(open_checkpoint(str(demo_path())), THIS)
    assert 'map_location="cpu"' in text
    assert text.index("device = ") < text.index("model.to(device)") < text.index("optimizer.load_state_dict")
    assert "torch.cuda.set_rng_state" in text


def test_file_that_is_on_the_cpu_already() -> None:
    rows = checkpoint(tensor("net", "w"), optimizers=(optimizer("opt"),))
    text = resume(rows, THIS)
    assert "map_location" not in text
    assert "device" not in text
    assert "# Yours, created as in the run that was saved: model and optimizer.\n" in text


def test_whole_module_beside_its_optimizer() -> None:
    rows = checkpoint(tensor("net", "._parameters", "w", device="cuda:0"), optimizers=(optimizer("opt"),))
    text = resume(rows, parse_target("cuda"))
    assert 'model = checkpoint["net"]\nmodel.to("cuda:0")\n\n' in text
    rows = checkpoint(tensor("net", "._parameters", "w"), optimizers=(optimizer("opt"),))
    assert "Yours" not in resume(rows, CPU_ONLY)  # nothing but the optimizer, which speaks for itself


def test_several_optimizers() -> None:
    text = resume(run(count=2), CPU_ONLY)
    assert 'optimizer.load_state_dict(checkpoint["opt"][0])\n' in text
    assert 'optimizer_2.load_state_dict(checkpoint["opt"][1])\n' in text
    assert "model, optimizer and optimizer_2." in text


def test_random_states_of_gpus_by_name() -> None:
    rows = [tensor("rng", f"cuda:{index}", role="rng", nbytes=16) for index in range(2)]
    assert (
        "if torch.cuda.device_count() > 0:\n"
        '    torch.cuda.set_rng_state(checkpoint["rng"]["cuda:0"], 0)\n'
        "if torch.cuda.device_count() > 1:\n"
        '    torch.cuda.set_rng_state(checkpoint["rng"]["cuda:1"], 1)\n'
    ) in resume(run(*rows), THIS)


def test_random_states_of_others() -> None:
    text = resume(run(values=(*PYTHON_STATE, *NUMPY_STATE)), CPU_ONLY)
    assert text.startswith("import random\n\nimport numpy\nimport torch\n")
    assert 'random.setstate(checkpoint["py"])\nnumpy.random.set_state(checkpoint["np"])\n' in text


def test_lightning_has_a_way_of_its_own() -> None:
    version = value("pytorch-lightning_version", type="str")
    rows = checkpoint(tensor("state_dict", "w"), values=(version,), optimizers=(optimizer("o"),))
    assert "# Lightning does all of this itself: trainer.fit(" in resume(rows, CPU_ONLY)
    assert "Lightning" not in resume(run(), CPU_ONLY)
