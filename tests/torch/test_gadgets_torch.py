"""A gadget that torch was told to allow runs; our loading code for the same file does not let it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import CPU_ONLY
from tests.builders import zips
from tests.builders.pickles import call, dict_, proto, storage, stream, tensor, text, tuple_
from tests.torches import run_with_torch

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
import importlib, pathlib, sys, torch, warnings
warnings.simplefilter("ignore")
for codes, done, gadget, path in {files!r}:
    for code in codes:
        try:
            exec(code, {{"model": None}})
        except Exception as error:
            assert "Unsupported global" in str(error), error
            assert not pathlib.Path(done).exists()
            print("refused", file=sys.stderr)
    module, _, function = gadget.rpartition(".")
    allowed = getattr(importlib.import_module(module), function)
    with torch.serialization.safe_globals([(allowed, gadget)]):
        torch.load(path)
"""


LOADS_NOTHING = {"save"}
# These wait for further processes, or import other packages, before they load anything.
NEEDS_MORE = {"distributed", "distributed-broadcast", "fsdp", "accelerate", "deepspeed"}


def test_our_code_does_not_run_what_torch_would(tmp_path: Path) -> None:
    files, marks = [], []
    for gadget, arguments in GADGETS.items():
        path, done = tmp_path / f"{gadget}.pt", tmp_path / f"{gadget}.done"
        weights = dict_((text("w"), tensor(storage(), 2)))
        evil = call(gadget, *arguments(done))
        path.write_bytes(
            zips.checkpoint(
                stream(proto(), dict_((text("state_dict"), weights), (text("x"), tuple_(evil)))),
                {"0": bytes(8)},
            )
        )
        checkpoint = open_checkpoint(str(path))
        made = {style.id: render(checkpoint, style=style.id, target=CPU_ONLY) for style in styles(checkpoint)}
        assert all("weights_only=True" in code for style, code in made.items() if style not in LOADS_NOTHING)
        assert not any("load(" in made[style] for style in LOADS_NOTHING)
        codes = [code for style, code in made.items() if style not in LOADS_NOTHING | NEEDS_MORE]
        files.append((codes, str(done), gadget, str(path)))
        marks.append(done)
    said = run_with_torch("-c", CHILD.format(files=files), cwd=tmp_path).stderr
    assert said.count("refused") == sum(len(codes) for codes, *_ in files), said
    assert all(done.exists() for done in marks), said
