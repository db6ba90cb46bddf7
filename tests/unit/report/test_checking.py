"""The answer of `check`: what stands first, what a hostile name cannot do, and the fields of the document."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation
from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.findings import Fix, finding
from inspector.records import replace
from inspector.report.checking import Check, check_document, explanation_document, format_check
from inspector.target.call import CUT
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import LoadFailure, judge_load
from inspector.target.wish import parse_target
from tests.unit.report.rows import BLANK, checkpoint, is_harmless, storage, tensor


def check(
    made: Checkpoint,
    failure: LoadFailure | None = None,
    explanation: Explanation | None = None,
    **fields: object,
) -> Check:
    load = judge_load(made, CPU_ONLY)
    load = replace(load, failure=failure, stop=failure)
    found = {"findings": diagnose(made, load.safety, CPU_ONLY), **fields}
    return Check(checkpoint=made, target=CPU_ONLY, load=load, explanation=explanation, **found)


def test_good_file() -> None:
    good = check(checkpoint(tensor("w")))
    assert good.is_good
    assert format_check(good) == (
        "best.pth\n"
        '  LOADS on a machine without a GPU: torch.load("best.pth") works there.\n'
        "  SAFE: weights only.\n"
    )


def test_what_was_understood_of_the_target_stands_first() -> None:
    good = replace(check(checkpoint(tensor("w"))), target=parse_target("4xcuda:1"))
    assert format_check(good).startswith(
        "best.pth\n"
        "  Target: 4 NVIDIA GPUs, cuda:1 wanted.\n"
        '  LOADS on a machine with 4 NVIDIA GPUs: torch.load("best.pth") works there.\n'
    )
    assert check_document(good)["target"]["understood"] == "4 NVIDIA GPUs, cuda:1 wanted"


def test_what_does_not_fit_is_not_said_to_load() -> None:
    made = checkpoint(storage("0", "cuda:0", 10**6), tensor("w", device="cuda:0", storage="0"))
    target = parse_target("cuda@0.5mb")
    load = judge_load(made, target)
    found = diagnose(made, load.safety, target)
    bad = Check(checkpoint=made, target=target, load=load, findings=found, explanation=None)
    assert not bad.is_good
    said = " ".join(format_check(bad).split())
    takes = "torch.load takes 1.0 MB of cuda:0, which has 500 KB."
    assert f"DOES NOT FIT on a machine with 1 NVIDIA GPU of 0.5 MB: {takes}" in said
    assert said.count("which has 500 KB") == 1
    assert "too much, and a model created before takes its share" in said
    assert "Findings" not in said
    document = check_document(bad)
    assert (document["loads"], document["error"]) == (False, None)


def test_an_explanation_comes_first_then_the_file_in_a_line() -> None:
    made = checkpoint(storage("0", "cuda:0"), tensor("w", device="cuda:0", storage="0"))
    explanation = explain_error("Torch not compiled with CUDA enabled", made, CPU_ONLY)
    explanation = replace(explanation, paths=("w",))
    findings = (
        finding("cuda-unavailable", "error", "Said by the verdict", "", ["w"]),
        finding("tied-names", "note", "About the same tensor", "", ["v", "w"]),
        finding("byteorder", "note", "About another", "", ["v"]),
    )
    text = format_check(check(made, explanation=explanation, findings=findings))
    assert text.startswith("The error\n")
    line = "best.pth by itself: LOADS on a machine without a GPU"
    assert text.index("In this file:") < text.index(line) < text.index("About the same tensor")
    assert "SAFE: weights only." in text
    assert "Said by the verdict" not in text
    assert "About another" not in text
    assert "About another" in format_check(
        check(made, explanation=explanation, findings=findings), is_full=True
    )


def test_danger_is_the_first_line_whatever_is_asked() -> None:
    made = checkpoint(
        globals=(GlobalUse(name="os.system", count=1),),
        safety=replace(BLANK.safety, called=("os.system",)),
    )
    said = "  DANGEROUS: loading it can run commands: os.system."
    asked = check(made, explanation=explain_error("Torch not compiled with CUDA enabled", made, CPU_ONLY))
    assert format_check(asked).splitlines()[0] == said
    lines = judged(made).splitlines()
    assert lines[1:3] == [
        said,
        "  DOES NOT LOAD on a machine without a GPU: torch.load refuses it, and rightly.",
    ]


def judged(made: Checkpoint) -> str:
    load = judge_load(made, CPU_ONLY)
    return format_check(Check(checkpoint=made, target=CPU_ONLY, load=load, findings=(), explanation=None))


def test_a_file_that_asks_for_trust_is_answered_with_the_code() -> None:
    made = checkpoint(globals=(GlobalUse(name="m.Net", count=1),))
    load = judge_load(made, CPU_ONLY)
    found = diagnose(made, load.safety, CPU_ONLY)
    asked = Check(checkpoint=made, target=CPU_ONLY, load=load, findings=found, explanation=None)
    assert format_check(asked).splitlines()[1:-2] == [
        "  DOES NOT LOAD on a machine without a GPU: refused until 1 name is allowed.",
        "  NEEDS YOUR TRUST: it uses m.Net, which must be importable.",
        "     Load it, if you trust that code, with:",
        "import m",
        "import torch",
        "torch.serialization.add_safe_globals([m.Net])",
        'loaded = torch.load("best.pth", weights_only=True)',
    ]
    words = " ".join(format_check(asked).splitlines()[-2:]).split()
    assert " ".join(words) == (
        f"torch.load says: UnpicklingError: Weights only load failed. {CUT} Unsupported global: GLOBAL m.Net "
        f"was not an allowed global by default. {CUT} (--full shows the rest)"
    )
    whole = format_check(asked, is_full=True)
    assert "Check the documentation of torch.load to learn more" in " ".join(whole.split())
    assert "--full" not in whole
    assert "Needs your trust: it uses m.Net, which must be importable" in whole


def test_what_stops_it_after_the_refusal_is_said_too() -> None:
    rows = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
    made = checkpoint(*rows, globals=(GlobalUse(name="m.Net", count=1),))
    load = judge_load(made, CPU_ONLY)
    found = diagnose(made, load.safety, CPU_ONLY)
    asked = Check(checkpoint=made, target=CPU_ONLY, load=load, findings=found, explanation=None)
    text = format_check(asked)
    assert "refused until 1 name is allowed, and saved on cuda:0." in text
    assert 'torch.load("best.pth", map_location="cpu", weights_only=True)' in text
    assert text.count(" says: ") == 1
    whole = " ".join(format_check(asked, is_full=True).split())
    parts = ("Weights only load failed", "deserialize object on a CUDA device", "at the tensor w.")
    places = [whole.index(part) for part in parts]
    assert places == sorted(places)


def test_the_same_is_said_where_the_device_stands_before_the_name() -> None:
    rows = (storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
    made = checkpoint(*rows, globals=(GlobalUse(name="m.Net", count=1),))

    def told(shown: Checkpoint, target: Profile = CPU_ONLY) -> str:
        load = judge_load(shown, target)
        load = replace(load, failure=load.stop)
        return format_check(Check(checkpoint=shown, target=target, load=load, findings=(), explanation=None))

    assert ": refused until 1 name is allowed, and saved on cuda:0." in told(made)
    called = replace(made, safety=replace(BLANK.safety, called=("m.Net",)))
    assert ": refused without weights_only=False, and saved on cuda:0." in told(called)
    assert ": saved on cuda:0." in told(checkpoint(*rows))
    assert ": saved on cuda:0." in told(made, replace(CPU_ONLY, torch_version="2.5.1"))  # it does not ask


def test_no_function_is_offered_with_torchs_words() -> None:
    safety = replace(BLANK.safety, called=("joblib.load", "m.make"))
    text = judged(checkpoint(globals=(GlobalUse(name="m.make", count=1),), safety=safety))
    assert "GLOBAL m.make was not an allowed global" in " ".join(text.split())
    assert "safe_globals" not in text


def test_line_breaks_of_torch_are_kept_and_its_bold_type_is_not() -> None:
    failure = LoadFailure(
        finding="x", device="", storage="", message="E: \x1b[1ma\x1b[0m\n\t(1) b\n\n\x1b[2Jc"
    )
    lines = format_check(check(checkpoint(), failure), is_full=True).splitlines()
    assert lines[4:7] == ["      E: a", "      (1) b", r"      \u001b[2Jc"]


def test_every_kind_of_fix_is_a_line_of_its_own() -> None:
    made = checkpoint(storage("0", "cuda:0", 8), tensor("a'b; rm -rf *", device="cuda:0", storage="0"))
    fixes = (
        Fix(rule="path:a'b; rm -rf *@cpu"),
        Fix(style="plain"),
        Fix(option=("map_location", "'cpu'")),
        None,
    )
    findings = tuple(
        finding("id", "note", f"Title {place}", "Detail.", [], fix=fix) for place, fix in enumerate(fixes)
    )
    lines = format_check(check(made, findings=findings)).splitlines()
    assert [line for line in lines if line.startswith("     ")] == [
        "     Detail.",
        "     Write a copy with:",
        "       checkpoint-inspector remap best.pth -o best.cpu.pth --map 'path:a'\"'\"'b; rm -rf *@cpu'",
        "     Detail.",
        "     Print the code that loads it with:",
        "       checkpoint-inspector snippet best.pth --target cpu",
        "     Detail.",
        "     Load it with:",
        '       torch.load("best.pth", map_location="cpu")',
        "     Detail.",
    ]


def test_what_makes_it_load_stands_above_the_error_and_nowhere_else() -> None:
    made = checkpoint(storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
    load = judge_load(made, CPU_ONLY)
    found = diagnose(made, load.safety, CPU_ONLY)
    text = format_check(Check(checkpoint=made, target=CPU_ONLY, load=load, findings=found, explanation=None))
    line = 'torch.load("best.pth", map_location="cpu")'
    assert text.count(line) == 1
    assert text.index("SAFE:") < text.index(line) < text.index("torch.load says:")
    assert "Findings" not in text
    assert text.count("is_available()") == 1


def test_lines_stand_in_the_document() -> None:
    made = checkpoint(storage("0", "cuda:0", 8), tensor("w", device="cuda:0", storage="0"))
    (found,) = check_document(check(made))["findings"]
    assert found["fix"] == {
        "kind": "rule",
        "map": "cuda:0=cpu",
        "lines": [
            {"kind": "load", "language": "python", "text": 'torch.load("best.pth", map_location="cpu")'},
            {
                "kind": "copy",
                "language": "shell",
                "text": "checkpoint-inspector remap best.pth -o best.cpu.pth --map cuda:0=cpu",
            },
        ],
    }


def test_names_out_of_the_file_cannot_paint() -> None:
    evil = "a\x1b[31m\u202e\n/b"
    made = checkpoint(storage("0", "cuda:0"), tensor(evil, device="cuda:0", storage="0"), path=evil)
    failure = LoadFailure(finding="x", device=evil, storage="0", message=f"RuntimeError: {evil}", tensor=evil)
    findings = (finding("id", "error", evil, evil, [made.tensors[0].path], fix=Fix(rule=f"path:{evil}@cpu")),)
    text = format_check(check(made, failure, explain_error(f"KeyError: '{evil}'", made), findings=findings))
    assert is_harmless(text.replace("\n", ""))


def test_document() -> None:
    made = checkpoint(tensor("w"))
    document = check_document(check(made))
    assert (document["loads"], document["error"], document["safe"], document["findings"]) == (
        True,
        None,
        True,
        [],
    )
    assert "explanation" not in document
    explanation = explain_error("Torch not compiled with CUDA enabled", made)
    document = check_document(check(made, explanation=explanation))
    assert document["explanation"] == explanation_document(explanation)
    assert document["explanation"]["finding"] == "cuda-unavailable"
    unknown = explanation_document(explain_error("?", made))
    assert (unknown["finding"], unknown["fix"]) == (None, None)
    assert set(unknown) == set(Explanation.__slots__)


def test_other_errors_of_the_text_are_named() -> None:
    made = checkpoint(tensor("w"))
    text = "EOFError: Ran out of input\nTraceback (...):\nRuntimeError: Invalid magic number; corrupt file?"
    found = format_check(check(made, explanation=explain_error(text, made)))
    assert "Also in the text: The file is empty, or has already been read to its end." in found


def test_a_map_onto_the_wanted_device_has_to_fit() -> None:
    made = checkpoint(storage("0", "cuda:1", 10**6), tensor("w", device="cuda:1", storage="0"))

    def check(word: str) -> Check:
        target = parse_target(word)
        load = judge_load(made, target)
        found = diagnose(made, load.safety, target)
        return Check(checkpoint=made, target=target, load=load, findings=found, explanation=None)

    for word, is_good in (("2xcuda:0@0.5mb", False), ("2xcuda:0@24gb", True), ("2xcuda@24gb", True)):
        assert check(word).loads is is_good, word
    assert "DOES NOT FIT" in format_check(check("2xcuda:0@0.5mb"))
