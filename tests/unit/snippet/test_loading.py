"""The steps that styles share, as text; `test_styles_torch.py` runs them."""

from __future__ import annotations

import pytest

from inspector.containers.notes import AMBIGUOUS, Note, NoteKind
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, Safety
from inspector.records import replace
from inspector.snippet.loading import write_load, write_models
from inspector.snippet.script import Script
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import SAFE, THIS, checkpoint, tensor, value
from tests.unit.snippet.test_request import request_for

LOAD = 'checkpoint = torch.load("best.pth", '


def load(rows: Checkpoint, map_location: str | None = None) -> str:
    script = Script()
    write_load(script, request_for(rows), map_location)
    return script.text()


def models(*rows: object, target: Profile = CPU_ONLY, **options: object) -> str:
    script = Script()
    write_models(script, request_for(checkpoint(*rows, **options), target), comment="# Yours.")
    return script.text()


def test_safe_file() -> None:
    assert load(checkpoint()) == f"import torch\n\n{LOAD}weights_only=True)\n"
    assert load(checkpoint(), 'map_location="cpu"').endswith(
        'checkpoint = torch.load(\n    "best.pth",\n    map_location="cpu",\n    weights_only=True,\n)\n'
    ), "each argument is in sight beside a tree"


def test_names_to_allow() -> None:
    text = load(
        checkpoint(names=("collections.OrderedDict", "argparse.Namespace", "torch.nn.modules.linear.Linear"))
    )
    assert text == (
        "import argparse\n\nimport torch\n\n"
        "# This takes torch 2.4 or newer.\n"
        "torch.serialization.add_safe_globals(\n"
        "    [argparse.Namespace, torch.nn.modules.linear.Linear]\n"
        ")\n\n"
        f"{LOAD}weights_only=True)\n"
    )


def test_a_module_that_allows_the_names_itself_is_imported() -> None:
    names = ("torch.distributed.tensor.DTensor", "argparse.Namespace")
    comment = "# Importing torch.distributed.tensor puts classes of this file on torch's list.\n"
    text = load(checkpoint(names=names))
    assert "import torch\nimport torch.distributed.tensor\n" in text
    assert comment in text
    assert "add_safe_globals([argparse.Namespace])" in text
    assert "add_safe_globals" not in load(checkpoint(names=names[:1]))
    script = Script()
    older = replace(THIS, torch_version="2.5.1")
    write_load(script, replace(request_for(checkpoint(names=names[:1])), target=older), None)
    assert "torch.serialization.add_safe_globals([DTensor])" in script.text()
    assert comment not in script.text()


def test_numpy_needs_more_than_the_file_says() -> None:
    text = load(checkpoint(names=("numpy.core.multiarray.scalar", "numpy.dtype")))
    assert "import numpy\nimport numpy.core.multiarray\n" in text
    assert '(numpy.core.multiarray.scalar, "numpy.core.multiarray.scalar"),' in text
    assert 'numpy.dtype,\n        *{type(numpy.dtype(code)) for code in numpy.typecodes["All"]},' in text


def test_name_that_cannot_be_written_down() -> None:
    text = load(checkpoint(names=("argparse.Namespace", "x.y; import z")))
    assert "add_safe_globals" not in text
    assert "z" not in text
    assert "such as\n# argparse.Namespace.\n" in text
    assert "# Loading it so can run code" in text
    assert text.endswith(f"{LOAD}weights_only=False)\n")


def test_pickle_that_torch_refuses() -> None:
    text = load(checkpoint(safety=Safety(opcodes=("FRAME",), protocol=4, oddities=(), unread=())))
    assert "# weights_only=False: torch's restricted unpickler has no opcode FRAME.\n" in text
    assert text.endswith(f"{LOAD}weights_only=False)\n")


def test_what_no_list_helps_with() -> None:
    mentioned = checkpoint(names=("x.Net",), safety=SAFE)
    called = checkpoint(
        names=("x.Net", "functools.partial"), safety=replace(SAFE, called=("functools.partial",))
    )
    for rows in (mentioned, called):
        assert "add_safe_globals" not in load(rows)
        assert "weights_only=False" in load(rows)
    assert "add_safe_globals([x.Net])" in load(checkpoint(names=("x.Net",)))


def test_whom_to_trust_is_said_with_every_package() -> None:
    text = load(checkpoint(names=("a.X", "b.Y", f"{'c' * 40}.Z", "d.W", "argparse.Namespace")))
    assert f"# The file creates objects of classes from a, b, {'c' * 18}... and 1 more.\n" in text
    assert "# Allow them only if that code is yours, or if you trust it.\n# This takes torch" in text
    assert "Allow them" not in load(checkpoint(names=("argparse.Namespace",)))


def test_paths_are_known_by_both_their_names() -> None:
    text = load(checkpoint(names=("pathlib.PosixPath", "pathlib._local.PurePath")))
    assert '(pathlib.PosixPath, "pathlib.PosixPath")' in text
    assert '(pathlib.PurePath, "pathlib._local.PurePath")' in text
    assert "import pathlib\n" in text
    assert "import pathlib._local" not in text


def test_an_old_torch_has_no_list() -> None:
    old = replace(THIS, torch_version="2.3.1")
    script = Script()
    write_load(script, replace(request_for(checkpoint(names=("x.Net",))), target=old), None)
    assert "add_safe_globals" not in script.text()
    assert (
        "# weights_only=False: it needs names that only torch 2.4 and newer can be told to allow.\n"
        in script.text()
    )
    assert "weights_only=False)" in script.text()


def test_dangerous_file_is_not_loaded() -> None:
    text = load(checkpoint(names=("os.system",)))
    assert "# torch rightly refuses this file" in text
    assert text.endswith(f"{LOAD}weights_only=True)\n")


def test_gzip() -> None:
    text = load(checkpoint(notes=(Note(NoteKind.GZIP, ("gzip",)),), safety=SAFE))
    assert text == (
        "import gzip\n\nimport torch\n\n"
        'with gzip.open("best.pth") as file:\n'
        "    checkpoint = torch.load(file, weights_only=True)\n"
    )


def test_state_dict() -> None:
    assert models(tensor("net", "w")).endswith('\n\n# Yours.\nnet.load_state_dict(checkpoint["net"])\n')


def test_state_dict_with_prefixes() -> None:
    text = models(tensor("net", "module._orig_mod.w"))
    assert text.startswith(
        "import torch\nfrom torch.nn.modules.utils import consume_prefix_in_state_dict_if_present\n"
    )
    assert text.endswith(
        'state_dict = checkpoint["net"]\n'
        'consume_prefix_in_state_dict_if_present(state_dict, "module.")\n'
        'consume_prefix_in_state_dict_if_present(state_dict, "_orig_mod.")\n'
        "net.load_state_dict(state_dict)\n"
    )


def test_prefix_for_a_torch_that_cannot_strip_it() -> None:
    old = Profile(id="this", label="", torch_version="1.8.0")
    text = models(tensor("net", "module.w"), target=old)
    assert "consume" not in text
    assert "state_dict = {k[7:]: v for k, v in state_dict.items()}\n" in text


def test_averages() -> None:
    average = tensor("ema", "module.w", role="ema")
    assert models(tensor("net", "w"), average).endswith(
        "ema = copy.deepcopy(net)\n"
        'state_dict = checkpoint["ema"]\n'
        'consume_prefix_in_state_dict_if_present(state_dict, "module.")\n'
        "ema.load_state_dict(state_dict)\n"
    )
    target = parse_target("cuda")
    text = models(tensor("net", "w"), tensor("net", "b"), tensor("ema", "w", role="ema"), target=target)
    assert 'net.to("cuda:0")\n' in text
    assert text.endswith('the model\'s.\nema.load_state_dict(checkpoint["ema"], strict=False)\n')
    text = models(tensor("net", "w"), tensor("ema", "v", role="ema"), target=target)
    assert 'device = "cuda:0"\n' in text
    assert text.endswith('ema.to(device)\nema.load_state_dict(checkpoint["ema"])\n')
    text = models(tensor("net", "w"), tensor("ema", "._parameters", "w", role="ema"))
    assert text.endswith('ema = checkpoint["ema"]\n')


def test_names_are_imported_from_their_module_since_packages_may_hide_it() -> None:
    names = (
        "torch.nn.parallel.data_parallel.DataParallel",
        "torch.optim.adam.Adam",
        "a.b.C",
        "d.e.C",
        "a.torch",
    )
    text = load(checkpoint(names=(*names, "nets.Outer.Inner")))
    assert text.startswith("from pkgutil import resolve_name\n\n")
    assert "from a.b import C\n" in text
    assert "from d.e import C as C_2\n" in text
    assert 'resolve_name("nets.Outer.Inner")' in text
    assert "from torch.nn.parallel.data_parallel import DataParallel\n" in text
    assert "from torch.optim.adam import Adam\n" in text


def test_imported_name_is_never_one_that_means_something() -> None:
    text = load(checkpoint(names=("a.b.torch", "a.b.device", "a.b.Net")))
    assert "from a.b import Net, device as device_2, torch as torch_2\n" in text
    assert "add_safe_globals([torch_2, device_2, Net])" in text


def test_release_that_the_list_takes_is_said_where_it_is_not_known() -> None:
    rows, new = checkpoint(names=("x.Net",)), Profile(id="cpu", label="", torch_version="2.4.1")
    assert "# This takes torch 2.4 or newer.\n" in load(rows)
    script = Script()
    write_load(script, request_for(rows, new), None)
    assert "newer" not in script.text()


@pytest.mark.parametrize("version", ["1.8.1", "1.12.1"])
def test_torch_that_checks_nothing(version: str) -> None:
    old = Profile(id="cpu", label="", torch_version=version)
    harmless, odd, dangerous = (checkpoint(names=names) for names in ((), ("x.Net",), ("os.system",)))
    script = Script()
    write_load(script, request_for(harmless, old), None)
    assert script.text() == 'import torch\n\ncheckpoint = torch.load("best.pth")\n'
    script = Script()
    write_load(script, request_for(odd, old), None)
    assert "torch before 1.13 does not check" in script.text()
    assert "weights_only" not in script.text()
    with pytest.raises(PlanError, match="would run what is in this file"):
        write_load(Script(), request_for(dangerous, old), None)


def test_programs_that_disagree_and_a_torch_that_checks_nothing() -> None:
    rows = checkpoint(notes=(Note(min(AMBIGUOUS, key=str)),), safety=SAFE)
    assert "# Programs read different things" in load(rows)
    script = Script()
    write_load(script, request_for(rows, Profile(id="cpu", label="", torch_version="1.12")), None)
    assert "torch before 1.13" in script.text()


def test_tensors_by_themselves() -> None:
    rows = (tensor("net", "w"), tensor("mean", role="other", device="cuda:0"))
    assert models(*rows).endswith('\n\nmean = checkpoint["mean"]\n')
    assert models(*rows, target=parse_target("mps")).endswith('mean = checkpoint["mean"].to(device)\n')
    whole = tensor("net", "._parameters", "w")
    assert "mean" not in models(whole, rows[1])


def test_state_dict_among_other_things() -> None:
    text = models(tensor("w"), tensor("ema", "w", role="ema"))
    assert text.endswith(
        "# Yours.\n"
        "state_dict = {k: v for k, v in checkpoint.items() if torch.is_tensor(v)}\n"
        "model.load_state_dict(state_dict)\n"
        "ema = copy.deepcopy(model)\n"
        'ema.load_state_dict(checkpoint["ema"])\n'
    )
    text = models(tensor("w"), tensor("rng_state", role="rng"), tensor("rng", role="rng"))
    assert text.endswith(
        "state_dict = {k: v for k, v in checkpoint.items() if torch.is_tensor(v)}\n"
        'for k in ["rng_state", "rng"]:\n'
        "    del state_dict[k]\n"
        "model.load_state_dict(state_dict)\n"
    )


def test_state_dict_among_other_things_below_a_key() -> None:
    text = models(tensor("m", "w"), tensor("m", "v"), values=(value("m", "epoch"),))
    assert text.endswith(
        'entries = checkpoint["m"]\n'
        "state_dict = {k: v for k, v in entries.items() if torch.is_tensor(v)}\n"
        "m.load_state_dict(state_dict)\n"
    )


def test_whole_modules() -> None:
    assert models(tensor("._parameters", "w"), root="module") == "import torch\n"
    rows = [tensor("a", "._parameters", "w", device="mps"), tensor("b", "v")]
    assert models(*rows).endswith('# Yours.\na = checkpoint["a"]\nb.load_state_dict(checkpoint["b"])\n')
