"""The style `resume`, as text; `test_styles_torch.py` runs it."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
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
        "import copy\n\nimport torch\n\n"
        'checkpoint = torch.load(\n    "demo.pth",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        'model.to("cuda:0")\n'
        'model.load_state_dict(checkpoint["model"])\n'
        "ema = copy.deepcopy(model)\n"
        "# It holds the parameters only: the buffers stay the model's.\n"
        'ema.load_state_dict(checkpoint["ema"], strict=False)\n\n'
        "# Yours too, and made after the move, as its state goes where the parameters are:\n"
        "# optimizer, of model.parameters()\n"
        "# scheduler, of optimizer\n"
        "# scaler\n"
        'optimizer.load_state_dict(checkpoint["optimizer"])\n'
        'scheduler.load_state_dict(checkpoint["scheduler"])\n'
        'scaler.load_state_dict(checkpoint["scaler"])\n\n'
        'torch.set_rng_state(checkpoint["rng_state"]["torch"])\n'
        "for index in range(min(2, torch.cuda.device_count())):\n"
        '    torch.cuda.set_rng_state(checkpoint["rng_state"]["cuda"][index], index)\n\n'
        'epoch = checkpoint["epoch"]\n'
        'best_accuracy = checkpoint["best_accuracy"]\n'
        'config = checkpoint["config"]\n'
    )


def test_demo_on_the_cpu_has_no_use_for_the_states_of_gpus() -> None:
    text = resume(open_checkpoint(str(demo_path())), CPU_ONLY)
    assert "cuda" not in text
    assert ".to(" not in text
    assert "the move" not in text


def test_demo_wherever_the_code_runs() -> None:
    text = resume(open_checkpoint(str(demo_path())), THIS)
    assert 'map_location="cpu"' in text
    assert text.index("device = ") < text.index("model.to(device)") < text.index("optimizer.load_state_dict")
    assert "torch.cuda.set_rng_state" in text


def test_file_that_is_on_the_cpu_already() -> None:
    rows = checkpoint(tensor("net", "w"), optimizers=(optimizer("opt"),))
    text = resume(rows, THIS)
    assert "map_location" not in text
    assert text.index("net.to(device)\n") < text.index("opt.load_state_dict(")
    assert ".to(" not in resume(rows, CPU_ONLY)
    assert "# Yours too, created as in the run that was saved:\n# opt, of net.parameters()\n" in resume(
        rows, CPU_ONLY
    )


def test_whole_module_beside_its_optimizer() -> None:
    rows = checkpoint(tensor("net", "._parameters", "w", device="cuda:0"), optimizers=(optimizer("opt"),))
    text = resume(rows, parse_target("cuda"))
    assert 'net = checkpoint["net"]\nnet.to("cuda:0")\n\n' in text
    assert "# The model is yours" not in text


def test_several_optimizers_with_their_schedulers() -> None:
    values = (value("s", 0, "last_epoch"), value("s", 0, "base_lrs"), value("s", 1, "last_epoch"))
    text = resume(run(values=(*values, value("s", 1, "base_lrs")), count=2), CPU_ONLY)
    order = ["opt.load", "scheduler_s.load", "opt_2.load", "scheduler_s_2.load"]
    assert sorted(order, key=text.index) == order
    assert 'opt_2.load_state_dict(checkpoint["opt"][1])\n' in text


def test_what_an_optimizer_was_made_of() -> None:
    slots = [
        tensor("opt", "state", number, "exp_avg", role="optimizer", nbytes=size)._replace(slot="exp_avg")
        for number, size in enumerate((5, 3))
    ]
    pair = (tensor("a", "l.weight", nbytes=3), tensor("b", "l.weight", nbytes=5))
    both = replace(optimizer("opt"), parameters=2, groups=(1, 1))
    text = resume(checkpoint(*pair, *slots, optimizers=(both,)), CPU_ONLY)
    assert "# opt, of itertools.chain(b.parameters(), a.parameters()), in groups of 1, 1\n" in text
    alike = (tensor("a", "l.weight", nbytes=5), tensor("b", "l.weight", nbytes=5))
    text = resume(checkpoint(*alike, slots[0], optimizers=(replace(both, groups=(2,)),)), CPU_ONLY)
    assert "# opt, of itertools.chain(a.parameters(), b.parameters()), in the order of the run\n" in text
    frozen = (tensor("m", "a.weight", nbytes=5), tensor("m", "b.weight", nbytes=3))
    text = resume(checkpoint(*frozen, slots[0], optimizers=(optimizer("opt"),)), CPU_ONLY)
    assert "# opt, of some of m.parameters()\n" in text
    many = replace(optimizer("opt"), parameters=9, groups=(1,) * 9)
    text = resume(checkpoint(*frozen, optimizers=(many,)), CPU_ONLY)
    assert "# opt, in groups of 1, 1, 1, 1, 1, 1, ...\n" in text


def test_averages_with_a_state_dict_of_their_own() -> None:
    text = resume(run(tensor("ema", "shadow_params", 0, role="ema")), CPU_ONLY)
    assert "# ema, which averages the weights\n" in text
    assert 'ema.load_state_dict(checkpoint["ema"])\n' in text


def test_capturable_is_for_machines_with_graphs() -> None:
    rows = run(values=(value("opt", 0, "param_groups", 0, "capturable", type="bool", text="True"),))
    assert '\nfor group in opt.param_groups:\n    group["capturable"] = False\n' in resume(rows, CPU_ONLY)
    assert "step() refuses it.\nif not torch.cuda.is_available():\n" in resume(rows, THIS)
    assert "capturable" not in resume(rows, parse_target("cuda"))
    assert "capturable" not in resume(run(), CPU_ONLY)


def test_optimizer_by_itself() -> None:
    text = resume(checkpoint(optimizers=(optimizer(),)), CPU_ONLY)
    assert text.endswith("# optimizer\noptimizer.load_state_dict(checkpoint)\n")
    out_of_reach = resume(checkpoint(tensor("net", "w"), optimizers=(optimizer(".opt"),)), CPU_ONLY)
    assert out_of_reach.endswith('net.load_state_dict(checkpoint["net"])\n')


def test_states_of_gpus_are_for_gpus() -> None:
    rows = run(tensor("rng", "cuda", 0, role="rng", nbytes=16))
    assert "set_rng_state" not in resume(rows, CPU_ONLY)


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
