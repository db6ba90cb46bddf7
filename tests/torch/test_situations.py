"""Every situation gets the first answer that it needs; see `situations.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.situations import PAGE, ROWS, STORIES, page, wrong

# What is not yet right, and why; a row leaves this table when it is.
AMISS: dict[str, str] = {
    **dict.fromkeys(
        (
            "a traced model that fails after .to('cuda')",
            "optimizer.step() finds two devices after resuming",
            "weights saved on the CPU; someone else's traceback is pasted",
            "weights for another number of classes",
        ),
        "the error is not yet answered as well as it could be",
    ),
    **dict.fromkeys(
        (
            "half of a download",
            "weights with a NumPy number beside them; torch 2.6 or newer",
            "weights with the program's options (argparse.Namespace) beside them",
            "a whole model saved on cuda:0, its code elsewhere; no GPU",
        ),
        "the first fix is not yet the line to paste",
    ),
    **dict.fromkeys(
        (
            "weights saved on cuda:0; no GPU",
            "weights saved on cuda:0; no GPU; the traceback is pasted",
            "weights saved on cuda:1; one GPU",
            "layers saved on cuda:0 to cuda:3; one GPU",
            "weights saved on mps by a Mac; one NVIDIA GPU",
            "weights saved on cuda:0; a Mac",
            "weights saved on an Ascend NPU; no GPU",
            "float64 weights; a Mac",
            "training on cuda:0; no GPU",
            "training on cuda:0; a Mac",
            "training on cuda:0; an Intel GPU",
            "class weights on cuda:1, used as they are loaded; one GPU",
            "a Lightning checkpoint of a GPU; no GPU",
            "a traceback from the log, through a pipe",
        ),
        "the first fix is not yet the line to paste",
    ),
    **dict.fromkeys(
        (
            "a state dict; the code asks for checkpoint['state_dict']",
            "half-precision weights on a GPU; float32 input",
            "a folder: the browser unpacked the file",
            "features pickled with joblib on a GPU; no GPU",
            "a traceback about two dtypes, and a bfloat16 file",
            "weights on the GPU; the code calls .numpy()",
            "a GPU that this torch has no kernels for",
            "map_location=0",
            "a compiled extension that is not there",
            "two ranks on one GPU: NCCL stops",
        ),
        "the error is not yet answered",
    ),
    **dict.fromkeys(
        (
            "training on cuda:1; a machine with two GPUs",
            "training on cuda:1; the second GPU is wanted",
            "training on cuda:0; the second of two GPUs is wanted",
            "layers on cuda:0 to cuda:3; two GPUs",
            "a state dict spread over two GPUs; a machine with both",
            "a GAN trained on two GPUs; a machine with both",
            "training on cuda:0; one card of 24 GB",
            "four ranks that load one file of cuda:0; the code",
        ),
        "the machine cannot be named yet",
    ),
    **dict.fromkeys(
        (
            "training on the CPU; the code to resume on a GPU moves the model",
            "a GAN; the code to load it",
        ),
        "the code leaves something out",
    ),
    **dict.fromkeys(("the script that loads on the CPU; which line fails?",), "scripts are not read yet"),
    **dict.fromkeys(
        ("does it need the same CUDA version, must I save on the CPU?",), "beliefs are not answered yet"
    ),
}

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def test_every_situation_gets_its_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = []
    for number, row in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        amiss = list(wrong(row))
        if amiss and row.has not in AMISS:
            failures.append(f"{row.story}: {row.has}: {'; '.join(amiss)}")
    assert not failures, "\n".join(failures)


def test_the_table_tells_of_all_four_kinds_of_people_and_is_written_down() -> None:
    assert len(ROWS) >= 60
    assert {row.story for row in ROWS} == set(STORIES)
    assert len({row.has for row in ROWS}) == len(ROWS)
    assert set(AMISS) <= {row.has for row in ROWS}
    assert PAGE.read_text(encoding="utf-8") == page()
