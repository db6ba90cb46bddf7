"""An export in another form."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.errors import (
    CancelledError,
    ContainerError,
    DamagedError,
    ExportError,
    PlanError,
    TooLargeError,
)
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import export_form as form_export
from inspector.remap import storages as form_bytes
from inspector.remap.export_form import Content, Deciding, export_form
from inspector.remap.forms import Form, LeftOut
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from tests.builders import pickles, scripts
from tests.builders.archives import archive, directory_of
from tests.sweep import table
from tests.unit.remap import samples
from tests.unit.remap.form_samples import (
    exported,
    file_of,
    mapping,
    module,
    names_in,
    numbers,
    ordered,
    tensor,
)
from tests.unit.remap.samples import nested, stream, written, zip_of

ROOT = mapping({"a": tensor("0"), "b": tensor("1"), "part": tensor("1", geometry="2;1;1")})
FORMS = [
    Form(only_weights=True),
    Form(only_weights=True, container="legacy"),
    Form(only_weights=True, compact=True),
    Form(compact=True, exclude=("b",)),
    Form(shape="safetensors"),
]


def damaged(monkeypatch: pytest.MonkeyPatch, spoil) -> None:
    """Spoils what was written before it is checked."""
    write = form_export._write

    def write_and_spoil(content, stock, target, *more) -> None:
        write(content, stock, target, *more)
        spoil(target)

    monkeypatch.setattr(form_export, "_write", write_and_spoil)


def spoil(monkeypatch: pytest.MonkeyPatch, wanted: bytes) -> None:
    """Changes the last byte of these wherever they stand in the file."""

    def change(target: int) -> None:
        data = os.pread(target, 1 << 20, 0)
        assert data.count(wanted) == 1
        os.pwrite(target, b"\xee", data.index(wanted) + len(wanted) - 1)

    damaged(monkeypatch, change)


@pytest.mark.parametrize("form", FORMS)
def test_bytes_of_the_copy_are_compared(tmp_path, monkeypatch, form) -> None:
    source = file_of(tmp_path, ROOT)
    exported(source, form)
    spoil(monkeypatch, numbers("0"))
    with pytest.raises(ExportError, match="the bytes of the copy differ from the file's: storage 0"):
        exported(source, form, "spoiled.pt")
    assert not (tmp_path / "spoiled.pt").exists()


def test_every_run_that_is_left_is_looked_at(tmp_path, monkeypatch) -> None:
    root = mapping({"a": tensor("0", geometry="0;1;1"), "b": tensor("0", geometry="3;1;1"), "c": tensor("1")})
    source = file_of(tmp_path, root)
    spoil(monkeypatch, numbers("0")[:4] + numbers("0")[12:])
    with pytest.raises(ExportError, match="differ"):
        exported(source, Form(compact=True))


def test_checking_can_be_cancelled(tmp_path, monkeypatch) -> None:
    source = file_of(tmp_path, ROOT)
    read = form_export.read_container

    def read_and_cancel(path, limits, progress):
        progress.cancel()
        return read(path, limits, progress)

    monkeypatch.setattr(form_export, "read_container", read_and_cancel)
    with pytest.raises(CancelledError):
        export_form(str(source), tmp_path / "out.pt", None, FORMS[0], Progress())
    assert not (tmp_path / "out.pt").exists()


def test_a_value_that_was_damaged_while_it_was_written_is_noticed(tmp_path, monkeypatch) -> None:
    """Character 5,000 of a text: no row shows it, and no tensor is another."""
    long = "x" * 9000
    body = samples.mapping(t=samples.tensor(samples.text("cpu")), note=samples.text(long))
    source = samples.written(tmp_path, samples.zip_of(samples.stream(body), {"0": bytes(samples.NBYTES)}))
    real = form_export.write_pickle

    def damaged(root, how) -> bytes:
        return real(root, how).replace(b"x" * 5000, b"x" * 4999 + b"y", 1)

    export_form(str(source), tmp_path / "good.pt", None, Form(container="legacy"))
    monkeypatch.setattr(form_export, "write_pickle", damaged)
    with pytest.raises(ExportError, match="not as planned: values other than tensors"):
        export_form(str(source), tmp_path / "bad.pt", None, Form(container="legacy"))
    assert not (tmp_path / "bad.pt").exists()


TRAINING = mapping(
    {
        "model": mapping(
            {"module.a": tensor("0", device="cuda:1"), "module.b": tensor("1", device="cuda:1")}
        ),
        "optimizer": mapping({"state": b"}", "param_groups": b"]"}),
        "epoch": b"K\x03",
    }
)
WEIGHTS = Form(only_weights=True)


def stored(path: Path) -> dict[str, bytes]:
    """The bytes of each tensor of a checkpoint, whose tensors view all of their storages."""
    checkpoint = open_checkpoint(str(path))
    data = path.read_bytes()
    places = {storage.key: (storage.file_offset, storage.nbytes) for storage in checkpoint.storages}
    found = {}
    for row in checkpoint.tensors:
        assert row.problem is None
        offset, nbytes = places[row.storage or ""]
        assert offset is not None
        found[row.path] = data[offset : offset + nbytes]
    return found


@table("legacy", [False, True])
@table("container", ["same", "zip", "legacy"])
def test_weights_are_copied_to_the_last_byte(tmp_path, container, legacy) -> None:
    source = file_of(tmp_path, TRAINING, legacy=legacy)
    destination, made = exported(source, replace(WEIGHTS, container=container))
    assert stored(destination) == {"a": numbers("0"), "b": numbers("1")}
    assert {row.device for row in open_checkpoint(str(destination)).tensors} == {"cpu"}
    assert (made.model, made.tensors, made.prefix, made.verified) == ("model", 2, "module.", True)
    assert (made.nbytes, made.source_nbytes) == (destination.stat().st_size, source.stat().st_size)
    assert made.format == (("legacy" if legacy else "zip") if container == "same" else container)
    assert [row.path for row in made.left_out] == ["optimizer", "epoch"]


def test_weights_go_where_the_plan_sends_them(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING)
    checkpoint = open_checkpoint(str(source))
    for rules, device in ((["cuda:1=cuda:0"], "cuda:0"), ([], "cuda:1")):
        plan = plan_remap(checkpoint, [parse_rule(rule) for rule in rules])
        for form in (WEIGHTS, Form(compact=True)):
            destination = tmp_path / "out.pt"
            export_form(str(source), destination, plan, form, overwrite=True)
            assert {row.device for row in open_checkpoint(str(destination)).tensors} == {device}


def test_gzip_is_unpacked_into_a_file_that_vanishes(tmp_path) -> None:
    plain = file_of(tmp_path, TRAINING, legacy=True)
    source = tmp_path / "in.pt.gz"
    source.write_bytes(gzip.compress(plain.read_bytes()))
    destination, made = exported(source, WEIGHTS)
    assert stored(destination) == {"a": numbers("0"), "b": numbers("1")}
    assert made.source_nbytes == source.stat().st_size
    assert names_in(tmp_path) == ["in.pt", "in.pt.gz", "out.pt"]


def test_gzip_without_end_is_refused(tmp_path, monkeypatch) -> None:
    source = tmp_path / "in.pt.gz"
    source.write_bytes(gzip.compress(file_of(tmp_path, TRAINING, legacy=True).read_bytes() + bytes(5000)))
    monkeypatch.setattr(form_export, "DEFAULT_LIMITS", Limits(inflated_nbytes=4000))
    with pytest.raises(TooLargeError, match="more than 4,000 bytes once unpacked"):
        exported(source, WEIGHTS)
    assert names_in(tmp_path) == ["in.pt", "in.pt.gz"]


def test_safetensors_straightens_what_lies_otherwise(tmp_path) -> None:
    root = mapping({"a": tensor("0", geometry="0;2,2;1,2"), "b": tensor("1")})
    destination, made = exported(file_of(tmp_path, root), Form(shape="safetensors"), "out.safetensors")
    zero = numbers("0")
    assert destination.read_bytes().endswith(zero[:4] + zero[8:12] + zero[4:8] + zero[12:] + numbers("1"))
    assert made.format == "safetensors"


def test_records_stand_in_a_folder_named_after_the_file(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING)
    for name, folder in (
        ("best.v2.pth", b"best.v2/data.pkl"),
        ("plain", b"plain/data.pkl"),
        (".pt", b".pt/data.pkl"),
        ("..pt", b"archive/data.pkl"),
        ("a\\b.pt", b"archive/data.pkl"),
        ("a\nb.pt", b"archive/data.pkl"),
    ):
        assert folder in exported(source, WEIGHTS, name)[0].read_bytes()


# --- errors -------------------------------------------------------------------------------------------------


def refused(source: Path, form: Form = WEIGHTS, **how: object) -> str:
    """Why an export does not come about; nothing is left of it."""
    before = names_in(source.parent)
    with pytest.raises((ExportError, PlanError, CancelledError, ContainerError)) as caught:
        export_form(str(source), source.with_name("out.pt"), None, form, **how)
    assert names_in(source.parent) == before
    return str(caught.value)


def test_refusals_leave_nothing_behind(tmp_path, monkeypatch) -> None:
    source = file_of(tmp_path, TRAINING)
    assert "only weights can be cast" in refused(source, Form(cast="float16"))
    assert "matches the pattern: nowhere" in refused(source, replace(WEIGHTS, exclude=("nowhere",)))
    assert "no weights are left to export" in refused(source, replace(WEIGHTS, exclude=("model/*",)))
    progress = Progress()
    progress.cancel()
    assert "cancelled" in refused(source, progress=progress)
    monkeypatch.setattr(form_bytes, "free_nbytes", lambda _: 10)
    assert "the disk has room for 10 bytes" in refused(source)


class CancelledAt(Progress):
    """Is cancelled when a stage of the work begins."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.wanted = label

    def start(self, label: str, total: int = 0, *, is_counted: bool = False) -> None:
        if label == self.wanted:
            self.cancel()
        super().start(label, total)


@table("form", [WEIGHTS, Form(compact=True), Form(shape="safetensors")])
@table("stage", ["reading", "copying", "checking the copy", "waiting for the disk"])
def test_cancelling_at_any_stage_leaves_nothing(tmp_path, form, stage) -> None:
    source = file_of(tmp_path, TRAINING)
    assert refused(source, form, progress=CancelledAt(stage)) == "cancelled"


def test_existing_files_are_not_replaced_unasked(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING)
    (tmp_path / "out.pt").write_bytes(b"mine")
    assert "the file already exists" in refused(source)
    assert "would replace the file itself" in _error(source, source)
    assert (tmp_path / "out.pt").read_bytes() == b"mine"


def _error(source: Path, destination: Path) -> str:
    with pytest.raises(ExportError) as caught:
        export_form(str(source), destination, None, WEIGHTS, overwrite=True)
    return str(caught.value)


@pytest.mark.parametrize("change", ["touch", "remove"])
def test_source_that_changes_meanwhile_is_noticed(tmp_path, monkeypatch, change) -> None:
    source = file_of(tmp_path, TRAINING)
    write = form_export._write

    def write_and_change(*arguments: object) -> None:
        write(*arguments)
        if change == "touch":
            os.utime(source, ns=(1, 1))
        else:
            source.unlink()

    monkeypatch.setattr(form_export, "_write", write_and_change)
    if change == "remove":  # it is read to its end all the same
        exported(source, WEIGHTS)
        return
    with pytest.raises(ExportError, match="changed while it was copied"):
        exported(source, WEIGHTS)
    assert not (tmp_path / "out.pt").exists()


def test_missing_bytes_are_named(tmp_path) -> None:
    source = file_of(tmp_path, TRAINING, keys="0")
    for form in (WEIGHTS, Form(compact=True), Form(shape="safetensors")):
        assert "model/module.b" in refused(source, form) or "module.b" in refused(source, form)
    exported(source, replace(WEIGHTS, exclude=("model/module.b",)))


def test_records_of_the_wrong_length_are_named(tmp_path) -> None:
    root = mapping({"a": tensor("0", numel=3), "b": tensor("1")})
    source = file_of(tmp_path, root)
    assert "not what the pickle says: a" in refused(source)
    exported(source, Form(shape="safetensors"))  # which needs the tensor's bytes alone
    longer = file_of(tmp_path, mapping({"a": tensor("0", numel=5), "b": tensor("1")}))
    assert "its bytes are not all in the file: a" in _refused_safetensors(longer)
    beyond = file_of(tmp_path, mapping({"a": tensor("0", geometry="3;2;1"), "b": tensor("1")}))
    assert "runs past its storage" in _refused_safetensors(beyond)


def _refused_safetensors(source: Path) -> str:
    return _message(lambda: exported(source, Form(shape="safetensors")))


def _message(work) -> str:
    with pytest.raises(ExportError) as caught:
        work()
    return str(caught.value)


# --- the check ----------------------------------------------------------------------------------------------


def test_copies_are_opened_again(tmp_path, monkeypatch) -> None:
    source = file_of(tmp_path, TRAINING)
    damaged(monkeypatch, lambda fd: os.pwrite(fd, b"\x00" * 30, 0) and os.ftruncate(fd, 100))
    assert "the copy cannot be read" in refused(source)
    assert not export_form(str(source), tmp_path / "out.pt", None, WEIGHTS, verify=False).verified
    assert (tmp_path / "out.pt").stat().st_size == 100


@table(
    ("other", "said"),
    [
        ({"x": tensor(), "y": tensor("1")}, "the copy is not as planned: x"),
        ({"a": tensor("0"), "b": tensor("1", numel=5)}, "a tensor of the copy is damaged: b"),
        ({"a": tensor("0")}, "the copy is not as planned: their number"),
    ],
)
def test_copies_that_are_otherwise_are_no_copies(tmp_path, monkeypatch, other, said) -> None:
    data = file_of(tmp_path, mapping(other)).read_bytes()
    source = file_of(tmp_path, TRAINING)
    damaged(monkeypatch, lambda fd: (os.ftruncate(fd, 0), os.pwrite(fd, data, 0)))
    assert said in refused(source)


# ------------------------------------------------------------------------------------------------------------
# What a form writes, decided before a byte is.


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
