"""One voice: no row says of any kind of file what its verdict or its findings deny."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from inspector.diagnose.errors.explain import ERROR_KINDS, explain_error
from inspector.diagnose.errors.explanation import Explanation
from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import judge_load
from tests.corpus import CORPUS
from tests.unit.diagnose.messages import messages

# One file of each format, and those about which a row is most easily wrong.
FILES = {
    "zip": "zip/state_dict.pt",
    "on a GPU": "zip/fake_materialized.pt",
    "legacy": "old/t1.5_py37_legacy_cuda_opt.pt",
    "tar": "tar/tar_cpu.pth",
    "script": "torchscript/conv.pt",
    "package": "package/pkg.pt",
    "program": "export/model.pt2",
    "safetensors": "safetensors/all.safetensors",
    "folder": "dcp/plain",
    "shards": "hf_sharded/pytorch_model.bin.index.json",
    "pickle": "plain_pickle/state_p4.pkl",
    "joblib": "joblib/arrays.joblib",
    "gguf": "gguf/small.gguf",
    "dangerous": "hostile/os_system.pt",
    "module": "old/t1.5_py37_zip_module.pt",
}
OTHER = re.compile(r"another|elsewhere|your (?:own )?code")
NOT = re.compile(r"\b(?:do not|never|not help|does not|no map_location|needs a|cannot)\b", re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.!?])\s+")


def file_of(name: str, folder: Path) -> Checkpoint:
    if name != "a shard is missing":
        return open_checkpoint(str(CORPUS / FILES[name]))
    shutil.copytree(CORPUS / "hf_sharded", folder, dirs_exist_ok=True)
    (folder / "pytorch_model-00001-of-00002.bin").unlink(missing_ok=True)
    return open_checkpoint(str(folder / "pytorch_model.bin.index.json"))


def says(found: Explanation, pattern: str) -> list[str]:
    """The sentences that say something without a negation; what only warns or names a cause is no advice."""
    about = "" if "weights_only" in pattern or "pickle" in pattern else f"{found.title}. {found.here} "
    parts = SENTENCE.split(about + found.advice)
    return [part for part in parts if re.search(pattern, part) and not NOT.search(part)]


@pytest.mark.wide
@pytest.mark.parametrize("name", [*FILES, "a shard is missing"])
def test_no_row_contradicts_what_is_known_of_a_file(name: str, tmp_path: Path) -> None:
    made = file_of(name, tmp_path)
    load = judge_load(made, CPU_ONLY)
    ids = {finding.id for finding in diagnose(made, load.safety, CPU_ONLY)}
    asked, wrong = set(), []
    for message in messages():
        found = explain_error(message.text, made, CPU_ONLY)
        asked.add(found.id)
        assert found.advice, found.id
        never = ["file is not a safetensors file"] if made.format == "safetensors" else []
        never += ["weights_only=False", r"pickle\.load"] if load.safety.may_harm else []
        if found.fits != "no" or not OTHER.search(found.here):
            never += [r"assign=True"] if "missing-part" in ids else []
            never += [r"map_location ?="] if name in {"pickle", "joblib"} else []
            never += [r"torch\.load\("] if name in {"pickle", "joblib", "gguf", "safetensors"} else []
            never += [r"mmap=True"] if name in {"legacy", "tar", "pickle", "gguf"} else []
        wrong += [(found.id, said) for pattern in never for said in says(found, pattern)]
    assert wrong == []
    assert {kind.id for kind in ERROR_KINDS} == asked


def test_what_is_contradicted_is_replaced_and_the_rest_stays() -> None:
    text = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"
    pickled = open_checkpoint(str(CORPUS / FILES["pickle"]))
    plain = open_checkpoint(str(CORPUS / FILES["on a GPU"]))
    assert "No map_location reaches this pickle" in explain_error(text, pickled, CPU_ONLY).advice
    assert "map_location='cpu'" in explain_error(text, plain, CPU_ONLY).advice
