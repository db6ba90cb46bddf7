"""Messages of load_state_dict: names and shapes read out of them, and compared with those of the file."""

from __future__ import annotations

from collections.abc import Callable

from inspector.diagnose.errors.names import read_keys, read_sizes
from inspector.diagnose.errors.paste import read_pasted
from inspector.model.findings import Fix
from tests.sweep import table
from tests.unit.diagnose.explaining import asking, explained, on
from tests.unit.report.rows import checkpoint, tensor, value


def differing(missing: tuple[str, ...] = (), unexpected: tuple[str, ...] = ()) -> str:
    parts = ["RuntimeError: Error(s) in loading state_dict for Net:"]
    for what, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            listed = ", ".join(f'"{name}"' for name in names)
            parts.append(f"\t{what} key(s) in state_dict: {listed}. ")
    return "\n".join(parts)


def mismatch(name: str, in_file: str, in_model: str) -> str:
    return (
        f"size mismatch for {name}: copying a param with shape torch.Size([{in_file}]) from checkpoint, the "
        f"shape in current model is torch.Size([{in_model}])."
    )


# --- reading ------------------------------------------------------------------------------------------------


@table(
    ("text", "missing", "unexpected"),
    [
        (differing(("a.b", "c"), ("d",)), ["a.b", "c"], ["d"]),
        (differing(unexpected=("d",)), [], ["d"]),
        (differing(("a",)) + mismatch("z", "1", "2"), ["a"], []),
        (
            'Missing key(s) in state_dict: "module.layer1.4.conv3.we\night"',
            ["module.layer1.4.conv3.weight"],
            [],
        ),
        ("Missing key(s) in state_dict: \u201ca\u201d, \u2018b\u2019", ["a", "b"], []),
        ('unexpected key "module.a" in state_dict', [], ["module.a"]),
        ("missing keys in state_dict: \"{'a', 'b'}\"", ["a", "b"], []),
        ("it does not load", [], []),
    ],
)
def test_names(text: str, missing: list[str], unexpected: list[str]) -> None:
    assert read_keys(read_pasted(text)) == (missing, unexpected)


OF_TORCH_1_0 = (
    "size mismatch for fc.weight: copying a param of torch.Size([2, 4]) from checkpoint, where the shape "
    "is torch.Size([10, 4]) in current model."
)
OF_TORCH_0_3 = (
    "While copying the parameter named fc.weight, whose dimensions in the model are torch.Size([2, 4]) "
    "and whose dimensions in the checkpoint are torch.Size([10, 4])."
)


@table(
    "text",
    [
        mismatch("fc.weight", "10, 4", "2, 4"),
        OF_TORCH_1_0,
        OF_TORCH_0_3,
        mismatch("fc.weight", "10, 4", "2, 4").replace("shape in current", "sha\npe in cur\nrent"),
        mismatch("fc.weight", "10, 4", "2, 4") * 3,
    ],
)
def test_shapes(text: str) -> None:
    assert read_sizes(read_pasted(text)) == [("fc.weight", "10 \u00d7 4", "2 \u00d7 4")]


def test_shape_of_a_number() -> None:
    assert read_sizes(read_pasted(mismatch("scale", "", "1"))) == [("scale", "scalar", "1")]


# --- names --------------------------------------------------------------------------------------------------

NAMES = ("conv.weight", "conv.bias", "fc.weight", "fc.bias")


def prefixed(prefix: str, place: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((f"{place}{prefix}{name}", "cpu") for name in NAMES)


@table(
    ("prefix", "finding"),
    [
        ("module.", "prefix-module"),
        ("_orig_mod.", "prefix-compiled"),
        ("module._orig_mod.", "prefix-module"),
        ("_orig_mod.module.", "prefix-compiled"),
    ],
)
def test_wrappers_of_the_file(prefix: str, finding: str) -> None:
    made = on(*prefixed(prefix, "model/"))
    inside = tuple(prefix + name for name in NAMES)
    for missing in (NAMES, ()):
        found = explained(differing(missing, inside), made, id_="keys-differ")
        assert (found.fits, found.finding, found.fix) == ("yes", finding, Fix(style="plain"))
        assert found.count == 4
        assert f"removeprefix('{prefix}')" in found.advice


def test_other_prefixes_of_the_file() -> None:
    found = explained(
        differing(NAMES, tuple("backbone." + name for name in NAMES)),
        on(*prefixed("backbone.")),
        id_="keys-differ",
    )
    assert (found.fits, found.fix) == ("yes", None)
    assert "what this file calls backbone.conv.weight is conv.weight in your model" in found.here


def test_wrapper_of_the_model() -> None:
    found = explained(
        differing(tuple("module." + name for name in NAMES), NAMES), on(*prefixed("")), id_="keys-differ"
    )
    assert found.advice.startswith("Load the weights before the model is wrapped")
    other = explained(
        differing(tuple("net." + name for name in NAMES), NAMES), on(*prefixed("")), id_="keys-differ"
    )
    assert "{'net.' + name.removeprefix('')" in other.advice


def test_one_beginning_for_another() -> None:
    found = explained(
        differing(tuple("model." + name for name in NAMES), tuple("net." + name for name in NAMES)),
        on(*prefixed("net.")),
        id_="keys-differ",
    )
    assert "{'model.' + name.removeprefix('net.')" in found.advice


def test_whole_checkpoint() -> None:
    made = on(*prefixed("", "state/net/"), ("opt/x", "cpu"))
    found = explained(differing(NAMES, ("state", "opt")), made, id_="keys-differ")
    assert found.advice == "Pass only that part: model.load_state_dict(checkpoint['state']['net'])."
    assert found.count == 4
    values = checkpoint(*on(*prefixed("", "net/")).tensors, value("epoch"))
    assert "checkpoint['net']" in explained(differing(NAMES, ("epoch",)), values, id_="keys-differ").advice


def test_hostile_keys_stay_literals() -> None:
    evil = 'a"]); import os; ({"'
    made = checkpoint(tensor(evil, "w"), value("epoch"))
    found = explained(differing(("w",), ("epoch",)), made, id_="keys-differ")
    assert f"checkpoint[{evil!a}]" in found.advice


def test_other_models_and_other_files() -> None:
    made = on(*prefixed(""))
    other = explained(differing(("head.weight",), ("nose.weight",)), made, id_="keys-differ")
    assert other.fits == "no"
    mixed = explained(differing(("head.weight", "fc.bias"), ("fc.weight",)), made, id_="keys-differ")
    assert (mixed.fits, mixed.paths) == ("yes", ("fc.weight",))
    assert "Not in it: 1 missing name (head.weight). In it nevertheless: fc.bias." in mixed.here
    absent = explained(differing(("head.weight",)), made, id_="keys-differ")
    assert absent.fits == "unknown"
    present = explained(differing(("fc.weight",)), made, id_="keys-differ")
    assert present.fits == "no"
    deep = explained(differing((), ("fc.weight",)), on(*prefixed("", "net/")), id_="keys-differ")
    assert "In this file, at net: 1 unexpected name." in deep.here


def test_names_that_cannot_be_read() -> None:
    found = explained("Missing key(s) in state_dict", on(*prefixed("")), id_="keys-differ")
    assert found.here.startswith("No names were found")
    assert explained(differing(("a",)), checkpoint(), id_="keys-differ").fits == "unknown"


# --- shapes -------------------------------------------------------------------------------------------------


def shaped(**shapes: tuple[int, ...]):
    return checkpoint(
        *(tensor("model", name.replace("_", "."), shape=shape) for name, shape in shapes.items())
    )


def test_shapes_of_the_file() -> None:
    text = mismatch("fc.weight", "10, 4", "2, 4") + mismatch("fc.bias", "10", "2")
    found = explained(text, shaped(fc_weight=(10, 4), fc_bias=(10,), conv=(3,)), id_="size-mismatch")
    assert (found.fits, found.paths) == ("yes", ("model/fc.weight", "model/fc.bias"))
    assert "fc.weight: 10 \u00d7 4 here, 2 \u00d7 4 in your model" in found.here
    other = explained(text, shaped(fc_weight=(7, 4)), id_="size-mismatch")
    assert (other.fits, "fc.weight is 7 \u00d7 4 in this file, not 10 \u00d7 4" in other.here) == (
        "no",
        True,
    )
    assert explained(text, shaped(head=(1,)), id_="size-mismatch").fits == "no"
    assert explained(text, checkpoint(), id_="size-mismatch").fits == "no"
    cut = explained("size mismatch for fc.weight: copying a par", shaped(fc=(1,)), id_="size-mismatch")
    assert cut.fits == "unknown"


# --- what is no state dict ----------------------------------------------------------------------------------


def test_entries_that_are_no_tensors() -> None:
    text = 'While copying the parameter named "fc.w", expected torch.Tensor or Tensor-like object from ...'
    found = explained(text, checkpoint(value("fc.w", type="list")), id_="not-a-tensor")
    assert (found.fits, found.here) == ("yes", "fc.w is a list in this file, not a tensor.")
    assert explained(text, checkpoint(tensor("fc.w")), id_="not-a-tensor").fits == "unknown"


def test_modules_given_for_state_dicts() -> None:
    text = "Expected state_dict to be dict-like, got <class 'net.Net'>."
    found = explained(text, checkpoint(module_class="net.Net", root="module"), id_="module-given")
    assert (found.fits, found.fix) == ("yes", Fix(style="plain"))  # it holds no parameters
    assert explained(text, checkpoint(), id_="module-given").fits == "no"
    assert explained(text, checkpoint(root="sequence"), id_="module-given").fits == "unknown"


# --- another file, or this one after an edit ----------------------------------------------------------------


@table(
    "edit",
    [
        lambda name: f"model.{name}",
        lambda name: name.removeprefix("net."),
        lambda name: name.replace("net.", "net.module."),
        lambda name: name.replace(".weight", ".default.weight"),
        lambda name: name[7:],
    ],
)
def test_a_file_whose_names_were_changed_is_not_acquitted(edit: Callable[[str], str]) -> None:
    names = [f"net.lora_A.{layer}.weight" for layer in ("conv", "fc", "out")]
    made = on(*((name, "cpu") for name in names))
    found = explained(differing(("x",), tuple(map(edit, names))), made, id_="keys-differ")
    assert (found.fits, found.count) == ("yes", 3)
    assert "the code changed the names" in found.here
    strange = tuple(f"block.{number}.gain" for number in range(9))
    assert explained(differing(("x",), strange), made, id_="keys-differ").fits == "no"
    some = explained(differing(("x",), (edit(names[0]), *strange)), made, id_="keys-differ")
    assert (some.fits, "it may be another file" in some.here) == ("unknown", True)


def test_a_file_that_has_what_is_missing_would_load() -> None:
    made = on(*prefixed(""))
    for prefix, fits in (("module.", "no"), ("net.", "unknown")):
        other = explained(differing(NAMES, tuple(prefix + name for name in NAMES)), made, id_="keys-differ")
        assert (other.fits, "All names that the message misses are in this file" in other.here) == (
            fits,
            True,
        )
    cut = on(*prefixed("encoder."))
    whole = tuple("encoder." + name for name in NAMES)
    found = explained(differing(whole, tuple(name[7:] for name in whole)), cut, id_="keys-differ")
    assert (found.fits, "the code changed the names" in found.here) == ("yes", True)


def test_a_part_of_a_file_that_has_the_missing_names_decides_nothing() -> None:
    found = explained(differing(("fc.weight",)), on(*prefixed("", "model/")), id_="keys-differ")
    assert (found.fits, "In it nevertheless" in found.here) == ("unknown", True)


def test_shapes_under_other_names_and_slices_of_shapes() -> None:
    text = mismatch("net.fc.weight", "16, 4", "2, 4")
    assert explained(text, shaped(fc_weight=(16, 4)), id_="size-mismatch").fits == "yes"
    assert explained(text, shaped(fc_weight=(16, 5)), id_="size-mismatch").fits == "no"
    text = mismatch("fc.weight", "16, 4", "2, 4")
    assert explained(text, shaped(fc_weight=(64, 4)), id_="size-mismatch").fits == "unknown"
    for other in ((24, 4), (64, 8), (64, 4, 1), (1, 4)):
        assert explained(text, shaped(fc_weight=other), id_="size-mismatch").fits == "no", other


def test_modules_within_a_dictionary_are_given_as_well() -> None:
    text = "Expected state_dict to be dict-like, got <class 'net.Net'>."
    made = asking("torch.nn.modules.conv.Conv2d")
    assert explained(text, made, id_="module-given").fits == "yes"
