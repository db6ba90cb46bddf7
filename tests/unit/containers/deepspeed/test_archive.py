from __future__ import annotations

import array
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.opening import open_path, read_container
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.storage_reader import StorageReader
from inspector.errors import CheckpointError, NotACheckpointError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from tests.builders import legacy
from tests.builders.dcp import saved_value, saved_zip, size
from tests.builders.deepspeed import mapping, model_file, optim_file, shapes, vector, write, zero2
from tests.builders.pickles import NONE, call, dict_, list_, number, storage, stream, tensor, text, tuple_
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
