from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.records import replace
from inspector.remap.describe import PlanRow, describe_plan, format_hidden, format_plan
from inspector.remap.export import export_copy
from inspector.remap.files import record_path
from inspector.remap.forms import DROPPED, KEPT, NEVER
from inspector.remap.in_place import format_undo, patch_in_place, read_undo, undo_patch
from inspector.remap.plan import (
    Plan,
    could_move,
    device_map,
    plan_for,
    plan_hidden,
    plan_remap,
    refuse_other_than_devices,
    rules_for,
    rules_for_hidden,
    rules_for_target,
    with_hidden,
)
from inspector.remap.rules import Rule, format_rule, parse_rule
from inspector.remap.verify import compare_files
from inspector.resources import demo_path
from inspector.target.profile import Profile
from inspector.target.wish import parse_target
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    call,
    checkpoint_of,
    device,
    get,
    group,
    mapping,
    name,
    nested,
    put,
    sent,
    sparse,
    storage,
    stream,
    tensor,
    text,
    wrapper,
    written,
    zip_of,
)
from tests.unit.report.rows import checkpoint

A, B, HOST = text("cuda:0"), text("cuda:1"), text("cpu")
META = call(
    name("torch._utils", "_rebuild_meta_tensor_no_storage"),
    *(name("torch", "float32"), b"K\x04\x85", b"K\x01\x85", b"\x89"),
)


def planned(body: bytes, *rules: str, move_all: bool = False) -> Plan:
    return plan_remap(checkpoint_of(stream(body)), [parse_rule(rule) for rule in rules], move_all=move_all)


def moves(body: bytes, *rules: str, move_all: bool = False) -> dict[str, str]:
    rows = checkpoint_of(stream(body)).tensors
    return {rows[index].path: to for index, to in planned(body, *rules, move_all=move_all).tensors.items()}


def adam(step: bytes, *, capturable: bool = False) -> bytes:
    group = mapping(params=b"](K\x00e", capturable=b"\x88" if capturable else b"\x89")
    state = b"}(K\x00" + mapping(step=step, exp_avg=tensor(HOST, "9")) + b"u"
    return mapping(state=state, param_groups=b"](" + group + b"e")


SCALAR = call(
    name("torch._utils", "_rebuild_tensor_v2"),
    *(storage(HOST, "1"), b"K\x00", b")", b")", b"\x89", call(name("collections", "OrderedDict"))),
)


# --- by device ----------------------------------------------------------------------------------------------


def test_tensors_and_their_storages_move() -> None:
    plan = planned(mapping(a=tensor(A, "0"), b=tensor(B, "1")), "cuda:0=cpu")
    assert plan.tensors == {0: "cpu"}
    assert plan.storages == {"0": "cpu"}
    assert plan.texts == {"cuda:0", "cuda:1"}
    assert not plan.is_empty


@table("to", ["cpu:0", "meta", "GPU 1", "cuda:999"])
def test_destinations_that_torch_refuses_are_not_planned(to: str) -> None:
    with pytest.raises(PlanError, match=r"torch refuses|not a device to map to"):
        plan_remap(checkpoint_of(stream(tensor(A))), [Rule(device="*", to=to)])


def test_what_no_row_shows_follows_the_rules_by_device() -> None:
    hidden = call(name("mine", "Thing"), b"](" + storage(A, "5") + storage(B, "6") + b"e")
    plan = planned(hidden, "cuda:0=cpu")
    assert plan.storages.items() >= {"5": "cpu"}.items()
    assert plan.by_device("cuda:0") == "cpu"
    assert plan.by_device("cuda:1") is None
    assert plan.by_device("meta") is None


# --- what stays on the CPU by design ------------------------------------------------------------------------


def test_tensors_without_data_stay_on_meta() -> None:
    assert planned(mapping(a=META), "*=cpu").is_empty
    assert planned(mapping(a=META), "path:a@cpu").is_empty


def test_the_step_of_adam_stays() -> None:
    plan = planned(adam(SCALAR), "cpu=cuda:0")
    assert plan.tensors == {1: "cuda:0"}
    assert plan.kept == (0,)
    assert plan.held == {"1"}
    assert plan.storages == {"9": "cuda:0"}


def test_a_step_that_belongs_on_the_device_moves() -> None:
    assert not planned(adam(SCALAR, capturable=True), "cpu=cuda:0").kept


def test_a_state_that_is_made_of_parts_stays_whole() -> None:
    step = wrapper(CPU, inner=SCALAR).replace(b"K\x04\x85K\x01\x85", b"))", 1)
    plan = planned(adam(step), "cpu=cuda:0")
    assert plan.tensors == {2: "cuda:0"}
    assert plan.kept == (0, 1)


NESTED = nested(*(tensor(HOST, str(key)) for key in range(4)))


@table("move_all", [False, True])
@table("rule", ["cpu=cuda:0", "path:**@cuda:0", "path:n/buffer@cuda:0", "path:n@cuda:0"])
def test_of_a_nested_tensor_only_the_buffer_moves(rule: str, move_all: bool) -> None:
    plan = planned(mapping(n=NESTED), rule, move_all=move_all)
    assert plan.tensors == {0: "cuda:0", 1: "cuda:0"}
    assert plan.storages == {"0": "cuda:0"}
    assert plan.kept == (2, 3, 4)


MESH = call(name("mine", "Mesh")) + mapping(_rank_map=tensor(HOST, "5")) + b"b"
SPEC = call(name("mine", "Spec")) + mapping(mesh=MESH) + b"b"


@table("move_all", [False, True])
@table("rule", ["cpu=cuda:0", "path:w@cuda:0", "path:w/._local@cuda:0"])
def test_of_a_distributed_tensor_the_ranks_stay(rule: str, move_all: bool) -> None:
    plan = planned(mapping(w=wrapper(CPU, _local=tensor(HOST), _spec=SPEC)), rule, move_all=move_all)
    assert plan.tensors == {0: "cuda:0", 1: "cuda:0"}
    assert plan.kept == (2,)


# --- by path ------------------------------------------------------------------------------------------------


DOUBLE = b"FloatStorage", b"DoubleStorage"
PLAIN = name("torch._utils", "_rebuild_tensor_v2")
ARGS = tensor(A, "0").removeprefix(PLAIN).removesuffix(b"R")
OWN = call(
    name("torch._tensor", "_rebuild_from_type_v2"),
    PLAIN,
    name("mine", "T"),
    ARGS,
    mapping(scale=tensor(A, "1")),
)
PARTS = mapping(s=sparse(tensor(A, "0"), tensor(A, "1")))
OF_TWO_TYPES = mapping(s=sparse(tensor(A, "0"), tensor(A, "1").replace(*DOUBLE)))
APART = mapping(w=wrapper(CUDA_0, data=tensor(A, "0"), scale=tensor(HOST, "1")))
RNG = mapping(rng_state=tensor(A).replace(b"FloatStorage", b"ByteStorage"))
RESUMED = mapping(model=mapping(w=tensor(A, "0")), optimizer=adam(SCALAR).replace(b"cpu", b"xpu"))
SLOTS = {"optimizer/state/0/step": "cpu", "optimizer/state/0/exp_avg": "cpu"}
APPLE = wrapper(device(text("mps"), b"K\x00"), inner=tensor(text("mps")))


@table(
    ("body", "rules", "expected"),
    [
        (PARTS, ["path:s/indices@cpu"], {"s": "cpu", "s/indices": "cpu", "s/values": "cpu"}),
        # Parts on other devices are another matter.
        (APART, ["path:w/.data@cuda:5"], {"w": "cuda:5", "w/.data": "cuda:5"}),
        # Attributes of a tensor go their own way.
        (mapping(t=OWN), ["path:t/.scale@cpu"], {"t/.scale": "cpu"}),
        (mapping(t=OWN), ["path:t@cpu"], {"t": "cpu", "t/.scale": "cpu"}),
        # What was moved off the CPU comes back.
        (RNG, ["*=cpu"], {"rng_state": "cpu"}),
        (RNG, ["*=cuda:3"], {"rng_state": "cuda:3"}),
        (RESUMED, ["role:optimizer@cpu"], SLOTS),
        # Parts answer to the dtype of each.
        (OF_TWO_TYPES, ["dtype:float64@cpu", "*=mps"], {"s": "cpu", "s/indices": "cpu", "s/values": "cpu"}),
        # Apple's GPU is one device by two names.
        (APPLE, ["*=mps"], {}),
        (APPLE, ["mps=cpu"], {"": "cpu", ".inner": "cpu"}),
        (APPLE, ["path:**@mps"], {}),
    ],
)
def test_what_moves_with_what(body: bytes, rules: list[str], expected: dict[str, str]) -> None:
    assert moves(body, *rules) == expected


def test_parts_cannot_be_sent_apart() -> None:
    with pytest.raises(PlanError, match="the parts of one tensor are sent to cpu and cuda:1") as error:
        planned(mapping(s=sparse(tensor(A, "0"), tensor(A, "1"))), "path:s/indices@cpu", "*=cuda:1")
    assert error.value.where == "s, s/indices, s/values"


@table("rule", ["path:w@cuda:1", "path:w/**@cuda:1", "path:w/.state/**@cuda:1"])
def test_a_sharded_tensor_moves_by_its_name_and_by_that_of_its_shard(rule: str, tmp_path: Path) -> None:
    path = CORPUS / "dist" / "sharded_tensor.pt"
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule)])
    export_copy(str(path), tmp_path / "out.pt", plan)
    assert [row.device for row in open_checkpoint(str(tmp_path / "out.pt")).tensors] == ["cuda:1", "cuda:1"]


# --- what shares bytes --------------------------------------------------------------------------------------


def test_tensors_that_share_bytes_must_agree() -> None:
    body = mapping(a=tensor(A), b=tensor(A))
    assert planned(body, "*=cpu").storages == {"0": "cpu"}
    with pytest.raises(PlanError, match="share one storage are sent to cpu and cuda:0") as error:
        planned(body, "path:a@cpu")
    assert error.value.where == "a, b"
    with pytest.raises(PlanError, match="share one storage are sent to cpu and cuda:1"):
        planned(body, "path:a@cpu", "path:b@cuda:1")


def test_two_labels_of_one_storage_are_no_trouble_unless_they_are_torn() -> None:
    # torch believes the first, except where there are no bytes to remember a storage by.
    assert planned(mapping(a=tensor(A), b=tensor(HOST)), "cuda:0=cuda:5").tensors == {
        0: "cuda:5",
        1: "cuda:5",
    }
    body = mapping(a=tensor(A, numel=0), b=tensor(HOST, numel=0), c=tensor(B, "1"))
    assert planned(body).is_empty
    assert planned(body, "cuda:0=cpu").storages == {"0": "cpu"}
    with pytest.raises(PlanError, match="share one storage"):
        planned(body, "cuda:0=cuda:5")


def test_a_tensor_that_is_sent_leaves_its_storage_alone() -> None:
    body = mapping(x=sent(tensor(HOST, "0"), text("xla:0")), y=tensor(HOST, "0"), z=tensor(HOST, "1"))
    plan = planned(body, "xla:0=cuda:0")
    assert plan.tensors == {0: "cuda:0"}
    assert not plan.storages
    assert not plan.is_empty
    assert planned(body, "path:y@cuda:1").storages == {"0": "cuda:1"}
    with pytest.raises(PlanError, match="share one storage"):
        planned(mapping(a=body, w=tensor(HOST, "0")), "path:a/*@cuda:1")


# --- targets ------------------------------------------------------------------------------------------------


def checkpoint_on(*devices: str) -> Checkpoint:
    return checkpoint_of(
        stream(mapping(**{f"t{n}": tensor(text(place), str(n)) for n, place in enumerate(devices)}))
    )


@table(
    ("target", "rules"),
    [
        ("cpu", {"cuda:0": "cpu", "cuda:3": "cpu", "GPU 1": "cpu", "mps": "cpu", "cpu:0": "cpu"}),
        ("2xcuda", {"cuda:3": "cuda:1", "GPU 1": "cpu", "mps": "cuda:0", "cpu:0": "cpu"}),
        ("mps", {"cuda:0": "mps", "cuda:3": "mps", "GPU 1": "cpu", "cpu:0": "cpu"}),
        ("cuda:0", {"cuda:3": "cuda:0", "GPU 1": "cuda:0", "mps": "cuda:0", "cpu:0": "cpu"}),
        (
            "4xcuda:1",
            {"cuda:0": "cuda:1", "cuda:3": "cuda:1", "GPU 1": "cuda:1", "mps": "cuda:1", "cpu:0": "cpu"},
        ),
        ("mps:0", {"cuda:0": "mps", "cuda:3": "mps", "GPU 1": "mps", "cpu:0": "cpu"}),
        (
            "2xcuda@cpu",
            {"cuda:0": "cpu", "cuda:3": "cpu", "GPU 1": "cpu", "mps": "cpu", "cpu:0": "cpu"},
        ),
    ],
)
def test_what_a_machine_lacks_is_folded_onto_what_it_has(target: str, rules: dict[str, str]) -> None:
    checkpoint = checkpoint_on("cuda:0", "cuda:3", "cpu", "meta", "mps", "GPU 1", "cpu:0")
    found = rules_for_target(checkpoint, parse_target(target))
    assert {rule.device: rule.to for rule in found} == rules


def test_the_other_name_of_the_wanted_device_is_the_wanted_device() -> None:
    assert rules_for_target(checkpoint_on("mps:0", "meta"), parse_target("mps:0")) == ()


# --- by role and dtype, and what Apple's GPU cannot hold ----------------------------------------------------


def test_what_apples_gpu_cannot_hold_is_named() -> None:
    body = mapping(a=tensor(A, "0"), b=tensor(A, "1").replace(*DOUBLE))
    with pytest.raises(PlanError, match=r"the Apple GPU \(mps\) cannot hold float64 tensors") as error:
        planned(body, "*=mps")
    assert error.value.where == "b"
    assert error.value.remedy == "put dtype:float64@cpu before the other rules"
    assert moves(body, "dtype:float64@cpu", "*=mps") == {"a": "mps", "b": "cpu"}
    with pytest.raises(PlanError, match="float64"):
        planned(body, "path:b@mps:0".replace(":0", ""))
    assert moves(body, "path:a@mps") == {"a": "mps"}


def test_many_of_them_are_counted() -> None:
    body = mapping(**{f"t{n}": tensor(A, str(n)).replace(*DOUBLE) for n in range(6)})
    with pytest.raises(PlanError) as error:
        planned(body, "*=mps")
    assert error.value.where == "t0, t1, t2, t3 and 2 more"


def test_a_target_with_apples_gpu_keeps_the_rest_on_the_cpu() -> None:
    body = mapping(a=tensor(A, "0"), b=tensor(A, "1").replace(*DOUBLE))
    checkpoint = checkpoint_of(stream(body))
    found = rules_for_target(checkpoint, parse_target("mps"))
    assert found == (Rule(dtype="float64", to="cpu"), Rule(device="cuda:0", to="mps"))
    assert plan_remap(checkpoint, found).tensors == {0: "mps", 1: "cpu"}
    assert rules_for_target(checkpoint, parse_target("cpu")) == (Rule(device="cuda:0", to="cpu"),)


# --- speed --------------------------------------------------------------------------------------------------


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


def planned_hidden(*rules: str, of: Checkpoint = FILE) -> Plan:
    return with_hidden(of, plan_remap(of, [parse_rule(rule) for rule in rules]))


def goes(*rules: str) -> dict[str, str]:
    return {ROWS[index].path: to for index, to in planned_hidden(*rules).hidden.items()}


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
    assert planned_hidden("*=cpu").texts >= {"cuda:0", "cuda:1", "cuda"}
    assert not planned_hidden("*=cpu").is_empty
    assert planned_hidden("cuda:7=cpu").is_empty


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

MESH_HIDDEN = name("torch.distributed.device_mesh", "DeviceMesh") + b")\x81"
STORAGES = {"0": bytes(16)}


def mesh(kind: bytes) -> bytes:
    return MESH_HIDDEN + mapping(_device_type=kind, name=text("cuda")) + b"b"


def generator(place: bytes) -> bytes:
    return call(name("torch._C", "Generator"), place)


def file_with(folder: Path, **items: bytes) -> tuple[Path, Checkpoint]:
    path = written(folder, zip_of(stream(mapping(**items)), STORAGES))
    return path, open_checkpoint(str(path))


def after(folder: Path, *rules: str, **items: bytes) -> list[tuple[str, str]]:
    """Change a file in place, take that back, and return what it said in between."""
    path, opened = file_with(folder, **items)
    before = path.read_bytes()
    patch_in_place(str(path), planned_hidden(*rules, of=opened))
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
    patch_in_place(str(path), planned_hidden("*=cpu", of=opened))
    changed = open_checkpoint(str(path))
    assert {row.path: row.text for row in changed.values} == {
        "a/._device_type": "cpu",
        "a/.name": "cuda",
        "b": "cuda",
    }


def test_a_device_that_a_wrapper_shares_goes_its_own_way(tmp_path: Path) -> None:
    shared = CUDA_0 + put(7)
    path, opened = file_with(tmp_path, w=wrapper(shared, i=tensor(text("cuda:0"))), d=get(7))
    plan = planned_hidden("path:w@cuda:3", "cuda:0=cpu", of=opened)
    patch_in_place(str(path), plan)
    changed = open_checkpoint(str(path))
    assert {row.device for row in changed.tensors} == {"cuda:3"}
    assert [row.device for row in changed.hidden_devices] == ["cpu"]


def test_one_object_in_two_places_has_one_device(tmp_path: Path) -> None:
    items = {"a": CUDA_0 + put(7), "b": get(7)}
    assert after(tmp_path, "*=cpu", **items) == [("a", "cpu"), ("b", "cpu")]
    path, opened = file_with(tmp_path, **items)
    with pytest.raises(PlanError, match="cuda:0 is one object in several places"):
        patch_in_place(str(path), planned_hidden("path:a@cpu", of=opened))


def test_what_is_not_written_as_a_literal_is_refused(tmp_path: Path) -> None:
    twice = group(text("_device_type"), text("cuda"))  # a list of pairs, as an OrderedDict has it
    state = call(name("collections", "OrderedDict"), b"](" + twice + b"e")
    for made in (MESH_HIDDEN + state + b"b", generator(name("torch", "device") + group(CPU) + b"R")):
        path, opened = file_with(tmp_path, a=made)
        plan = plan_hidden(opened, plan_remap(opened, [parse_rule("*=cuda:0")]), {0: "cuda:0"})
        with pytest.raises(PlanError, match="cannot be changed"):
            patch_in_place(str(path), plan)


def test_a_copy_is_compared_with_what_was_chosen(tmp_path: Path) -> None:
    path, opened = file_with(tmp_path, a=CUDA_0, t=tensor(text("cuda:0")))
    original = written(tmp_path, path.read_bytes(), "original.pt")
    patch_in_place(str(path), planned_hidden("*=cpu", of=opened))
    rules = [parse_rule("*=cpu")]
    assert compare_files(str(path), str(original), rules, hidden=True).differences == ()
    assert compare_files(str(path), str(original)).differences == ()
    assert compare_files(str(path), str(original), rules).differences == ("Devices stored as values differ.",)


def test_an_undo_record_may_not_name_devices_that_are_not_there(tmp_path: Path) -> None:
    path, opened = file_with(tmp_path, a=CUDA_0)
    patch_in_place(str(path), planned_hidden("*=cpu", of=opened))
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


@pytest.mark.torch
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


@pytest.mark.torch
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


MPS = Profile(id="mps", label="a Mac", accelerators=(("mps", 1),))


def no_probe() -> Profile:
    raise AssertionError


def test_a_rule_that_matches_nothing_is_told_before_a_machine_is_probed() -> None:
    with pytest.raises(PlanError, match="matches nothing"):
        rules_for(open_checkpoint(str(demo_path())), (parse_rule("xpu:0=cpu"),), no_probe)


def test_what_else_moves_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cpu")))), {"0": bytes(16)}))
    hidden = open_checkpoint(str(path))
    assert plan_for(hidden, (), None).hidden == {}
    assert plan_for(hidden, (), None, hidden=True).hidden == {0: "cpu"}
    assert plan_for(hidden, (), lambda: MPS, hidden=True).hidden == {0: "mps"}
    demo = open_checkpoint(str(demo_path()))
    every = (parse_rule("*=cuda:0"),)
    assert plan_for(demo, every, None).kept
    assert not plan_for(demo, every, None, move_all=True).kept


def test_loading_code_maps_devices_only() -> None:
    demo = open_checkpoint(str(demo_path()))
    said = (parse_rule("cuda:1=cuda:0"),)
    refuse_other_than_devices(said)
    assert device_map(demo, said) == (("cuda:1", "cuda:0"),)
    with pytest.raises(PlanError, match="not paths"):
        refuse_other_than_devices((*said, parse_rule("path:model/**@cpu")))
    with pytest.raises(PlanError, match="matches nothing"):
        device_map(demo, (parse_rule("xpu:1=cpu"),))


def described(body: bytes, *rules: str) -> tuple[PlanRow, ...]:
    checkpoint = checkpoint_of(stream(body))
    return describe_plan(checkpoint, plan_remap(checkpoint, [parse_rule(rule) for rule in rules]))


def test_every_tensor_of_the_demo_stands_in_one_row() -> None:
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_remap(checkpoint, [parse_rule("*=cuda:0")])
    rows = describe_plan(checkpoint, plan)
    assert sum(row.tensors for row in rows) == len(checkpoint.tensors)
    assert sum(row.tensors for row in rows if row.what == "moves") == len(plan.tensors)
    assert sum(row.tensors for row in rows if row.what == "kept") == len(plan.kept)
    order = ["moves", "kept", "stays"]
    assert [row.what for row in rows] == sorted((row.what for row in rows), key=order.index)
    why = {row.role: row.why for row in rows if row.what == "kept"}
    assert why["rng"] == "torch requires the state of random number generators to be on the CPU."
    assert "unless the optimizer is capturable or fused" in why["optimizer"]
    lines = format_plan(rows).splitlines()
    assert len(lines) == len(rows)
    assert lines[0].startswith("cuda:1 -> cuda:0: ")
    assert lines[0].endswith("By the rule *=cuda:0.")
    assert any(line.startswith("cpu stays: rng, ") for line in lines)


def test_the_first_rule_that_applies_is_the_reason() -> None:
    body = mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1"), c=tensor(text("cuda:2"), "2"))
    rows = described(body, "path:a@cpu", "dtype:float32@mps")
    assert [(row.device, row.to, row.why, row.examples) for row in rows] == [
        ("cuda:0", "cpu", "By the rule path:a@cpu.", ("a",)),
        ("cuda:1", "mps", "By the rule dtype:float32@mps.", ("b",)),
        ("cuda:2", "mps", "By the rule dtype:float32@mps.", ("c",)),
    ]
    assert [row.why for row in described(body, "cuda:0=cpu")] == [
        "By the rule cuda:0=cpu.",
        "No rule sends it elsewhere.",
        "No rule sends it elsewhere.",
    ]


def test_what_goes_along_and_what_stays_for_other_reasons() -> None:
    body = mapping(s=sparse(tensor(text("cuda:0"), "8"), tensor(text("cuda:0"), "9")), m=META, n=NESTED)
    rows = described(body, "path:s/values@cpu", "cpu=cuda:1")
    whys = {row.why for row in rows}
    assert whys >= {"It belongs to a tensor that moves.", "It has no data."}
    assert "torch keeps this on the CPU wherever the rest is." in whys


def test_hostile_names_are_harmless() -> None:
    bad = call(name("collections", "OrderedDict"))
    body = b"}(" + text("\x1b[2J\u202e") + tensor(text("cuda:0")) + text("b") + bad + b"u"
    (row,) = described(body, "*=cpu")
    assert row.examples == ("\\u001b[2J\\u202e",)


def test_of_another_form_what_is_written_alone() -> None:
    checkpoint = open_checkpoint(str(demo_path()))
    plan = plan_remap(checkpoint, [parse_rule("*=cpu")])
    fates = bytes([KEPT, *[DROPPED, NEVER] * len(checkpoint.tensors)])
    (row,) = describe_plan(checkpoint, plan, fates)
    assert row.examples == (checkpoint.tensors[0].path,)
