from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.errors import DamagedError, ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.remap.export_form import Content, Deciding
from inspector.remap.forms import Form, LeftOut
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from tests.builders import pickles, scripts
from tests.builders.archives import archive, directory_of
from tests.sweep import table
from tests.unit.remap.form_samples import file_of, mapping, module, ordered, tensor
from tests.unit.remap.samples import nested, stream, written, zip_of

STATE = mapping({"net.a": tensor("0"), "net.b": tensor("1")})


def decide(path: Path, form: Form, *rules: str) -> Content:
    container = read_container(str(path), DEFAULT_LIMITS, Progress())
    checkpoint = build_checkpoint(container)
    plan = plan_remap(checkpoint, [parse_rule(rule) for rule in rules]) if rules else None
    return Deciding(
        container=container, checkpoint=checkpoint, form=form, plan=plan, progress=Progress()
    ).decide()


def names(content: Content) -> list[str]:
    return [key for key, _ in read_pickle(content.pickle).root.pairs]


def test_what_lost_its_directory_is_recovered_first(tmp_path) -> None:
    storages = {"0": bytes(8), "1": bytes(8)}
    data = archive(pickles.state_dict(**{f"t{key}": whole(key) for key in storages}), storages)
    path = written(tmp_path, data[: directory_of(data)])
    for form in (Form(only_weights=True), Form(compact=True, exclude=("t1",))):
        with pytest.raises(ExportError, match="the zip has no directory") as caught:
            decide(path, form)
        assert caught.value.remedy == "recover what is intact, and export from that"


def whole(key: str) -> bytes:
    return pickles.tensor(pickles.storage(key, numel=2), 2)


def test_what_torch_keeps_beside_the_names_stays(tmp_path) -> None:
    root = ordered({"module.a": tensor("0"), "module.b": tensor("1")}, ordered({"": b"}", "module": b"}"}))
    content = decide(file_of(tmp_path, root), Form(only_weights=True))
    state = pickles.plain(read_pickle(content.pickle).root.state)
    made = ("reduce", ("global", "collections.OrderedDict"), (), {"pairs": [("", ("dict", []))]})
    assert state == ("dict", [("_metadata", made)])


def test_prefix_is_removed_where_the_names_stand(tmp_path) -> None:
    metadata = ordered({"": b"}", "net.a": b"}"})
    root = mapping({"model": ordered({"net.a": tensor("0"), "net.b": tensor("1")}, metadata), "lr": b"K\x01"})
    content = decide(file_of(tmp_path, root), Form(strip_prefix="net."))
    model = read_pickle(content.pickle).root.pairs[0][1]
    assert [key for key, _ in model.pairs] == ["a", "b"]
    assert [key for key, _ in model.state.pairs[0][1].pairs] == ["", "a"]
    assert (content.prefix, content.model, names(content)) == ("net.", "model", ["model", "lr"])


def test_prefix_of_what_is_left_counts(tmp_path) -> None:
    root = mapping({"model": mapping({"net.a": tensor("0"), "net.b": tensor("1"), "n": tensor("0")})})
    source = file_of(tmp_path, root)
    with pytest.raises(PlanError, match="1 names do not begin with"):
        decide(source, Form(strip_prefix="net."))
    assert decide(source, Form(strip_prefix="net.", exclude=("model/n",))).prefix == "net."


def test_names_of_whole_modules_cannot_be_changed(tmp_path) -> None:
    source = file_of(tmp_path, module({"net.a": tensor("0")}))
    with pytest.raises(PlanError, match="--format state-dict"):
        decide(source, Form(strip_prefix="net."))


def test_safetensors_names_what_it_cannot_hold(tmp_path) -> None:
    root = mapping({"a": tensor("0"), "q": tensor("1", cls="torch.QInt32Storage")})
    with pytest.raises(ExportError, match="safetensors cannot hold all of the weights: q is qint32"):
        decide(file_of(tmp_path, root), Form(shape="safetensors"))


def test_safetensors_of_storages_that_are_gone(tmp_path) -> None:
    source = file_of(tmp_path, mapping({"a": tensor("0"), "b": tensor("1")}), keys="0")
    with pytest.raises(ExportError, match="not all in the file: b"):
        decide(source, Form(shape="safetensors"))


@pytest.mark.parametrize(
    "root",
    [
        mapping({"n": nested(tensor("0"), tensor("1"), tensor("0"), tensor("1"))}),
        mapping({"g": pickles.call("torch._C.Generator"), "t": tensor("0")}),
    ],
)
def test_legacy_files_give_data_too_late_for_some(tmp_path, root) -> None:
    with pytest.raises(ExportError, match="from legacy files"):
        decide(file_of(tmp_path, root), Form(container="legacy"))
    assert decide(file_of(tmp_path, root, legacy=True), Form(container="legacy")).format == "legacy"


@table(
    "form",
    [
        Form(container="legacy"),
        Form(shape="safetensors"),
        Form(only_weights=True, cast="float16"),
    ],
)
def test_only_zip_files_say_how_numbers_are_stored(tmp_path, form) -> None:
    data = zip_of(stream(STATE), {"0": bytes(16), "1": bytes(16)}, byteorder=b"big")
    source = written(tmp_path, data)
    with pytest.raises(ExportError, match="big-endian"):
        decide(source, form)
    assert decide(source, Form(only_weights=True)).byteorder == "big"


def test_storages_that_nothing_views_are_named_by_their_key(tmp_path) -> None:
    hidden = mapping({"x": pickles.call("mine.Thing", pickles.storage("7\x1b"), b"K\x01"), "t": tensor("0")})
    source = file_of(tmp_path, hidden)
    checkpoint = open_checkpoint(str(source))
    deciding = Deciding(
        container=read_container(str(source), DEFAULT_LIMITS, Progress()),
        checkpoint=checkpoint,
        form=Form(),
        plan=None,
        progress=Progress(),
    )
    assert deciding._owner("0") == "t"
    assert deciding._owner("9\x1b") == "storage 9\\u001b"


def shared(*, first: bytes) -> bytes:
    """Two entries that are one dictionary, and a third one."""
    return (
        b"}("
        + pickles.text("a")
        + first
        + b"q\x64"
        + pickles.text("b")
        + b"h\x64"
        + pickles.text("c")
        + tensor("1")
        + b"u"
    )


@pytest.mark.parametrize("pattern", ["a/x", "b/x"])
def test_what_is_shared_is_left_out_everywhere_and_each_place_is_named(tmp_path, pattern) -> None:
    root = shared(first=mapping({"x": tensor("0"), "y": pickles.number(1)}))
    found = decide(file_of(tmp_path, root), Form(exclude=(pattern,)))
    rows = {row.path: row for row in found.left_out}
    assert rows.keys() == {"a/x", "b/x"}
    other = "b/x" if pattern == "a/x" else "a/x"
    assert rows[pattern].why == "left out on request"
    assert rows[other].why == f"the same entry of one object as {pattern}"
    assert sum(row.tensors for row in found.left_out) == 1
    assert [piece.source for piece in found.pieces] == ["1"]


def test_an_entry_whose_value_stands_elsewhere_too_loses_no_tensor(tmp_path) -> None:
    path = file_of(tmp_path, shared(first=mapping({"x": tensor("0")})))
    found = decide(path, Form(exclude=("a",)))
    assert found.left_out == (LeftOut("a", "left out on request", 0, 0, is_asked=True),)
    assert [piece.source for piece in found.pieces] == ["0", "1"]
    assert len(found.expected) == 2


@table("form", [Form(compact=True), Form(only_weights=True), Form(shape="safetensors")])
def test_what_readers_differ_about_is_not_written_again(tmp_path, form) -> None:
    root = mapping({"a": tensor("0"), "n": pickles.op("INT", b"010\n")})
    with pytest.raises(DamagedError, match="programs read differently"):
        decide(file_of(tmp_path, root), form)


def test_program_is_copied_as_it_is_or_its_weights_are_taken(tmp_path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(scripts.script())
    with pytest.raises(PlanError, match="a program is copied as it is"):
        decide(path, Form(compact=True))
    content = decide(path, Form(shape="state-dict"))
    assert names(content) == ["weight", "mean", "child.b"]
    assert [row.path for row in content.left_out] == ["kept"]
