from __future__ import annotations

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import (
    CallUse,
    Checkpoint,
    GlobalUse,
    HiddenDevice,
    HiddenPlace,
    Naming,
    OddKey,
    Safety,
)
from inspector.pickles.oddities import Oddity, OddityKind
from inspector.records import replace
from inspector.report.details import (
    FactGroup,
    file_facts,
    hidden_texts,
    look_up,
    naming_text,
    python_expression,
    tensor_facts,
    value_facts,
    written_by,
)
from inspector.report.text import format_report
from inspector.report.tree import build_tree
from inspector.safety.verdict import judge
from tests.sweep import table
from tests.unit.report.rows import checkpoint, is_harmless, optimizer, storage, tensor, value


def facts(rows: Checkpoint, index: int = 0) -> dict[str, dict[str, str]]:
    return titled(tensor_facts(rows, index, look_up(rows)))


def titled(groups: tuple[FactGroup, ...]) -> dict[str, dict[str, str]]:
    return {group.title: dict(group.facts) for group in groups}


def test_a_tensor_is_described_without_its_data() -> None:
    rows = checkpoint(
        tensor("m", "w", device="cuda:0", shape=(2, 2), stride=(2, 1), storage_offset=1, storage="7"),
        storage("7", "cuda:0", nbytes=4096, viewed_nbytes=16, file_offset=128),
    )
    assert facts(rows) == {
        "Tensor": {
            "Path": "m/w",
            "Size": "16 B",
            "Dtype": "float32",
            "Shape": "2 × 2",
            "Python": "checkpoint['m']['w']",
            "Device": "cuda:0",
            "After loading": "load_state_dict copies it to the device of your model's own tensor.",
            "Role": "parameter",
        },
        "Layout": {
            "Layout": "strided",
            "Stride": "(2, 1)",
            "Offset": "1 element",
            "Requires grad": "no",
        },
        "Storage": {
            "Key": "7",
            "Location tag": "cuda:0",
            "Stored": "4.1 KB (4,096 bytes)",
            "At byte": "128",
            "Unused": "4.1 KB",
        },
    }


def test_a_tensor_without_geometry_or_storage() -> None:
    rows = checkpoint(tensor(stride=None, storage_offset=None, requires_grad=True, nbytes=10**30))
    shown = facts(rows)
    assert set(shown) == {"Tensor", "Layout"}
    assert shown["Tensor"]["Path"] == "(root)"
    assert shown["Tensor"]["Python"] == "checkpoint"
    assert "Stride" not in shown["Layout"]
    assert "Offset" not in shown["Layout"]
    assert shown["Layout"]["Requires grad"] == "yes"
    assert shown["Tensor"]["Size"] == "1000000000000 EB"


def test_a_storage_names_its_file_where_there_are_several() -> None:
    rows = checkpoint(tensor("a", storage="0"), storage("0")._replace(part="model-1.bin"))
    assert facts(rows)["Storage"]["File"] == "model-1.bin"


def test_a_storage_that_is_not_listed_is_not_described() -> None:
    assert set(facts(checkpoint(tensor("a", storage="gone")))) == {"Tensor", "Layout"}


@pytest.mark.parametrize(("missing", "place"), [(True, "missing from the file"), (False, "compressed")])
def test_bytes_without_a_place(missing: bool, place: str) -> None:
    rows = checkpoint(tensor("a", storage="0"), storage("0", missing=missing, file_offset=None))
    assert facts(rows)["Storage"]["At byte"] == place


def test_tensors_that_share_bytes_are_named() -> None:
    rows = checkpoint(*(tensor(str(index), storage="0") for index in range(50)), storage("0", tensors=50))
    groups = tensor_facts(rows, 1, look_up(rows))
    assert groups[-1].title == "Shares its bytes with 49 tensors"
    assert [text for _, text in groups[-1].facts][:3] == ["0", "2", "3"]
    assert len(groups[-1].facts) == 40


def test_why_a_tensor_is_on_the_cpu_and_what_is_wrong_with_it() -> None:
    shown = facts(
        checkpoint(tensor("rng", role="rng", on_cpu_by_design=True, problem="it runs past\nits end"))
    )
    assert shown["Tensor"]["On the CPU"] == "by design: torch keeps this state there"
    assert shown["Tensor"]["Problem"] == r"it runs past\u000aits end"
    moved = facts(checkpoint(tensor("rng", role="rng", device="cuda:0", on_cpu_by_design=True)))
    assert "On the CPU" not in moved["Tensor"]


@table(
    ("naming", "how"),
    [
        ("names", "Certain. All agree."),
        ("order", "Nearly certain. All agree."),
        ("shape", "Very likely. All agree."),
        ("partial", "Very likely where there is a name. All agree."),
        ("unknown", "Unknown. All agree."),
    ],
)
def test_a_slot_says_how_sure_its_parameter_is(naming: Naming, how: str) -> None:
    row = tensor("o", "state", 0, "exp_avg", role="optimizer", slot="exp_avg", parameter="layer1.weight")
    rows = checkpoint(optimizer("other"), optimizer("o", naming=naming), row)
    shown = facts(rows)["Tensor"]
    assert (shown["Slot"], shown["Parameter"], shown["Certainty"]) == ("exp_avg", "layer1.weight", how)
    assert naming_text(rows.optimizers[1]) == how


def test_names_that_only_the_order_tells_are_in_the_usual_order() -> None:
    said = "Where shapes are equal, only the order tells them apart."
    assert naming_text(replace(optimizer("o", naming="order"), by_place=True)) == (
        f"In the usual order. All agree. {said}"
    )
    assert naming_text(replace(optimizer("o", naming="recipe"), by_place=True)) == (
        f"By a known recipe. All agree. {said}"
    )


def test_a_slot_without_a_name_and_an_optimizer_that_is_the_file() -> None:
    slot = {"role": "optimizer", "slot": "exp_avg"}
    inside = facts(checkpoint(optimizer(naming="unknown"), tensor("state", 0, "exp_avg", **slot)))["Tensor"]
    assert (inside["Parameter"], inside["Certainty"]) == ("unknown", "Unknown. All agree.")
    outside = facts(checkpoint(optimizer("o"), tensor("p", "exp_avg", **slot)))["Tensor"]
    assert "Certainty" not in outside


@table(
    ("keys", "expression"),
    [
        (("a", 0), "checkpoint['a'][0]"),
        (("._modules", "l"), "checkpoint._modules['l']"),
        ((".",), "checkpoint['.']"),
        ((".not plain", "x"), "getattr(checkpoint, 'not plain')['x']"),
        ((".class",), "getattr(checkpoint, 'class')"),
        (("\u00e9'\"\n",), "checkpoint['\\xe9\\'\"\\n']"),
        ((".\u00e9",), "getattr(checkpoint, '\\xe9')"),
    ],
)
def test_expression_reaches_the_tensor(keys: tuple[str | int, ...], expression: str) -> None:
    assert python_expression(tensor(*keys)) == expression


def test_no_expression_is_made_up_for_a_key_that_is_an_object() -> None:
    odd = tensor("state", OddKey("Parameter 0"), "exp_avg")
    assert python_expression(odd) == ""
    assert facts(checkpoint(odd))["Tensor"]["Python"].startswith("none: a key on the way is an object")


def test_a_value_is_described() -> None:
    assert value_facts(value("a", 1, type="str", text="hello"))[0].facts == (
        ("Path", "a/1"),
        ("Type", "str"),
        ("Value", "hello"),
    )
    assert value_facts(value())[0].facts[0] == ("Path", "(root)")


def test_a_file_is_described() -> None:
    rows = checkpoint(
        tensor("a", storage="0"),
        optimizer(),
        storage("0", nbytes=2000, viewed_nbytes=1000),
        path="a\nb.pt",
        file_nbytes=5000,
        versions=(("version", "3"), ("byteorder", "little")),
        module_class="net.Net",
        globals=(GlobalUse(name="os.system", count=1), GlobalUse(name="collections.OrderedDict", count=1200)),
        notes=(Note(NoteKind.OVERLAP),),
    )
    safety = judge(rows)
    shown = titled(file_facts(rows, safety))
    assert shown["File"] == {
        "Path": r"a\u000ab.pt",
        "Size": "5.0 KB (5,000 bytes)",
        "Container": "torch.save zip, torch 2.1 to 2.6",
        "Tensors": "1 in 1 storage",
        "Stored but unused": "1.0 KB",
        "Whole module": "net.Net",
    }
    assert shown["Versions in the file"] == {"version": "3", "byteorder": "little"}
    assert shown["Optimizers"] == {"(root)": "Nearly certain. All agree."}
    assert shown[f"Safety, by the rules of torch {safety.torch_version}"]["Verdict"] == (
        "dangerous: loading it can run commands: os.system"
    )
    assert shown["Globals that loading imports"] == {
        "os.system": "dangerous, 1 ×",
        "collections.OrderedDict": "allowed, 1,200 ×",
    }
    assert shown["Notes"] == {"": Note(NoteKind.OVERLAP).sentence}


def test_devices_outside_of_tensors_are_counted() -> None:
    rows = (("", "cuda:0"), ("a", "cuda:1"), ("b", "cuda:1"))
    made = checkpoint(
        value("t", type="global", text="torch.cuda.HalfTensor"),
        hidden_devices=tuple(
            HiddenDevice(path=path, device=device, what=HiddenPlace.DEVICE) for path, device in rows
        ),
    )
    expected = [
        ("torch.device cuda:0", "(root)"),
        ("torch.device cuda:1", "2 places"),
        ("the tensor type cuda", "t"),
    ]
    assert hidden_texts(made) == expected
    groups = {group.title: group.facts for group in file_facts(made, judge(made))}
    assert list(groups["Devices outside of tensors"]) == expected
    assert "  torch.device cuda:1, outside of tensors, 2 places" in format_report(
        made, judge(made), (), build_tree(made, {})
    )


def test_what_a_file_does_not_have_is_not_listed() -> None:
    titles = [group.title for group in file_facts(checkpoint(), judge(checkpoint()))]
    assert len(titles) == 2
    assert titles[0] == "File"
    assert titles[1].startswith("Safety")


def test_calls_are_told_with_their_arguments_and_their_place() -> None:
    uses = (
        CallUse("os.system", 'os.system("rm -rf /")', (), "x/y"),
        CallUse("", "call(...)", (), None),
        CallUse("net.Net", "net.Net()", (), ""),
    )
    rows = checkpoint(
        safety=Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=(), calls=uses, calls_made=9)
    )
    shown = titled(file_facts(rows, judge(rows)))["What weights_only=False calls"]
    assert shown["os.system"].startswith('os.system("rm -rf /") \u2013 starts programs')
    assert shown["os.system"].endswith("[x/y]")
    assert shown["(the result of a call)"].startswith("call(...) \u2013 calls the result of another call")
    assert shown["net.Net"].endswith("[the whole object]")
    assert shown[""] == "and 6 more calls"


@table(
    ("form", "versions", "written"),
    [
        ("legacy", {}, "the format of torch before 1.6"),
        ("zip", {".format_version": "1", "byteorder": "little"}, "torch 2.7 or later"),
        ("zip", {"byteorder": "little", "version": "3"}, "torch 2.1 to 2.6"),
        ("zip", {"version": "3"}, "torch 1.6 to 2.0"),
        ("zip", {"version": "2"}, "torch 1.5"),
        ("zip", {"version": "1"}, "torch 1.4"),
        ("zip", {"version": "99"}, ""),
        ("zip", {}, ""),
    ],
)
def test_who_wrote_a_file(form: str, versions: dict[str, str], written: str) -> None:
    assert written_by(checkpoint(format=form, versions=tuple(versions.items()))) == written


def test_no_fact_has_anything_invisible_in_it() -> None:
    evil = "\u202e\x1b[31m\n\ud800"
    row = tensor(evil, device=evil, slot=evil, parameter=evil, problem=evil, storage=evil)
    rows = checkpoint(
        row,
        optimizer(evil, detail=evil),
        storage(evil, evil),
        path=evil,
        versions=((evil, evil),),
        notes=(Note(NoteKind.REFUSED, (evil,)),),
        safety=Safety(
            opcodes=("STOP",),
            protocol=2,
            oddities=(Oddity(OddityKind.APPEND_ON_OTHER, 0, (evil,)),),
            unread=(evil,),
        ),
    )
    groups = (*file_facts(rows, judge(rows)), *tensor_facts(rows, 0, look_up(rows)))
    assert all(is_harmless(name + text) for group in groups for name, text in group.facts)


def test_program_is_dated_by_its_byte_order() -> None:
    for versions, written in (((("byteorder", "little"),), "torch 2.1 or later"), ((("version", "3"),), "")):
        assert written_by(checkpoint(format="torchscript", is_program=True, versions=versions)) == written


def test_a_value_is_short_and_exact_and_its_name_as_it_is() -> None:
    (group,) = value_facts(value("loss/train", type="float", text="5.813959432394e-06"))
    assert group.facts == (
        ("Path", "loss/train"),
        ("Type", "float"),
        ("Value", "5.81396e-06"),
        ("Exactly", "5.813959432394e-06"),
    )
    assert len(value_facts(value("lr", type="float", text="0.001"))[0].facts) == 3
