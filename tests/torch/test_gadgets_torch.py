"""A gadget that torch was told to allow runs; our loading code for the same file does not let it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.target.machine.profile import CPU_ONLY
from tests.builders import zips
from tests.builders.pickles import call, dict_, proto, storage, stream, tensor, text, tuple_

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

GADGETS = {
    "pydoc.pipepager": lambda done: (text("x"), text(f"cat > {done}")),
    "uuid._get_command_stdout": lambda done: (text("cp"), text("/bin/sh"), text(str(done))),
    "numpy.testing._private.utils.runstring": lambda done: (
        text(f"open({str(done)!r}, 'w')"),
        dict_((text("a"), text("b"))),
    ),
    "timeit.timeit": lambda done: (text("1"), text(f"open({str(done)!r}, 'w')")),
}


CHILD = """
import pathlib, sys
for code in {codes!r}:
    try:
        exec(code, {{"model": None}})
    except Exception as error:
        assert "Unsupported global" in str(error), error
        assert not pathlib.Path({done!r}).exists()
        print("refused", file=sys.stderr)
import torch, {module}
{allowed}
torch.load({path!r})
"""


def run(code: str, folder: Path) -> str:
    command = [sys.executable, "-P", "-W", "ignore", "-c", code]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=100
    ).stderr


@pytest.mark.parametrize("gadget", GADGETS)
def test_our_code_does_not_run_what_torch_would(gadget: str, tmp_path: Path) -> None:
    path, done = tmp_path / "file.pt", tmp_path / "done"
    weights = dict_((text("w"), tensor(storage(), 2)))
    evil = call(gadget, *GADGETS[gadget](done))
    path.write_bytes(
        zips.checkpoint(
            stream(proto(), dict_((text("state_dict"), weights), (text("x"), tuple_(evil)))), {"0": bytes(8)}
        )
    )
    checkpoint = open_checkpoint(str(path))
    # The others wait for further processes before they load anything.
    offered = [style.id for style in styles(checkpoint) if not style.id.startswith("distributed")]
    codes = [render(checkpoint, style=style, target=CPU_ONLY) for style in offered]
    assert all("weights_only=True" in code for code in codes)
    module = gadget.rpartition(".")[0]
    allowed = f"torch.serialization.add_safe_globals([({gadget}, {gadget!r})])"
    said = run(
        CHILD.format(codes=codes, done=str(done), module=module, allowed=allowed, path=str(path)), tmp_path
    )
    assert said.count("refused") == len(codes), said
    assert done.exists()
