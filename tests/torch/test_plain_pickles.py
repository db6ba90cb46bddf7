"""Plain pickles before real torch and Python's unpickler: copies, loading code, what torch.load says."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.remap.export import export_copy
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.safety.verdict import judge
from inspector.snippet.pickled import render_pickled
from inspector.target.call import load_call
from inspector.target.opening import opening_failure
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.sweep import table

FILES = [f"plain_pickle/state_p{protocol}.pkl" for protocol in range(6)]
W = torch.arange(6.0).view(2, 3)


def remapped(file: Path, out: Path, *rules: str) -> Path:
    plan = plan_remap(open_checkpoint(str(file)), list(map(parse_rule, rules)))
    export_copy(str(file), out, plan, overwrite=True)
    return out


def is_right(value: Any) -> bool:
    return (
        torch.equal(value["w"], W)
        and torch.equal(value["h"], torch.ones(2, dtype=torch.float16))
        and isinstance(value["b"], torch.nn.Parameter)
        and np.array_equal(value["n"]["big"], np.arange(4))
        and value["n"]["f"].flags.f_contiguous
        and value["n"]["o"].tolist() == [1, "x", None]
        and value["epoch"] == 3
    )


@table("file", FILES)
def test_a_copy_loads_with_pickle_load(file: str, tmp_path: Path) -> None:
    source = CORPUS / file
    with source.open("rb") as stream, pytest.raises(RuntimeError, match="Attempting to deserialize object"):
        pickle.load(stream)
    for rules in (["*=cpu"], ["cuda:1=cuda:123", "cpu=cuda:0"]):
        out = remapped(source, tmp_path / "a.pkl", *rules)
    back = remapped(out, tmp_path / "b.pkl", "*=cpu")
    for copy in (back, remapped(source, tmp_path / "c.pkl", "*=cpu")):
        with copy.open("rb") as stream:
            assert is_right(pickle.load(stream))
    with out.open("rb") as stream, pytest.raises(RuntimeError, match="Attempting to deserialize object"):
        pickle.load(stream)


@table("pack", [None, gzip.compress, bz2.compress, lzma.compress])
def test_the_code_loads_it_on_a_machine_without_its_gpu(pack: Any, tmp_path: Path) -> None:
    for file in FILES:
        path = tmp_path / "a.pkl"
        data = (CORPUS / file).read_bytes()
        path.write_bytes(data if pack is None else pack(data))
        names: dict[str, Any] = {}
        exec(compile(render_pickled(open_checkpoint(str(path)), str(path)), "snippet", "exec"), names)
        assert is_right(names["checkpoint"])


def test_the_code_reads_every_object_of_a_file() -> None:
    path = CORPUS / "plain_pickle/two_dumps.pkl"
    names: dict[str, Any] = {}
    exec(compile(render_pickled(open_checkpoint(str(path)), str(path)), "snippet", "exec"), names)
    assert [list(one) for one in names["checkpoints"]] == [["a"], ["b"]]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_torch_says_what_is_foretold(tmp_path: Path) -> None:
    plain = {"numbers": pickle.dumps({"a": [1, 2]}, 2), "state": (CORPUS / FILES[2]).read_bytes()}
    packed = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zlib": zlib.compress}
    files = plain | {name: pack(plain["numbers"]) for name, pack in packed.items()}
    files |= {f"p{protocol}": (CORPUS / FILES[protocol]).read_bytes() for protocol in (0, 3, 4, 5)}
    wrong = []
    for name, data in files.items():
        path = tmp_path / f"{name}.pkl"
        path.write_bytes(data)
        checkpoint = open_checkpoint(str(path))
        call = load_call(checkpoint, judge(checkpoint))
        failure = opening_failure(checkpoint, CPU_ONLY, call)
        assert failure is not None
        with pytest.raises((RuntimeError, pickle.UnpicklingError)) as caught:
            torch.load(path)
        said = f"{type(caught.value).__name__}: {caught.value}"
        if said != failure[1]:
            wrong.append((name, said[-400:], failure[1][-400:]))
    assert wrong == []
