from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import GlobalUse, Safety, Verb
from inspector.records import replace
from tests.unit.diagnose.beliefs.asking import ask, module, weights, wrong
from tests.unit.report.rows import checkpoint, optimizer, storage, tensor, value

LOADS = 'checkpoint = torch.load("best.pth", map_location="cpu")'
SNIPPET = "checkpoint-inspector snippet best.pth"


def naming(*names: str, **fields: object) -> object:
    return weights("a", globals=tuple(GlobalUse(name=name, count=1) for name in names), **fields)


def protocol(number: int) -> Safety:
    return Safety(opcodes=("STOP",), protocol=number, oddities=(), unread=())


CALLING = naming("a.b", safety=replace(protocol(2), uses=(("a.b", Verb.CALL),), called=("a.b",)))
DANGEROUS = naming("posix.system", safety=replace(protocol(2), uses=(("posix.system", Verb.CALL),)))


def test_versions_and_systems() -> None:
    new = checkpoint(tensor("a", dtype="float8_e4m3fn"))
    rows = [
        (
            "zip",
            ask(weights("a"))["same-torch-version"],
            "false",
            "Every torch since 1.6 reads it, whatever",
            LOADS,
        ),
        (
            "legacy",
            ask(weights("a", format="legacy"))["same-torch-version"],
            "false",
            "Every torch reads it, whatever",
            LOADS,
        ),
        (
            "tar",
            ask(weights("a", format="tar"))["same-torch-version"],
            "depends",
            "It is a tar checkpoint",
            "",
        ),
        ("new", ask(new)["same-torch-version"], "depends", "but float8_e4m3fn came with later versions", ""),
        ("module", ask(module())["same-torch-version"], "depends", "their classes must still fit", ""),
        (
            "names",
            ask(naming("a.B"))["same-torch-version"],
            "depends",
            "since 2.6 the default call refuses it",
            "",
        ),
        (
            "old",
            ask(weights("a"))["same-python-version"],
            "false",
            "protocol 2: every Python 3 reads it.",
            "",
        ),
        (
            "5",
            ask(weights("a", safety=protocol(5)))["same-python-version"],
            "false",
            "protocol 5: Python 3.8 and newer read it.",
            "",
        ),
        ("class", ask(module())["same-python-version"], "depends", "must be importable there.", ""),
        ("none", ask(weights("a", safety=None))["same-python-version"], "false", "There is no pickle", ""),
        ("system", ask(weights("a"))["same-system"], "false", "Nothing in it belongs", LOADS),
        ("posix", ask(naming("pathlib.PosixPath"))["same-system"], "depends", "create on Windows", ""),
        (
            "windows",
            ask(naming("pathlib._local.WindowsPath"))["same-system"],
            "depends",
            "pathlib._local.WindowsPath, which Python cannot create on Linux and macOS",
            "",
        ),
    ]
    assert wrong(rows) == []


def test_weights_only_is_loosened_for_nobody_who_need_not() -> None:
    rows = [
        ("plain", ask(weights("a"))["weights-only-false-needed"], "false", "holds nothing that", LOADS),
        (
            "allowed",
            ask(naming("argparse.Namespace"))["weights-only-false-needed"],
            "false",
            "argparse",
            SNIPPET,
        ),
        ("code", ask(CALLING)["weights-only-false-needed"], "true", "if you trust its source.", ""),
        ("dangerous", ask(DANGEROUS)["weights-only-false-needed"], "false", "Not for this file, ever. ", ""),
        (
            "other",
            ask(weights("a", format="safetensors"))["weights-only-false-needed"],
            "false",
            "torch.load does not read this file: it is",
            SNIPPET,
        ),
    ]
    assert wrong(rows) == []
    assert ask(DANGEROUS)["cpu-slower"].code == ""
    assert not [belief for belief in ask(DANGEROUS).values() if "weights_only=False" in belief.code]


def test_what_the_call_does() -> None:
    gpu = weights("a", device="cuda:0")
    half = checkpoint(tensor("a", dtype="float16", nbytes=8), tensor("b"))
    rows = [
        (
            "gpu",
            ask(gpu)["loading-doubles-memory"],
            "depends",
            "puts its tensors on cuda:0 (16 B), beside",
            LOADS,
        ),
        (
            "cpu",
            ask(weights("a"))["loading-doubles-memory"],
            "depends",
            "All of its 16 B land on the CPU",
            LOADS,
        ),
        ("same", ask(half)["cpu-changes-weights"], "false", "1 float32 tensor and 1 float16 tensor.", LOADS),
        ("none", ask(checkpoint())["cpu-changes-weights"], "false", "It holds no tensor.", ""),
        ("read", ask(weights("a"))["cpu-slower"], "false", "16 B are read from disk either way.", LOADS),
        ("copied", ask(gpu)["cpu-slower"], "false", "; 16 B of it would be copied to the GPU then.", LOADS),
        (
            "half",
            ask(half)["half-not-on-cpu"],
            "false",
            "1 tensor (8 B) are in half precision.",
            "model.float()",
        ),
        ("full", ask(gpu)["half-not-on-cpu"], "false", "Nothing in it", ""),
        ("model", ask(module())["load-returns-model"], "true", "a whole nets.Net", ""),
        (
            "in it",
            ask(checkpoint(tensor("m", "._parameters", "w")))["load-returns-model"],
            "depends",
            "a dictionary; there are whole modules in it",
            "",
        ),
        (
            "dict",
            ask(gpu)["load-returns-model"],
            "false",
            "a dictionary with 1 tensor in it",
            "model.load_state_dict",
        ),
        ("value", ask(checkpoint(root="value"))["load-returns-model"], "false", "returns a value with 0", ""),
    ]
    assert wrong(rows) == []


def test_names_and_extensions() -> None:
    rows = [
        (
            "names",
            ask(weights("a", "b"))["strict-false-fixes"],
            "false",
            "It has 2 names, first a.",
            "print(",
        ),
        ("no names", ask(module())["strict-false-fixes"], "false", "It holds no state dict.", "print("),
        (
            "prefix",
            ask(weights("module.a", "module.b"))["strict-false-fixes"],
            "false",
            "2 of its 2 names begin with `module.`: a plain model would take none",
            'removeprefix("module.")',
        ),
        (
            "compiled",
            ask(weights("_orig_mod.a"))["strict-false-fixes"],
            "false",
            "begin with `_orig_mod.`",
            'removeprefix("_orig_mod.")',
        ),
        (
            "pth",
            ask(weights("a"))["extension-matters"],
            "false",
            "This one ends with .pth and is a torch.save",
            "",
        ),
        ("bare", ask(weights("a", path="x"))["extension-matters"], "false", "This one has no extension", ""),
    ]
    assert wrong(rows) == []


def test_what_is_there_to_resume_with() -> None:
    full = checkpoint(
        tensor("r", role="rng", storage="0"),
        storage("0"),
        value("epoch"),
        value("s", "last_epoch"),
        optimizer("o"),
    )
    rows = [
        (
            "all",
            ask(full)["weights-suffice"],
            "depends",
            "optimizer, scheduler, random states and epoch.",
            "",
        ),
        (
            "some",
            ask(checkpoint(value("epoch")))["weights-suffice"],
            "depends",
            "It holds epoch; no optimizer, scheduler or random states was found.",
            "",
        ),
        (
            "none",
            ask(weights("a"))["weights-suffice"],
            "depends",
            "It holds nothing else to resume with; no",
            "",
        ),
    ]
    assert wrong(rows) == []


def test_archives_are_loaded_without_weights_only() -> None:
    answer = ask(weights("a", format="torchscript"))["weights-only-false-needed"]
    assert answer.here.startswith("torch.jit.load loads it, without such an argument; torch.load calls that")
    assert answer.truth == "false"


def test_machine_code_belongs_to_a_system() -> None:
    made = weights("a", format="pt2", notes=(Note(NoteKind.MACHINE_CODE, ("1 file, a.so",)),))
    assert ask(made)["same-system"].truth == "true"
