from __future__ import annotations

import json
from pathlib import Path

from inspector.doctor.diagnosis import Diagnosis
from inspector.doctor.examine import examine
from inspector.pythons import Python
from inspector.records import replace
from inspector.report.machine import format_diagnosis, machine_document, machine_page, target_document
from inspector.report.page import plain_lines, plain_text
from inspector.target.profile import Gpu, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.report.rows import is_harmless

PROFILES = sorted(Path(__file__).parents[2].joinpath("data/profiles").glob("*.json"))


def test_a_machine_as_json() -> None:
    gpus = (Gpu(device="cuda:0", name="L4", memory_nbytes=5, capability=(8, 9)), Gpu(device="mps"))
    machine = Profile(
        id="this",
        label="l",
        accelerators=(("cuda", 1),),
        gpus=gpus,
        memory_nbytes=7,
        torch_version="2.5",
        python=Python(path="/bin/python3", origin="python3 on PATH"),
    )
    assert target_document(machine) == {
        "id": "this",
        "label": "l",
        "understood": "l",
        "wanted": None,
        "destination": "cuda:0",
        "devices": ["cuda:0", "cpu"],
        "gpus": [
            {"device": "cuda:0", "name": "L4", "memory_nbytes": 5, "capability": [8, 9]},
            {"device": "mps", "name": "", "memory_nbytes": None, "capability": None},
        ],
        "memory_nbytes": 7,
        "torch_version": "2.5",
        "python": "/bin/python3",
    }
    assert "\n  python   /bin/python3 (python3 on PATH)\n" in plain_text(machine_page(machine, ()))


@table("path", PROFILES, ids=lambda path: path.stem)
def test_every_machine_fits_on_a_terminal(path: Path) -> None:
    machine = parse_target(str(path))
    diagnoses = examine(machine)
    text = plain_text(machine_page(machine, diagnoses))
    assert all(diagnosis.title in text for diagnosis in diagnoses)
    steps = {f"   {number}. {step}" for row in diagnoses for number, step in enumerate(row.steps, 1)}
    lines = text.splitlines()
    assert steps <= set(lines)
    assert all(len(line) <= 100 for line in lines if line not in steps)
    json.dumps(machine_document(machine, diagnoses))


def test_text_of_a_machine() -> None:
    gpus = (Gpu(device="cuda:0", name="L4", memory_nbytes=24 << 30, capability=(8, 9)), Gpu(device="xpu:0"))
    machine = Profile(
        id="x",
        label="far",
        accelerators=(("cuda", 1),),
        gpus=gpus,
        memory_nbytes=10**9,
        torch_version="2.5.1",
    )
    assert plain_text(machine_page(machine, ())) == (
        "far\n"
        "  torch    2.5.1\n"
        "  devices  cuda:0, cpu\n"
        "  cuda:0   L4, 25.8 GB, sm_89\n"
        "  xpu:0    no name\n"
        "  memory   1.0 GB\n"
    )


def test_text_of_a_diagnosis() -> None:
    diagnosis = Diagnosis(
        id="i",
        severity="warning",
        title="t",
        explanation="word " * 30,
        evidence=("proof " * 20,),
        steps=("paste " * 30, "b"),
        certainty="likely",
    )
    assert list(plain_lines(format_diagnosis(diagnosis))) == [
        " ! t (likely)",
        "   " + " ".join(["word"] * 19),
        "   " + " ".join(["word"] * 11),
        "   - " + " ".join(["proof"] * 16),
        "     " + " ".join(["proof"] * 4),
        "   1. " + "paste " * 30,
        "   2. b",
    ]
    bare = replace(diagnosis, explanation="", evidence=(), steps=())
    assert list(plain_lines(format_diagnosis(bare))) == [" ! t (likely)"]


def test_names_of_another_machine_are_harmless() -> None:
    evil = "a\x1b[31m\u202eb\nc"
    machine = Profile(
        id="x",
        label=evil,
        accelerators=(("cuda", 1),),
        gpus=(Gpu(device="cuda:0", name=evil),),
        torch_version=evil,
    )
    diagnosis = Diagnosis(
        id="i", severity="error", title=evil, explanation=evil, evidence=(evil,), steps=(evil,)
    )
    text = plain_text(machine_page(machine, (diagnosis,)))
    assert all(is_harmless(line) for line in text.splitlines())
