from __future__ import annotations

from inspector.remap.forms import Form
from inspector.session.export.kinds import first_wish, form_of, kind_of, offered_kinds, offers
from inspector.session.export.page import ExportWish
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor, value


@table(
    ("wish", "form"),
    [
        (ExportWish(), None),
        (ExportWish(exclude=" a/**  b "), Form(exclude=("a/**", "b"))),
        (ExportWish(kind="in-place", exclude="a"), None),
        (ExportWish(kind="compact", cast="float16", ema=True), Form(compact=True)),
        (ExportWish(kind="weights", cast="bfloat16"), Form(only_weights=True, cast="bfloat16")),
        (ExportWish(kind="weights", cast="int3", ema=True), Form(only_weights=True, ema=True)),
        (ExportWish(kind="safetensors"), Form(shape="safetensors")),
        (ExportWish(kind="nonsense"), None),
    ],
)
def test_each_wish_stands_for_a_form(wish: ExportWish, form: Form | None) -> None:
    assert form_of(wish) == form


def test_an_unknown_kind_is_a_copy() -> None:
    assert kind_of(ExportWish(kind="nonsense")).id == "copy"


def test_a_file_offers_what_it_can_give() -> None:
    def ids(*rows: object, **fields: object) -> list[str]:
        return [choice.id for choice in offered_kinds(checkpoint(*rows, **fields))]

    assert ids(value("a", "1")) == ["copy", "in-place"]
    weights = (tensor("model", "a.weight", storage="0", nbytes=4000), storage("0", "cpu", 4000))
    assert ids(*weights) == ["copy", "in-place", "weights", "safetensors"]
    assert ids(*weights, module_class="net.Net") == ["copy", "in-place", "state-dict", "safetensors"]
    assert ids(weights[0], storage("0", "cpu", 9000, viewed_nbytes=4000))[-1] == "compact"


def test_what_makes_no_sense_for_a_format_says_why_and_is_not_offered_first() -> None:
    rows = (tensor("a.weight", device="none", storage="0", nbytes=4000), storage("0", "none", 9000))
    for form, first, others in (
        ("safetensors", "weights", ["safetensors"]),
        ("dcp", "torch", ["weights", "safetensors"]),
    ):
        file = checkpoint(*rows, format=form)
        kinds = {choice.id: choice.why for choice in offered_kinds(file)}
        assert list(kinds) == ["copy", "in-place", first, *others], form
        assert kinds["copy"].startswith("No devices are stored here: ")
        assert kinds["in-place"] == kinds["copy"]
        assert first_wish(file).kind == first
        assert not offers("copy", file)
    folder = checkpoint(tensor("a", device="cuda:0", storage="0"), storage("0", "cuda:0"), format="folder")
    kinds = {choice.id: choice.why for choice in offered_kinds(folder)}
    assert kinds["copy"] == ""
    assert kinds["in-place"] == "A folder cannot be changed in place."


def test_a_damaged_file_is_saved_where_its_format_can_be() -> None:
    rows = (tensor("a", storage="0"), storage("0", missing=True))
    assert first_wish(checkpoint(*rows)).kind == "recover"
    assert first_wish(checkpoint(*rows, format="safetensors")).kind == "recover"
    assert first_wish(checkpoint(*rows, format="distcp")).kind == "torch"
    assert first_wish(checkpoint(*rows, format="sharded")).kind == "copy"
    alone = checkpoint(value("a", "1"), format="safetensors")
    assert first_wish(alone).kind == "copy"  # nothing is offered, and that says why
