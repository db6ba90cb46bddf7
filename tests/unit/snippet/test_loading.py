"""The steps that styles share, as text; `test_styles_torch.py` runs them."""

from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, Safety
from inspector.records import replace
from inspector.snippet.loading import write_load, write_models
from inspector.snippet.script import Script
from inspector.target.machine.profile import CPU_ONLY, Profile, parse_target
from tests.unit.snippet.rows import SAFE, THIS, checkpoint, tensor
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
        f'{LOAD}map_location="cpu", weights_only=True)\n'
    )


def test_names_to_allow() -> None:
    text = load(
        checkpoint(names=("collections.OrderedDict", "argparse.Namespace", "torch.nn.modules.linear.Linear"))
    )
    assert text == (
        "import argparse\n\nimport torch\n\n"
        "torch.serialization.add_safe_globals(\n"
        "    [argparse.Namespace, torch.nn.modules.linear.Linear]\n"
        ")\n\n"
        f"{LOAD}weights_only=True)\n"
    )


def test_numpy_needs_more_than_the_file_says() -> None:
    text = load(checkpoint(names=("numpy.core.multiarray.scalar", "numpy.dtype")))
    assert "import numpy\nimport numpy.core.multiarray\n" in text
    assert '(numpy.core.multiarray.scalar, "numpy.core.multiarray.scalar"),' in text
    assert 'numpy.dtype,\n        *{type(numpy.dtype(code)) for code in numpy.typecodes["All"]},' in text


def test_name_that_cannot_be_written_down() -> None:
    text = load(checkpoint(names=("argparse.Namespace", "x.y; import z")))
    assert "add_safe_globals" not in text
    assert "z" not in text
    assert "# Loading this file can run code" in text
    assert text.endswith(f"{LOAD}weights_only=False)\n")


def test_pickle_that_torch_refuses() -> None:
    text = load(checkpoint(safety=Safety(opcodes=("FRAME",), protocol=4, oddities=())))
    assert "# Loading this file can run code" in text
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
    assert "# Allow them only if that code is yours, or if you trust it.\ntorch.serialization." in text
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
    assert "weights_only=False" in script.text()


def test_dangerous_file_is_not_loaded() -> None:
    text = load(checkpoint(names=("os.system",)))
    assert "# torch rightly refuses this file" in text
    assert text.endswith(f"{LOAD}weights_only=True)\n")


def test_gzip() -> None:
    text = load(checkpoint(notes=(Note(NoteKind.GZIP),), safety=SAFE))
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


def test_state_dict_among_other_things() -> None:
    assert models(tensor("w"), tensor("ema", "w", role="ema")).endswith(
        "# Yours.\n"
        "state_dict = {k: v for k, v in state_dict.items() if torch.is_tensor(v)}\n"
        "net.load_state_dict(state_dict)\n"
    )


def test_whole_modules() -> None:
    assert models(tensor("._parameters", "w"), root="module") == "import torch\n"
    rows = [tensor("a", "._parameters", "w", device="mps"), tensor("b", "v")]
    assert models(*rows).endswith('# Yours.\na = checkpoint["a"]\nb.load_state_dict(checkpoint["b"])\n')
