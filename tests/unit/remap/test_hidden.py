"""Devices outside of tensors: where the rules send them, for those who ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.records import replace
from inspector.remap.describe import format_hidden
from inspector.remap.export import export_copy
from inspector.remap.files import record_path
from inspector.remap.in_place import format_undo, patch_in_place, read_undo, undo_patch
from inspector.remap.plan import (
    Plan,
    could_move,
    plan_hidden,
    plan_remap,
    rules_for_hidden,
    with_hidden,
    with_hidden_moved,
)
from inspector.remap.rules import format_rule, parse_rule
from inspector.remap.verify import compare_files
from inspector.target.wish import parse_target
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    call,
    device,
    get,
    group,
    mapping,
    name,
    put,
    stream,
    tensor,
    text,
    wrapper,
    written,
    zip_of,
)
from tests.unit.report.rows import checkpoint

FITS = "The state of a generator fits no other type of device."
CUDA_1 = device(text("cuda"), b"K\x01")


def hidden(path: str, device: str, what: HiddenPlace = HiddenPlace.DEVICE) -> HiddenDevice:
    return HiddenDevice(path=path, device=device, what=what)


ROWS = (
    hidden("a", "cuda:0"),
    hidden("b/c", "cuda:1"),
    hidden("cpu", "cpu"),
    hidden("meta", "meta"),
    hidden("odd", "?"),
    hidden("g", "cuda:1", HiddenPlace.GENERATOR),
    hidden("m", "cuda", HiddenPlace.MESH),
    hidden("p", "cuda:1", HiddenPlace.DATA_PARALLEL),
)
FILE = checkpoint(hidden_devices=ROWS)


def planned(*rules: str, of: Checkpoint = FILE) -> Plan:
    return with_hidden(of, plan_remap(of, [parse_rule(rule) for rule in rules]))


def goes(*rules: str) -> dict[str, str]:
    return {ROWS[index].path: to for index, to in planned(*rules).hidden.items()}


def test_they_follow_the_rules_for_devices_and_paths() -> None:
    for rules, expected in (
        (("cuda:1=cuda:0",), {"b/c": "cuda:0", "g": "cuda:0"}),
        (("*=cpu",), {"a": "cpu", "b/c": "cpu", "m": "cpu"}),
        (("cuda:*=mps",), {"a": "mps", "b/c": "mps", "m": "mps"}),
        (("*=cuda:0",), {"b/c": "cuda:0", "cpu": "cuda:0", "g": "cuda:0"}),
        (("path:b/**@xpu:1", "cuda:0=cpu"), {"b/c": "xpu:1", "a": "cpu"}),
        (("role:rng@cuda:0", "dtype:float32@cpu"), {}),
    ):
        assert goes(*rules) == expected, rules
    assert planned("*=cpu").texts >= {"cuda:0", "cuda:1", "cuda"}
    assert not planned("*=cpu").is_empty
    assert planned("cuda:7=cpu").is_empty


def test_what_stays_and_what_could_move_is_told() -> None:
    plain = plan_remap(FILE, [parse_rule("cuda:*=cpu")])
    assert [row.path for row in could_move(FILE, plain)] == ["a", "b/c", "m"]
    assert format_hidden(FILE, plain).splitlines() == [
        f"torch.Generator cuda:1 stays: 1 place outside of tensors. {FITS}",
        "torch.device cuda:0 stays: 1 place outside of tensors. It changes only with --hidden-devices.",
        "torch.device cuda:1 stays: 1 place outside of tensors. It changes only with --hidden-devices.",
        "DeviceMesh cuda stays: 1 place outside of tensors. It changes only with --hidden-devices.",
    ]
    lines = format_hidden(FILE, with_hidden(FILE, plain)).splitlines()
    assert lines[0] == "torch.device cuda:0 -> cpu: 1 place outside of tensors."
    assert not any("--hidden" in line for line in lines)


def test_a_target_asks_for_what_it_lacks() -> None:
    for word, expected in (
        ("cpu", ["cuda=cpu", "cuda:0=cpu", "cuda:1=cpu"]),
        ("cuda", ["cuda:1=cuda:0"]),
        ("2xcuda", []),
    ):
        assert [format_rule(rule) for rule in rules_for_hidden(FILE, parse_target(word))] == expected, word
    plan = with_hidden(FILE, plan_remap(FILE, ()), rules_for_hidden(FILE, parse_target("cuda")))
    assert {ROWS[index].path for index in plan.hidden} == {"b/c", "g"}


def test_rows_as_they_will_be() -> None:
    after = with_hidden_moved(ROWS, {0: "cpu"})
    assert (after[0].device, after[1:]) == ("cpu", ROWS[1:])
    for wrong in (-1, len(ROWS)):
        with pytest.raises(PlanError, match="devices that are not there"):
            plan_hidden(FILE, plan_remap(FILE, ()), {wrong: "cpu"})


def test_only_a_file_of_one_pickle_is_changed() -> None:
    """TorchScript would take ("cuda", 1) for "cuda", the device that is current."""
    for form in ("torchscript", "package", "tar", "safetensors"):
        other = replace(FILE, format=form)
        plain = plan_remap(other, [parse_rule("cuda:*=cpu")])
        with pytest.raises(PlanError, match="in which devices outside of tensors stay: a "):
            with_hidden(other, plain)
        assert could_move(other, plain) == ()
        assert with_hidden(other, plan_remap(other, [parse_rule("cuda:7=cpu")])).is_empty
        assert "--hidden" not in format_hidden(other, plain)


# --- in a file ----------------------------------------------------------------------------------------------

MESH = name("torch.distributed.device_mesh", "DeviceMesh") + b")\x81"
STORAGES = {"0": bytes(16)}


def mesh(kind: bytes) -> bytes:
    return MESH + mapping(_device_type=kind, name=text("cuda")) + b"b"


def generator(place: bytes) -> bytes:
    return call(name("torch._C", "Generator"), place)


def file_with(folder: Path, **items: bytes) -> tuple[Path, Checkpoint]:
    path = written(folder, zip_of(stream(mapping(**items)), STORAGES))
    return path, open_checkpoint(str(path))


def after(folder: Path, *rules: str, **items: bytes) -> list[tuple[str, str]]:
    """Change a file in place, take that back, and return what it said in between."""
    path, opened = file_with(folder, **items)
    before = path.read_bytes()
    patch_in_place(str(path), planned(*rules, of=opened))
    changed = open_checkpoint(str(path))
    if record_path(path).exists():
        undo_patch(str(path))
    assert path.read_bytes() == before
    return [(row.path, row.device) for row in changed.hidden_devices]


def test_each_kind_changes_where_it_stands_and_can_be_given_back(tmp_path: Path) -> None:
    assert after(
        tmp_path, "cuda:*=xpu:1", a=CUDA_1, b=mesh(text("cuda")), c=generator(CUDA_0), cuda=text("cuda")
    ) == [("a", "xpu:1"), ("b", "xpu"), ("c", "cuda:0")]
    assert after(tmp_path, "cuda:0=cuda:1", c=generator(CUDA_0), d=CUDA_0) == [
        ("c", "cuda:1"),
        ("d", "cuda:1"),
    ]
    assert after(tmp_path, "*=cpu", a=device(text("cuda:1"))) == [("a", "cpu")]
    assert after(tmp_path, "cuda:7=cpu", a=CUDA_1) == [("a", "cuda:1")]


def test_a_text_of_the_user_beside_a_mesh_stays(tmp_path: Path) -> None:
    kind = text("cuda") + put(7)
    path, opened = file_with(tmp_path, t=tensor(text("cpu")), a=mesh(kind), b=get(7))
    patch_in_place(str(path), planned("*=cpu", of=opened))
    changed = open_checkpoint(str(path))
    assert {row.path: row.text for row in changed.values} == {
        "a/._device_type": "cpu",
        "a/.name": "cuda",
        "b": "cuda",
    }


def test_a_device_that_a_wrapper_shares_goes_its_own_way(tmp_path: Path) -> None:
    shared = CUDA_0 + put(7)
    path, opened = file_with(tmp_path, w=wrapper(shared, i=tensor(text("cuda:0"))), d=get(7))
    plan = planned("path:w@cuda:3", "cuda:0=cpu", of=opened)
    patch_in_place(str(path), plan)
    changed = open_checkpoint(str(path))
    assert {row.device for row in changed.tensors} == {"cuda:3"}
    assert [row.device for row in changed.hidden_devices] == ["cpu"]


def test_one_object_in_two_places_has_one_device(tmp_path: Path) -> None:
    items = {"a": CUDA_0 + put(7), "b": get(7)}
    assert after(tmp_path, "*=cpu", **items) == [("a", "cpu"), ("b", "cpu")]
    path, opened = file_with(tmp_path, **items)
    with pytest.raises(PlanError, match="cuda:0 is one object in several places"):
        patch_in_place(str(path), planned("path:a@cpu", of=opened))


def test_what_is_not_written_as_a_literal_is_refused(tmp_path: Path) -> None:
    twice = group(text("_device_type"), text("cuda"))  # a list of pairs, as an OrderedDict has it
    state = call(name("collections", "OrderedDict"), b"](" + twice + b"e")
    for made in (MESH + state + b"b", generator(name("torch", "device") + group(CPU) + b"R")):
        path, opened = file_with(tmp_path, a=made)
        plan = plan_hidden(opened, plan_remap(opened, [parse_rule("*=cuda:0")]), {0: "cuda:0"})
        with pytest.raises(PlanError, match="cannot be changed"):
            patch_in_place(str(path), plan)


def test_a_copy_is_compared_with_what_was_chosen(tmp_path: Path) -> None:
    path, opened = file_with(tmp_path, a=CUDA_0, t=tensor(text("cuda:0")))
    original = written(tmp_path, path.read_bytes(), "original.pt")
    patch_in_place(str(path), planned("*=cpu", of=opened))
    rules = [parse_rule("*=cpu")]
    assert compare_files(str(path), str(original), rules, hidden=True).differences == ()
    assert compare_files(str(path), str(original)).differences == ()
    assert compare_files(str(path), str(original), rules).differences == ("Devices stored as values differ.",)


def test_an_undo_record_may_not_name_devices_that_are_not_there(tmp_path: Path) -> None:
    path, opened = file_with(tmp_path, a=CUDA_0)
    patch_in_place(str(path), planned("*=cpu", of=opened))
    record = read_undo(record_path(path))
    assert record.hidden == ((0, "cpu"),)
    for planted in (((1, "cpu"),), ((0, "mps"),), ((0, "cpu:0"),), ()):
        record_path(path).write_bytes(format_undo(replace(record, hidden=planted)))
        with pytest.raises(ExportError, match="of no change that this program makes"):
            undo_patch(str(path))
    record_path(path).write_bytes(format_undo(replace(record, hidden=(("0", "cpu"),))))
    with pytest.raises(ExportError, match="damaged"):
        undo_patch(str(path))


def keyed(tmp_path: Path, *pairs: tuple[object, object]) -> Path:
    """A file of torch with a dictionary of these keys."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "keys.pt"
    torch.save({"m": dict(pairs), "kept": [key for key, _ in pairs]}, path)
    return path


def test_devices_that_are_keys_are_found_and_changed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    cuda, other = torch.device("cuda:0"), torch.device("cuda", 1)
    path = keyed(tmp_path, (cuda, torch.ones(2)), ((other, 3), {"deep": 4}), ("plain", 5))
    opened = open_checkpoint(str(path))
    where = ['m/torch.device("cuda", 0)', "m/(torch.device(…), 3)", "kept/0", "kept/1/0"]
    assert [row.path for row in opened.hidden_devices] == where
    assert [row.what for row in opened.hidden_devices][:2] == [HiddenPlace.KEY] * 2
    plan = with_hidden(opened, plan_remap(opened, [parse_rule("cuda:0=cuda:2"), parse_rule("cuda:1=cpu")]))
    copy = tmp_path / "copy.pt"
    assert export_copy(str(path), copy, plan).moved_hidden == 4  # a key and a value are one object
    found = torch.load(copy, weights_only=True)
    keys = [torch.device("cuda:2"), (torch.device("cpu"), 3), "plain"]
    assert (list(found["m"]), found["kept"]) == (keys, keys)
    assert found["m"][keys[1]] == {"deep": 4}
    patch_in_place(str(path), with_hidden(opened, plan_remap(opened, [parse_rule("cuda:1=cuda:3")])))
    assert list(torch.load(path, weights_only=True)["m"])[1] == (torch.device("cuda:3"), 3)


def test_keys_that_would_become_one_are_not_changed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    devices = [torch.device("cuda", 0), torch.device("cuda", 1)]
    for keys in (devices, [(one, 3) for one in devices], [devices[0], torch.device("cpu")]):
        opened = open_checkpoint(str(keyed(tmp_path, *((key, 1) for key in keys))))
        with pytest.raises(PlanError, match="two keys of one dictionary would be the same device, cpu"):
            with_hidden(opened, plan_remap(opened, [parse_rule("*=cpu")]))
        assert with_hidden(opened, plan_remap(opened, [parse_rule("cuda:0=cuda:5")])).hidden
    torch.save([{devices[0]: 1}, {devices[1]: 1}], tmp_path / "two.pt")  # of two dictionaries each may be
    opened = open_checkpoint(str(tmp_path / "two.pt"))
    assert len(with_hidden(opened, plan_remap(opened, [parse_rule("*=cpu")])).hidden) == 2
