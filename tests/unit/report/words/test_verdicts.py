from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from inspector.containers.notes import Note, NoteKind
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety
from inspector.pythons import Python
from inspector.records import replace
from inspector.report.words.verdicts import (
    SAFETY,
    SAFETY_LABELS,
    assumed,
    load_sentence,
    place,
    refusal_sentence,
    safety_label,
    safety_sentence,
    short_sentence,
    shown_message,
    understood,
    verdict_words,
)
from inspector.safety.verdict import FileVerdict, judge
from inspector.target.default_load import DefaultLoad, Way, judge_load
from inspector.target.machine.evidence import Evidence, TorchFound
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.machine.wish import parse_target
from tests.builders.dcp import two_ranks
from tests.builders.pickles import call, number, text
from tests.sweep import table
from tests.unit.report.rows import BLANK, checkpoint, storage, tensor

ON_GPU = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
NODE = Profile(
    id="/tmp/node7.json", label="node7 (8 CUDA GPUs)", accelerators=(("cuda", 8),), evidence=Evidence()
)


def load_of(made: Checkpoint, version: str | None = None) -> DefaultLoad:
    return judge_load(made, replace(CPU_ONLY, torch_version=version))


def asking(*names: str, called: tuple[str, ...] = (), rows: tuple[object, ...] = ()) -> Checkpoint:
    safety = replace(BLANK.safety, constructed=names, called=called)
    uses = tuple(GlobalUse(name=name, count=1) for name in (*names, *called))
    return checkpoint(*rows, globals=uses, safety=safety)


DTENSOR = "torch.distributed.tensor.DTensor"


@table(
    ("made", "version", "words"),
    [
        (asking(), None, "It loads on a node as is."),
        (checkpoint(notes=(Note(NoteKind.SHARED_NAME),)), None, "As read here it loads on a node; other"),
        (asking("m.Net"), "2.4", "It loads on a node as is, but unchecked: before 2.6"),
        (asking("m.Net"), None, "It loads on a node once 1 name is allowed (add_safe_globals)."),
        (asking(DTENSOR), None, "It loads on a node once torch.distributed.tensor is imported."),
        (
            asking(DTENSOR, "torch._dynamo.decorators._DimRange", "m.Net"),
            None,
            "once torch.distributed.tensor and torch._dynamo are imported and 1 name is allowed (add_safe",
        ),
        (asking(called=("m.make",)), None, "only with weights_only=False, which can run code in the file."),
        (asking(called=("os.system",)), None, "Loading this file can run commands"),
        (checkpoint(*ON_GPU), None, "It does not load on a node."),
    ],
)
def test_sentences(made: Checkpoint, version: str | None, words: str) -> None:
    assert words in load_sentence(load_of(made, version), "a node")
    short = short_sentence(load_of(made, version), "a node")
    assert len(short) <= len(load_sentence(load_of(made, version), "a node"))


@table(
    ("made", "said"),
    [
        (asking("m.Net", rows=ON_GPU), "torch.load refuses it until 1 name is allowed"),
        (
            asking("m.Net", "m.Head", rows=ON_GPU),
            "torch.load refuses it until 2 names are allowed",
        ),
        (asking(called=("m.make",), rows=ON_GPU), "torch.load refuses it without weights_only=False."),
        (asking(rows=ON_GPU), ""),
        (asking("m.Net"), ""),
    ],
)
def test_what_comes_before_another_error(made: Checkpoint, said: str) -> None:
    whole = said.replace(" allowed", " allowed (add_safe_globals).")
    assert refusal_sentence(load_of(made)) == whole


@table("version", ["2.6", "2.9", "2.13"])
def test_torch_s_suggestion_is_quoted_for_classes_only(version: str) -> None:
    allowed = load_of(asking("m.Net"), version)
    assert allowed.failure is not None
    assert shown_message(allowed, allowed.failure) == allowed.failure.message
    assert "add_safe_globals" in allowed.failure.message
    for name in ("m.make", "joblib.load", "functools.partial"):
        withheld = load_of(asking(called=(name,)), version)
        assert withheld.failure is not None
        assert "add_safe_globals" in withheld.failure.message
        shown = shown_message(withheld, withheld.failure)
        assert "safe_globals" not in shown
        assert f"GLOBAL {name} was not an allowed global by default. [\u2026]" in shown


def test_other_errors_are_quoted_whole() -> None:
    opcode = load_of(checkpoint(safety=Safety(opcodes=("POP",), protocol=2, oddities=(), unread=())))
    assert opcode.failure is not None
    assert shown_message(opcode, opcode.failure) == opcode.failure.message


@table(
    ("target", "name"),
    [
        (CPU_ONLY, "a machine without a GPU"),
        (parse_target("cuda"), "a machine with 1 NVIDIA GPU"),
        (parse_target("3xcuda"), "a machine with 3 NVIDIA GPUs"),
        (parse_target("mps"), "Apple silicon"),
        (parse_target("xpu"), "a machine with an Intel GPU"),
        (Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),)), "this machine"),
        (NODE, "node7"),
    ],
)
def test_machines_have_names_for_sentences(target: Profile, name: str) -> None:
    assert place(target) == name


@table(
    ("target", "said"),
    [
        ("2xcuda", "2 NVIDIA GPUs"),
        ("2xcuda:1", "2 NVIDIA GPUs, cuda:1 wanted"),
        ("cuda:1", "2 NVIDIA GPUs (the fewest with cuda:1; 4xcuda:1 means 4), cuda:1 wanted"),
        ("cuda:1@2x80gb", "2 NVIDIA GPUs of 80 GB each, cuda:1 wanted"),
    ],
)
def test_what_was_understood_of_a_target(target: str, said: str) -> None:
    assert understood(parse_target(target)) == said
    assert place(parse_target(target)).startswith("a machine with 2 NVIDIA GPUs")


@table("word", ["cuda:0", "cuda:1", "cuda:3", "cuda:31", "xpu:0", "xpu:1", "rocm:1"])
def test_the_word_for_more_gpus_is_one(word: str) -> None:
    target = parse_target(word)
    more = re.search(r"; (\S+) means ([0-9]+)\)", understood(target))
    assert more is not None
    larger = parse_target(more[1])
    assert (larger.wanted, len(larger.devices) - 1) == (target.wanted, int(more[2]))
    assert int(more[2]) == 2 * (len(target.devices) - 1)


def test_no_word_is_offered_for_more_gpus_than_there_can_be() -> None:
    assert understood(parse_target("cuda:63")).endswith("(the fewest with cuda:63), cuda:63 wanted")


def test_what_is_taken_for_granted_without_a_torch() -> None:
    rest = ": import torch fails. This is for the newest torch on its CPU."
    python = Python(path="/bin/python3", origin="--python")
    for state, ails in (("missing", "torch is not installed"), ("crashed", "torch does not start")):
        machine = Profile(id="this", label="this machine", evidence=Evidence(torch=TorchFound(state=state)))
        assert assumed(machine) == f"{ails} on this machine{rest}"
        assert assumed(replace(machine, python=python)) == f"{ails} in /bin/python3 (--python){rest}"
    for state in ("", "imported"):
        assert assumed(Profile(id="this", label="", evidence=Evidence(torch=TorchFound(state=state)))) == ""
    assert assumed(CPU_ONLY) == ""


def test_nothing_is_said_to_load_that_another_thing_stops() -> None:
    stopped, free = load_of(checkpoint(*ON_GPU)), load_of(asking())
    assert safety_sentence(stopped) == "SAFE: nothing in it runs code."
    assert safety_sentence(free) == "SAFE: loads with weights_only=True, runs no code."
    assert safety_sentence(load_of(asking(called=("os.system",)))).startswith("NOT SAFE: DANGEROUS")


def test_damage_is_said_before_ambiguity() -> None:
    cut_off = load_of(checkpoint(refusal="RuntimeError: no", notes=(Note(NoteKind.NO_DIRECTORY),)))
    assert cut_off.safety.is_unsure
    assert safety_sentence(cut_off).startswith("NOT SAFE: the file is damaged, so")
    shared = load_of(checkpoint(notes=(Note(NoteKind.SHARED_NAME),)))
    assert safety_sentence(shared).startswith("NOT SAFE: programs read different things")


def test_every_verdict_has_its_words() -> None:
    assert set(SAFETY) == set(get_args(FileVerdict))
    load = load_of(asking())
    assert all(load_sentence(replace(load, way=way), "a node") for way in get_args(Way))
    for way in get_args(Way):
        said = replace(load, way=way)
        assert ("loads" in short_sentence(said, "a node")) == ("loads" in load_sentence(said, "a node"))


def test_what_has_no_pickle_is_not_said_to_load_with_weights_only() -> None:
    load = load_of(checkpoint(tensor("w"), format="safetensors", safety=None))
    assert safety_sentence(load) == "SAFE: holds no pickle, so loading it runs no code."
    assert safety_label(load.safety) == "safe: no pickle"
    assert load.loader == "safetensors.torch.load_file"


def test_archives_are_told_with_their_loader() -> None:
    script = checkpoint(*ON_GPU, format="torchscript")
    assert short_sentence(load_of(script), "a node") == load_sentence(load_of(script), "a node")
    assert load_sentence(load_of(script), "a node").startswith(
        "It does not load on a node with torch.jit.load; "
    )
    script = checkpoint(tensor("w"), format="torchscript")
    load = load_of(script)
    assert load_sentence(load, "a node") == (
        "It loads on a node with torch.jit.load; torch.load calls that, too, but only with "
        "weights_only=False (the default before torch 2.6)."
    )
    assert safety_sentence(load).startswith("NOT SAFE: a TorchScript program")
    assert safety_label(load.safety) == "TorchScript program"
    evil = load_of(replace(script, globals=(GlobalUse(name="os.system", count=1),)))
    assert load_sentence(evil, "a node") == "Do not load it: a pickle in it is made to run commands."
    assert safety_sentence(evil) == "NOT SAFE: DANGEROUS: a pickle in it is made to run commands."
    assert safety_label(evil.safety) == "dangerous"


def test_loaders_that_restrict_nothing_are_as_safe_as_the_names(tmp_path: Path) -> None:
    for push, words, label in (
        (number(1), "name nothing but tensors and plain data", "safe: data only"),
        (call("mine.Config"), "its loader runs whatever the pickles name", SAFETY_LABELS["runs-code"]),
        (call("os.system", text("id")), SAFETY["dangerous"], SAFETY_LABELS["dangerous"]),
    ):
        saved = two_ranks()
        saved.value("extra", push)
        safety = judge(open_checkpoint(str(saved.write(tmp_path / "a"))))
        assert words in verdict_words(safety)
        assert safety_label(safety) == label
