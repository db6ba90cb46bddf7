from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from inspector.containers.notes import Note, NoteKind
from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety, Verb
from inspector.pythons import Python
from inspector.records import replace
from inspector.report.words.verdicts import (
    assumed,
    load_verdict,
    place,
    safety_sentence,
    shown_message,
    understood,
)
from inspector.safety.verdict import FileVerdict, judge
from inspector.safety.words import LEVELS, SAFETY, few, shouted, verdict_words, words_of
from inspector.target.evidence import Evidence, TorchFound
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import DefaultLoad, Judged, judge_load
from inspector.target.wish import parse_target
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


def miscalled() -> Checkpoint:
    uses = (("collections.Counter", Verb.MISCALL),)
    return checkpoint(safety=replace(BLANK.safety, uses=uses))


DTENSOR = "torch.distributed.tensor.DTensor"


def said(made: Checkpoint, version: str | None = None, target: Profile = CPU_ONLY) -> str:
    target = replace(target, torch_version=version)
    load = judge_load(made, target)
    judged = Judged(checkpoint=made, target=target, load=load)
    return load_verdict(judged, diagnose(made, load.safety, target), "a node").sentence()


@table(
    ("made", "version", "words"),
    [
        (asking(), None, "LOADS on a node: torch.load works there."),
        (
            checkpoint(notes=(Note(NoteKind.SHARED_NAME),)),
            None,
            "LOADS on a node: as far as it could",
        ),
        (
            asking("m.Net"),
            "2.4",
            "LOADS on a node: torch.load works there, and runs whatever the file asks for.",
        ),
        (asking("m.Net"), None, "DOES NOT LOAD on a node: refused until 1 name is allowed."),
        (asking("m.Net", "m.Head"), None, "DOES NOT LOAD on a node: refused until 2 names are allowed."),
        (
            asking(DTENSOR),
            None,
            ": refused until torch.distributed.tensor is imported.",
        ),
        (
            asking(DTENSOR, "torch._dynamo.decorators._DimRange", "m.Net"),
            None,
            "refused until torch.distributed.tensor and torch._dynamo are imported and 1 name is allowed.",
        ),
        (asking(called=("m.make",)), None, "DOES NOT LOAD on a node: refused without weights_only=False."),
        (
            asking(called=("os.system",)),
            None,
            "DOES NOT LOAD on a node: torch.load refuses it, and rightly.",
        ),
        (asking(called=("os.system",)), "2.4", "LOADS on a node: torch.load runs what is in it."),
        (checkpoint(*ON_GPU), None, "DOES NOT LOAD on a node: saved on cuda:0."),
        (asking("m.Net", rows=ON_GPU), None, "refused until 1 name is allowed, and saved on cuda:0."),
        (asking(called=("m.make",), rows=ON_GPU), None, "refused without weights_only=False, and saved on"),
        (
            checkpoint(refusal="RuntimeError: no"),
            None,
            "LOAD on any machine: torch.load refuses this",
        ),
        (  # torch makes a Counter of a text, and we do not know that
            miscalled(),
            None,
            "IS NOT KNOWN TO LOAD on a node: collections.Counter may not take the arguments",
        ),
    ],
)
def test_sentences(made: Checkpoint, version: str | None, words: str) -> None:
    assert words in said(made, version)


def test_the_window_leaves_the_machine_out_where_there_is_no_room() -> None:
    load = load_of(made := checkpoint(*ON_GPU))
    verdict = load_verdict(Judged(checkpoint=made, target=CPU_ONLY, load=load), (), "a node")
    whole = "Does not load on a node: saved on cuda:0."
    assert verdict.line(len(whole)) == whole
    assert verdict.line(len(whole) - 1) == "Does not load: saved on cuda:0."


def test_only_the_devices_that_stop_the_load_are_named() -> None:
    rows = [
        row
        for number in range(6)
        for row in (
            storage(str(number), f"cuda:{number}", 8),
            tensor(f"w{number}", device=f"cuda:{number}", storage=str(number)),
        )
    ]
    one = parse_target("cuda")
    assert said(checkpoint(*rows[:4]), target=one).endswith(": saved on cuda:1.")
    assert said(checkpoint(*rows), target=one).endswith(": saved on cuda:1-5.")
    assert said(checkpoint(*rows)).endswith(": saved on cuda:0-5.")


@table(
    ("items", "text"),
    [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcd", "a, b and 2 more")],
)
def test_lists_of_few(items: str, text: str) -> None:
    assert few(items, 2) == text


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


def test_the_three_levels_of_safety_name_what_they_rest_on() -> None:
    assert safety_sentence(load_of(asking())) == "SAFE: weights only."
    assert safety_sentence(load_of(asking("m.Net"))) == (
        "NEEDS YOUR TRUST: it uses m.Net, which must be importable."
    )
    own = asking("torch.nn.Linear", called=("__main__.make",))
    assert safety_sentence(load_of(own)) == (
        "NEEDS YOUR TRUST: it uses __main__.make, which your script must define."
    )
    data = load_of(asking("torch.Size", "torch.nn.modules.linear.Linear"))
    assert safety_sentence(data).endswith("it uses torch.nn.modules.linear.Linear, which only hold data.")
    assert safety_sentence(load_of(asking(called=("os.system",)))) == (
        "DANGEROUS: loading it can run commands: os.system."
    )
    opcode = checkpoint(safety=Safety(opcodes=("POP",), protocol=2, oddities=(), unread=()))
    assert safety_sentence(load_of(opcode)).startswith("NEEDS YOUR TRUST: torch's restricted unpickler")


def test_damage_is_said_before_ambiguity() -> None:
    cut_off = load_of(checkpoint(refusal="RuntimeError: no", notes=(Note(NoteKind.NO_DIRECTORY),)))
    assert cut_off.safety.is_unsure
    assert safety_sentence(cut_off).startswith("NEEDS YOUR TRUST: the file is damaged, so")
    shared = load_of(checkpoint(notes=(Note(NoteKind.SHARED_NAME),)))
    assert safety_sentence(shared).startswith("NEEDS YOUR TRUST: programs read different things")


def test_every_verdict_has_its_words() -> None:
    assert set(SAFETY) == set(LEVELS) == set(get_args(FileVerdict))
    assert words_of("unknown") == "unknown: not all that loading it would run could be read"
    assert shouted(words_of("dangerous")) == "DANGEROUS: loading it can run commands"


def test_what_has_no_pickle_is_not_said_to_load_with_weights_only() -> None:
    load = load_of(checkpoint(tensor("w"), format="safetensors", safety=None))
    assert safety_sentence(load) == "SAFE: it holds no pickle."
    assert load.loader == "safetensors.torch.load_file"


def test_archives_are_told_with_their_loader() -> None:
    assert said(checkpoint(*ON_GPU, format="torchscript")) == "DOES NOT LOAD on a node: saved on cuda:0."
    script = checkpoint(tensor("w"), format="torchscript")
    assert said(script) == (
        "LOADS on a node: torch.jit.load works there; torch.load does so only with weights_only=False."
    )
    assert safety_sentence(load_of(script)).startswith("NEEDS YOUR TRUST: a TorchScript program")
    evil = load_of(replace(script, globals=(GlobalUse(name="os.system", count=1),)))
    assert safety_sentence(evil) == "DANGEROUS: a pickle in it is made to run commands."


def test_loaders_that_restrict_nothing_are_as_safe_as_the_names(tmp_path: Path) -> None:
    for push, words in (
        (number(1), "safe: its pickles name nothing but tensors and plain data"),
        (call("mine.Config"), "needs your trust: its loader runs whatever the pickles name"),
        (call("os.system", text("id")), 'dangerous: loading it can run commands: os.system("id")'),
    ):
        saved = two_ranks()
        saved.value("extra", push)
        safety = judge(open_checkpoint(str(saved.write(tmp_path / "a"))))
        assert words in verdict_words(safety)
