from __future__ import annotations

import array
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.deepspeed import StatesFile, more_files, states_files, tags_of
from inspector.containers.deepspeed_joining import (
    flat_of,
)
from inspector.containers.notes import NoteKind
from inspector.containers.opening import open_path, read_container
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import StorageReader
from inspector.errors import CheckpointError, NotACheckpointError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.pickles.values import Call, Dict
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders import legacy
from tests.builders.dcp import saved_value, saved_zip, size
from tests.builders.deepspeed import mapping, model_file, optim_file, shapes, vector, write, zero2
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    list_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.builders.scripts import evil
from tests.sweep import table

MODEL = "mp_rank_00_model_states.pt"
FIRST, SECOND = (f"zero_pp_rank_{dp}_mp_rank_00_optim_states.pt" for dp in range(2))


def read(folder: Path) -> tuple[Container, Checkpoint, dict[str, list[float]]]:
    """The folder, its rows, and the elements of each tensor."""
    with open_path(str(folder)) as source:
        container = read_container(source)
        checkpoint = build_checkpoint(container)
        reader = StorageReader(container, source)
        found = {}
        for row in checkpoint.tensors:
            if row.storage in container.stored:
                data = reader.read(row.storage, 4 * (row.storage_offset or 0), row.nbytes)
                found[row.path] = list(array.array("f", data))
    return container, checkpoint, found


def faults(container: Container) -> list[str]:
    return [note.values[0] for note in container.notes if note.kind is NoteKind.UNJOINED]


def kinds(container: Container) -> set[NoteKind]:
    return {note.kind for note in container.notes}


def test_weights_and_slots_are_joined(tmp_path: Path) -> None:
    container, checkpoint, found = read(write(tmp_path / "x", zero2()))
    assert found["fp32/a"] == [0, 1, 2, 3]
    assert found["fp32/b"] == [4, 5, 6]
    assert found["optimizer/state/b/exp_avg"] == [-4, -5, -6]
    assert {row.path: row.shape for row in checkpoint.tensors} == {
        "fp32/a": (2, 2),
        "fp32/b": (3,),
        "optimizer/state/a/exp_avg": (2, 2),
        "optimizer/state/b/exp_avg": (3,),
    }
    assert [(row.slot, row.parameter) for row in checkpoint.tensors[2:]] == [
        ("exp_avg", "a"),
        ("exp_avg", "b"),
    ]
    # The bytes of vectors are counted once, as those of the parameters.
    assert {row.key for row in checkpoint.storages} == {"fp32/a", "fp32/b", "exp_avg/a", "exp_avg/b"}
    assert container.format == "deepspeed"
    assert kinds(container) == {NoteKind.TAG}


def test_groups_paddings_and_alignment_are_skipped(tmp_path: Path) -> None:
    padded = {"param_alignment_paddings": list_(list_(number(1), number(0)), list_(NONE))}
    files = {
        MODEL: model_file([{"a": (2,), "b": (1,)}, {"c": (3,)}]),
        FIRST: optim_file([[0, 1], [7, 8]], group_paddings=list_(number(0), NONE), **padded),
        SECOND: optim_file([[9, 3], [5]], group_paddings=list_(number(0)), **padded),
    }
    _, _, found = read(write(tmp_path / "x", files))
    assert (found["fp32/a"], found["fp32/b"], found["fp32/c"]) == ([0, 1], [3], [7, 8, 5])


def zero3(**changed: bytes) -> dict[str, bytes]:
    def model(frozen: list[float]) -> bytes:
        return model_file(
            [{"a": (3,)}, {"b": (2, 2)}],
            {"f": array.array("f", frozen).tobytes()},
            frozen_param_shapes=shapes({"f": (3,)}),
            frozen_param_fragments=mapping(f=vector("f", frozen)),
        )

    return {
        "zero_pp_rank_0_mp_rank_00_model_states.pt": model([20, 21]),
        "zero_pp_rank_1_mp_rank_00_model_states.pt": model([22, 0]),
        FIRST: optim_file([[0, 1], [10, 11]], stage=3),
        SECOND: optim_file([[2, 0], [12, 13]], stage=3),
        **changed,
    }


def test_each_parameter_of_zero_3_is_joined(tmp_path: Path) -> None:
    container, _, found = read(write(tmp_path / "x", zero3()))
    assert (found["fp32/a"], found["fp32/b"], found["fp32/f"]) == ([0, 1, 2], [10, 11, 12, 13], [20, 21, 22])
    assert found["optimizer/state/b/exp_avg"] == [-10, -11, -12, -13]
    assert kinds(container) == {NoteKind.TAG, NoteKind.EMPTIED}
    # A sub-group may hold the end of a parameter and the beginning of the next.
    divided = {
        FIRST: optim_file([[0], [1, 10, 11]], stage=3),
        SECOND: optim_file([[2], [0, 12, 13]], stage=3),
    }
    _, _, found = read(write(tmp_path / "y", zero3(**divided)))
    assert (found["fp32/a"], found["fp32/b"]) == ([0, 1, 2], [10, 11, 12, 13])


def test_buffers_frozen_and_tied_parameters_stand_beside_them(tmp_path: Path) -> None:
    data = {"m": array.array("f", [7, 8]).tobytes(), "f": array.array("f", [1, 2]).tobytes()}
    model = model_file(
        [{"a": (2, 2), "b": (3,)}],
        data,
        module=mapping(mean=vector("m", [7, 8])),
        buffer_names=list_(text("mean"), text("missing"), number(3)),
        frozen_param_shapes=shapes({"f": (2,), "gone": (1,)}),
        frozen_param_fragments=mapping(f=vector("f", [1, 2])),
        shared_params=dict_((text("c"), text("a")), (text("d"), text("nothing")), (number(1), text("a"))),
    )
    _, checkpoint, found = read(write(tmp_path / "x", zero2(**{MODEL: model})))
    assert found["fp32/c"] == [0, 1, 2, 3]
    assert (found["fp32/mean"], found["fp32/f"]) == ([7, 8], [1, 2])
    assert [row.path for row in checkpoint.tensors if row.path.startswith("fp32/")] == [
        "fp32/mean",
        "fp32/f",
        "fp32/a",
        "fp32/b",
        "fp32/c",
    ]
    listed = model_file(
        [{"a": (2, 2), "b": (3,)}], shared_params=list_(list_(text("c"), text("b")), list_(NONE))
    )
    _, _, found = read(write(tmp_path / "y", zero2(**{MODEL: listed})))
    assert found["fp32/c"] == [4, 5, 6]


def test_damaged_frozen_parameters_are_left_out(tmp_path: Path) -> None:
    other = model_file([{"a": (3,)}, {"b": (2, 2)}], frozen_param_shapes=shapes({"f": (3,)}))
    changed = {"zero_pp_rank_1_mp_rank_00_model_states.pt": other}
    _, _, found = read(write(tmp_path / "x", zero3(**changed)))
    assert "fp32/f" not in found
    odd = model_file([{"a": (2, 2), "b": (3,)}], frozen_param_shapes=mapping(f=number(3)))
    _, _, found = read(write(tmp_path / "y", zero2(**{MODEL: odd})))
    assert "fp32/f" not in found


def test_ranks_that_saved_on_devices_of_their_own(tmp_path: Path) -> None:
    files = zero2(
        **{
            FIRST: optim_file([[0, 1, 2, 3, 4]], location="cuda:0"),
            SECOND: optim_file([[5, 6, 0]], location="cuda:1"),
        }
    )
    container, checkpoint, _ = read(write(tmp_path / "x", files))
    assert {row.path: row.device for row in checkpoint.tensors if row.path.startswith("fp32")} == {
        "fp32/a": "cuda:0",
        "fp32/b": NO_DEVICE,
    }
    assert NoteKind.SEVERAL_DEVICES in kinds(container)
    third = zero3(**{FIRST: optim_file([[0, 1], [10, 11]], stage=3, location="cuda:0")})
    _, checkpoint, _ = read(write(tmp_path / "y", third))
    assert {row.device for row in checkpoint.tensors if row.path in {"fp32/a", "fp32/b"}} == {NO_DEVICE}


@table(
    ("changed", "why"),
    [
        ({SECOND: None}, "2 ranks saved their part of the optimizer, and 1 of them are there"),
        ({MODEL: model_file([{"a": (2, 2), "b": (33,)}])}, "not as long as the parameters"),
        ({MODEL: model_file([{"a": (2, 2)}, {"b": (3,)}])}, "not as long as the parameters"),
        ({MODEL: model_file([])}, "does not say the shapes"),
        ({MODEL: saved_value(dict_())}, "does not say the shapes"),
        ({MODEL: saved_value(mapping(param_shapes=list_(mapping(a=number(3)))))}, "does not say the shapes"),
        ({MODEL: None}, "does not say the shapes"),
        ({SECOND: optim_file([[5, 6], [7]])}, "how many groups"),
        ({SECOND: optim_file([])}, "no vector of weights"),
        ({SECOND: saved_value(dict_())}, "no vector of weights"),
        ({FIRST: saved_value(dict_())}, "no state of ZeRO"),
        (
            {
                SECOND: saved_value(
                    mapping(optimizer_state_dict=mapping(single_partition_of_fp32_groups=list_(number(3))))
                )
            },
            "no vector of weights",
        ),
    ],
)
def test_what_cannot_be_joined_is_said(changed: dict[str, bytes | None], why: str, tmp_path: Path) -> None:
    files = {name: data for name, data in {**zero2(), **changed}.items() if data is not None}
    container, checkpoint, _ = read(write(tmp_path / "x", files))
    assert why in faults(container)[0]
    assert not any(row.path.startswith("fp32/") for row in checkpoint.tensors)


def test_zero_3_that_does_not_add_up(tmp_path: Path) -> None:
    container, _, _ = read(write(tmp_path / "x", zero3(**{FIRST: optim_file([[0, 1], [10]], stage=3)})))
    assert "not as long as" in faults(container)[0]


def test_folders_without_zero_are_listed_as_they_are(tmp_path: Path) -> None:
    container, checkpoint, _ = read(write(tmp_path / "x", {MODEL: model_file([{"a": (2,)}])}))
    assert faults(container) == []
    assert checkpoint.root == "mapping"


def test_tensor_parallel_ranks_are_not_merged(tmp_path: Path) -> None:
    files = zero2()
    files |= {name.replace("mp_rank_00", "mp_rank_01"): data for name, data in files.items()}
    container, checkpoint, _ = read(write(tmp_path / "x", files))
    assert NoteKind.TENSOR_PARALLEL in kinds(container)
    paths = {row.path for row in checkpoint.tensors}
    assert {"mp_rank_00/fp32/a", "mp_rank_01/fp32/a"} <= paths
    assert not any(path.startswith("fp32/") for path in paths)
    assert len({row.storage for row in checkpoint.tensors}) == len(checkpoint.tensors)


def test_latest_says_which_folder_is_meant(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", zero2())
    write(tmp_path / "y", zero2(), "global_step10")
    (tmp_path / "y" / "global_step10").rename(folder / "global_step10")
    container, _, _ = read(folder)
    assert [note.values for note in container.notes if note.kind is NoteKind.TAG] == [
        ("global_step1", "1 other")
    ]
    assert open_checkpoint(str(folder / "latest")).format == "deepspeed"
    assert open_checkpoint(str(folder / "global_step10")).format == "deepspeed"
    (folder / "latest").unlink()
    container, _, _ = read(folder)
    assert [note.values[0] for note in container.notes if note.kind is NoteKind.TAG] == ["global_step10"]


@table("tag", ["../y", "/etc", "", "missing", "global_step1/..", "x" * 5000, "a\0b"])
def test_latest_leads_nowhere_else(tag: str, tmp_path: Path) -> None:
    write(tmp_path / "y", zero2())
    folder = write(tmp_path / "x", zero2())
    (folder / "latest").write_text(tag)
    with pytest.raises(NotACheckpointError, match="the file latest names a folder that is not here"):
        open_checkpoint(str(folder))


def test_files_of_older_releases(tmp_path: Path) -> None:
    files = {name.replace("_optim", "optim"): data for name, data in zero2().items()}
    files[MODEL] = legacy.checkpoint(stream(mapping(param_shapes=list_(shapes({"a": (2, 2), "b": (3,)})))))
    _, _, found = read(write(tmp_path / "x", files))
    assert found["fp32/b"] == [4, 5, 6]


def test_what_the_files_run_is_judged(tmp_path: Path) -> None:
    own = call("deepspeed.runtime.zero.config.ZeroStageEnum", number(2))
    for extra, verdict in ((own, "weights-only"), (call("os.system", text("id")), "dangerous")):
        files = zero2(**{SECOND: optim_file([[5, 6, 0]], extra=extra)})
        assert judge(open_checkpoint(str(write(tmp_path / verdict, files)))).verdict == verdict
    files = zero2(**{SECOND: saved_value(call("os.system", text("id")))[:-40]})
    with pytest.raises(CheckpointError) as raised:
        open_checkpoint(str(write(tmp_path / "z", {**files, FIRST: saved_value(b"")})))
    assert raised.value.programs is not None


def test_stages_are_told_by_their_names_where_they_are_not_said(tmp_path: Path) -> None:
    files = zero2(**{FIRST: optim_file([[0, 1, 2, 3, 4]], zero_stage=text("?"), partition_count=NONE)})
    assert read(write(tmp_path / "x", files))[2]["fp32/b"] == [4, 5, 6]
    third = optim_file(
        [[0, 1], [10, 11]], stage=3, zero_stage=tuple_(), partition_count=list_(number(2), NONE)
    )
    assert read(write(tmp_path / "y", zero3(**{FIRST: third})))[2]["fp32/a"] == [0, 1, 2]
    enum = optim_file(
        [[0, 1, 2, 3, 4]], zero_stage=call("deepspeed.runtime.zero.config.ZeroStageEnum", number(1))
    )
    assert read(write(tmp_path / "z", zero2(**{FIRST: enum})))[2]["fp32/b"] == [4, 5, 6]


def test_a_vector_that_others_view_keeps_its_storage(tmp_path: Path) -> None:
    shared = optim_file([[5, 6, 0]], again=vector("0", [5, 6, 0]))
    container, checkpoint, _ = read(write(tmp_path / "x", zero2(**{SECOND: shared})))
    again = next(row for row in checkpoint.tensors if row.path.endswith("/again"))
    assert again.storage in container.storage_ids


def test_sizes_may_be_plain_tuples(tmp_path: Path) -> None:
    model = saved_value(mapping(param_shapes=list_(mapping(a=tuple_(number(2), number(2)), b=size(3)))))
    assert read(write(tmp_path / "x", zero2(**{MODEL: model})))[2]["fp32/b"] == [4, 5, 6]


def test_a_slot_that_is_too_short_shifts_nothing(tmp_path: Path) -> None:
    # The first rank says that an element of its vector is filling, and it is none.
    short = optim_file([[0, 1, 2, 3, 4]], group_paddings=list_(number(1)), shortened=1)
    container, _, found = read(write(tmp_path / "x", zero2(**{FIRST: short})))
    assert found["fp32/b"] == [4, 5, 6]
    assert found["optimizer/state/a/exp_avg"] == [0, -1, -2, -3]
    assert "optimizer/state/b/exp_avg" not in found
    assert "exp_avg/b" in container.storage_ids
    assert "exp_avg/b" not in container.stored
    lean = optim_file([[5, 6]], group_paddings=list_(number(1)))
    _, _, found = read(write(tmp_path / "y", zero2(**{SECOND: lean})))
    assert found["optimizer/state/b/exp_avg"] == [-4, -5, -6]


def test_ranks_must_agree_in_the_type_of_weights(tmp_path: Path) -> None:
    vectors = list_(tensor(storage("0", "torch.DoubleStorage", numel=3), 3))
    state = mapping(single_partition_of_fp32_groups=vectors)
    double = saved_zip(stream(mapping(optimizer_state_dict=state)), {"0": bytes(24)})
    container, _, _ = read(write(tmp_path / "x", zero2(**{SECOND: double})))
    assert "differ in the type" in faults(container)[0]


def test_latest_that_is_no_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", zero2())
    (folder / "latest").write_bytes(b"\xff\xfe")
    with pytest.raises(NotACheckpointError):
        open_checkpoint(str(folder))
    with pytest.raises(NotACheckpointError):
        open_checkpoint(str(folder / "latest"))


VALUES = {"0": array.array("f", [1.0, 2.0]).tobytes()}
RANK = "zero_pp_rank_0_mp_rank_00_optim_states.pt"


def weight(**more: bytes) -> bytes:
    return saved_zip(stream(proto(), mapping(param=vector("0", [1.0, 2.0]), **more)), VALUES)


def bare() -> bytes:
    return saved_zip(stream(proto(), vector("0", [1.0, 2.0])), VALUES)


def universal(folder: Path, tag: str = "global_step1_universal", **files: bytes) -> Path:
    names = {f"zero/{label}/{slot}.pt": weight() for label in ("a.b", "c") for slot in ("fp32", "exp_avg")}
    own = {label.replace("__", "/"): data for label, data in files.items()}
    for label, data in {MODEL: model_file([{}]), "zero/a.b/exp_avg_sq.pt": bare(), **names, **own}.items():
        (folder / tag / label).parent.mkdir(parents=True, exist_ok=True)
        (folder / tag / label).write_bytes(data)
    (folder / "latest_universal").write_text(tag)
    return folder


def kinds_more(found: Checkpoint) -> dict[NoteKind, tuple[str, ...]]:
    return {note.kind: note.values for note in found.notes}


def test_universal_checkpoints_have_weights_and_slots_by_name(tmp_path: Path) -> None:
    folder = universal(tmp_path)
    for path in (folder, folder / "global_step1_universal"):
        found = open_checkpoint(str(path))
        assert [(row.path, row.slot, row.parameter) for row in found.tensors] == [
            ("fp32/a.b", None, None),
            ("fp32/c", None, None),
            ("optimizer/state/a.b/exp_avg", "exp_avg", "a.b"),
            ("optimizer/state/a.b/exp_avg_sq", "exp_avg_sq", "a.b"),
            ("optimizer/state/c/exp_avg", "exp_avg", "c"),
        ]
        assert kinds_more(found)[NoteKind.UNIVERSAL] == ("2 parameters",)
        assert NoteKind.UNJOINED not in kinds_more(found)
        target = parse_wish("cpu").machine
        assert target is not None
        failure = judge_load(found, target).failure
        assert failure is not None
        assert failure.message.startswith(
            "FileNotFoundError: can't find *_optim_states.pt files in directory"
        )


def test_layers_of_a_pipeline_are_branches(tmp_path: Path) -> None:
    layers = {f"layer_{number:02d}-model_00-model_states.pt": weight() for number in (1, 0)}
    found = open_checkpoint(str(write(tmp_path / "a", {**zero2(), **layers})))
    assert [row.path for row in found.tensors][:2] == [
        "layers/layer_00-model_00-model_states/param",
        "layers/layer_01-model_00-model_states/param",
    ]
    assert kinds_more(found)[NoteKind.LAYERS] == ("2 layers",)
    assert "fp32/a" in [row.path for row in found.tensors]
    assert NoteKind.UNIVERSAL not in kinds_more(found)
    only = write(tmp_path / "b", {MODEL: model_file([{}]), "zero.pt": b"x", **layers})
    assert len(open_checkpoint(str(only)).tensors) == 2


def test_weights_that_were_joined_are_not_shown_twice(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", zero2())
    (folder / "global_step1/zero/a").mkdir(parents=True)
    (folder / "global_step1/zero/a/fp32.pt").write_bytes(weight())
    found = open_checkpoint(str(folder))
    assert [row.path for row in found.tensors if row.path.startswith("fp32")] == ["fp32/a", "fp32/b"]
    assert NoteKind.UNIVERSAL not in kinds_more(found)


def test_states_of_ranks_that_were_not_joined_are_left_beside_them(tmp_path: Path) -> None:
    optim = optim_file([[0, 1, 2, 3, 4]], ranks=7)
    found = open_checkpoint(str(universal(tmp_path, **{RANK: optim})))
    assert NoteKind.UNIVERSAL in kinds_more(found)
    assert found.refusal == ""


def test_slots_alone_have_no_weights(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", {MODEL: model_file([{}])})
    (folder / "global_step1/zero/a").mkdir(parents=True)
    (folder / "global_step1/zero/a/exp_avg.pt").write_bytes(weight())
    assert [row.path for row in open_checkpoint(str(folder)).tensors] == ["optimizer/state/a/exp_avg"]
    (folder / "global_step1/zero/a/exp_avg.pt").rename(folder / "global_step1/zero/a/fp32.pt")
    assert [row.path for row in open_checkpoint(str(folder)).tensors] == ["fp32/a"]


def test_names_that_are_none() -> None:
    names = [
        "t/layer_00-model_states.pt",
        "t/zero/a/fp32.pt",
        "t/zero/a/b/fp32.pt",
        "t/zero/../fp32.pt.x",
        "zero/a/fp32.pt",
        "t/layer_xx-model_states.pt",
    ]
    assert more_files(names, "t") == (("t/layer_00-model_states.pt",), ("t/zero/a/fp32.pt",))
    assert more_files(names, "") == ((), ("zero/a/fp32.pt",))


def test_hostile_files_among_them(tmp_path: Path) -> None:
    dangerous = saved_zip(stream(proto(), evil()), {})
    for index, label in enumerate(("zero__a.b__fp32.pt", "zero__evil__step.pt", "layer_00-model_states.pt")):
        found = open_checkpoint(str(universal(tmp_path / str(index), **{label: dangerous})))
        assert judge(found).verdict == "dangerous"
    for index, data in enumerate((b"", b"text", bytes(400), dangerous[:40])):
        with pytest.raises(CheckpointError):
            open_checkpoint(str(universal(tmp_path / f"x{index}", **{"zero__c__fp32.pt": data})))
    cut = universal(tmp_path / "cut", **{"zero__c__fp32.pt": dangerous[:-90]})
    assert judge(open_checkpoint(str(cut))).verdict == "dangerous"
    folder = universal(tmp_path / "gone")
    (folder / "latest_universal").write_text("../elsewhere")
    with pytest.raises(NotACheckpointError, match="the file latest_universal names a folder"):
        open_checkpoint(str(folder))


def test_files_of_states_are_told_by_their_names() -> None:
    names = [
        "zero_pp_rank_10_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt",
        "mp_rank_01_model_states.pt",
        "zero_pp_rank_0_mp_rank_00optim_states.pt",
        "x_mp_rank_01_model_states.pt",
        "mp_rank_01_model_states.pt.bak",
        "layer_00-model_states.pt",
    ]
    found = [
        StatesFile(names[2], "model", 1, -1),
        StatesFile(names[3], "optim", 0, 0),
        StatesFile(names[1], "optim", 0, 2),
        StatesFile(names[0], "optim", 0, 10),
    ]
    assert states_files(names, "") == found
    below = [f"step/{name}" for name in names]
    assert states_files(below, "step") == [file._replace(name=f"step/{file.name}") for file in found]
    assert states_files(below, "other") == states_files(below, "") == []


def test_tags_are_in_the_order_of_their_numbers() -> None:
    names = [f"{tag}/mp_rank_00_model_states.pt" for tag in ("step10", "step9", "best", "a/b")]
    assert tags_of(names) == ["best", "step9", "step10"]
    assert tags_of(["mp_rank_00_model_states.pt", "x/y.pt"]) == [""]


def flat(push: bytes, nbytes: int = 12) -> tuple[int, int] | None:
    """Offset from the storage's beginning, and length, of a vector over three elements."""
    data = saved_zip(stream(proto(), push), {"0": bytes(nbytes)})
    container = read_container(BytesSource(data, "x.pt"))
    found = flat_of(container.root, container, 4)
    if found is None:
        return None
    assert found.part == 4
    return found.offset - (container.stored["0"].offset or 0), found.numel


def view(*arguments: bytes) -> bytes:
    return call("torch._utils._rebuild_tensor_v2", storage("0", numel=3), *arguments)


def test_vectors_are_read_out_of_what_wraps_them() -> None:
    plain = vector("0", [1, 2, 3])
    assert flat(plain) == (0, 3)
    assert flat(call("torch._utils._rebuild_parameter", plain, op("NEWTRUE"), NONE)) == (0, 3)
    function = name("torch._utils._rebuild_tensor_v2")
    arguments = tuple_(storage("0", numel=3), number(1), tuple_(number(2)), tuple_(number(1)), NONE, NONE)
    wrapped = call("torch._tensor._rebuild_from_type_v2", function, name("torch.Tensor"), arguments, NONE)
    assert flat(wrapped) == (4, 2)
    assert flat(view(number(0), tuple_(number(1), number(3)), tuple_(number(9), number(1)))) == (0, 3)
    assert flat(view(number(0), tuple_(), tuple_())) == (0, 1)


def test_other_values_are_no_vectors() -> None:
    nested = vector("0", [1, 2, 3])
    for _ in range(5):
        nested = call("torch._utils._rebuild_parameter", nested, op("NEWTRUE"), NONE)
    others = [
        number(3),
        call("os.system"),
        call("os.system", number(3)),
        nested,
        view(number(0), number(3), tuple_(number(1))),
        view(number(0), tuple_(number(3)), number(1)),
        view(number(-1), tuple_(number(3)), tuple_(number(1))),
        view(number(0), tuple_(number(3)), tuple_(number(2))),
        view(number(0), tuple_(number(3)), tuple_()),
        view(number(1), tuple_(number(3)), tuple_(number(1))),
        call("torch._utils._rebuild_tensor_v2", number(0), number(0), tuple_(), tuple_()),
        call("torch._utils._rebuild_tensor_v2", storage("9", numel=3), number(0), tuple_(), tuple_()),
    ]
    for push in others:
        assert flat(push) is None, push
    container = read_container(BytesSource(saved_zip(stream(proto(), number(3))), "x.pt"))
    assert flat_of(Call(Dict([]), (1,), "reduce"), container, 0) is None
