"""The code itself is run against torch in `tests/torch/test_plain_pickles.py`."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.snippet.pickled import Loading, loading_code, render_pickled
from tests.builders.pickles import call, proto, stream, text
from tests.corpus import CORPUS


def test_code_for_every_kind_of_file() -> None:
    wrong = []
    for form in ("pickle", "joblib"):
        for packing in ("", "gzip", "xz", "bzip2", "lzma", "lz4", "zlib", "joblib's zlib"):
            for has_tensors in (False, True):
                for is_several in (False, True):
                    loading = Loading(
                        form=form, packing=packing, has_tensors=has_tensors, is_several=is_several
                    )
                    code = loading_code(loading, "a'b.pkl")
                    ast.parse(code)
                    uses_joblib = form == "joblib" or "zlib" in packing
                    right = (
                        ("joblib.load(" in code) == uses_joblib,
                        ("to_cpu" in code) == has_tensors,
                        ("import torch" in code) == has_tensors,
                        ("checkpoints.append" in code) == (is_several and not uses_joblib),
                        "only if you trust its source" in code,
                        "map_location" in code or not has_tensors,
                    )
                    if not all(right):
                        wrong.append((loading, right))
    assert wrong == []


def test_what_a_file_needs_is_told_by_the_file(tmp_path: Path) -> None:
    def code(path: Path) -> str:
        return render_pickled(open_checkpoint(str(path)), "x.pkl")

    assert "CPUUnpickler(file).load()" in code(CORPUS / "plain_pickle/state_p4.pkl")
    assert "checkpoints.append(CPUUnpickler" in code(CORPUS / "plain_pickle/two_dumps.pkl")
    assert "joblib.load(" in code(CORPUS / "joblib/arrays_xz.joblib")
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    assert "checkpoint = pickle.load(file)" in code(path)
    path.write_bytes(stream(proto(), call("posix.system", text("id"))))
    with pytest.raises(PlanError, match="can run commands"):
        code(path)
