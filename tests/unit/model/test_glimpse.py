"""The first tensors, long before all of a file is read."""

from __future__ import annotations

import json
from typing import Any

from inspector.model.build import open_checkpoint
from inspector.model.glimpse import MOST_ROWS, watch_beginning
from inspector.pickles import machine
from inspector.pickles.values import Call, Dict, Global, PersistentId, StoredTensor, Value
from inspector.progress import Progress
from tests.builders.pickles import dict_, proto, storage, stream, tensor, text


def seen(*levels: list[Value]) -> tuple[tuple[str, str], ...]:
    """The rows that are shown of a stack."""
    progress = Progress()
    watch_beginning(progress)
    assert progress.on_values is not None
    progress.on_values(list(levels))
    return progress.first_rows


def view(key: str = "0", tag: str = "cpu") -> Call:
    """A tensor of two elements."""
    pid = PersistentId(("storage", Global("torch", "FloatStorage"), key, tag, 2))
    return Call(Global("torch._utils", "_rebuild_tensor_v2"), (pid, 0, (2,), (1,), False, None), "reduce")


def test_tensors_of_a_state_dict_that_is_being_filled() -> None:
    assert seen([Dict([("a.weight", view())])], ["b.weight", view(tag="cuda:1"), "c.weight"]) == (
        ("a.weight", "float32  2  cpu"),
        ("b.weight", "float32  2  cuda:1"),
    )


def test_names_have_the_way_to_them() -> None:
    model = Dict([("w", view())])
    levels: tuple[list[Value], ...] = (
        [Dict([])],
        ["epoch", 3, "model", model],
        ["v", view(), "x"],
        [7, view()],
    )
    assert [path for path, _ in seen(*levels)] == ["model/w", "model/v", "model/x/7"]


def test_tensors_of_formats_without_a_pickle() -> None:
    assert seen([Dict([("w", StoredTensor("0", "bfloat16", (4, 3)))])]) == (("w", "bfloat16  4 \u00d7 3"),)


def test_what_has_no_name_is_not_shown() -> None:
    assert seen([[]], [view(), view(), view()]) == ()
    assert seen([view()]) == (("", "float32  2  cpu"),)
    assert seen([], [], []) == ()
    assert seen() == ()


def test_odd_names_are_short_and_visible() -> None:
    ((path, _),) = seen([Dict([("\u202e/" + "n" * 5000, view())])])
    assert path.startswith("\\u202e~1nnn")
    assert len(path) <= 300


def test_rows_and_steps_are_few() -> None:
    many = Dict([(f"w{n}", view()) for n in range(500)])
    assert len(seen([many])) == MOST_ROWS
    nested: Value = view()
    for _ in range(20_000):
        nested = [nested]
    assert seen([nested]) == ()
    circle: list[Value] = []
    circle.append(circle)
    assert seen([circle]) == ()
    assert seen(*[["x", 1]] * 100) == ()


def test_nobody_is_asked_for_ever() -> None:
    progress = Progress()
    watch_beginning(progress)
    asked = 0
    while progress.on_values is not None:
        asked += 1
        progress.on_values([[1]])
    assert (asked, progress.first_rows) == (8, ())


# --- from files ---------------------------------------------------------------------------------------------


def watched(source: Any) -> Progress:
    progress = Progress()
    watch_beginning(progress)
    open_checkpoint(str(source), progress=progress)
    return progress


def test_a_long_pickle_shows_them_when_a_part_of_it_is_read(monkeypatch) -> None:
    monkeypatch.setattr(machine, "BATCH", 64)
    tensors = {f"w{n}": tensor(storage(str(n)), 2) for n in range(50)}
    data = stream(proto(), dict_(*((text(key), value) for key, value in tensors.items())))
    progress = Progress()
    watch_beginning(progress)
    reading = machine.Machine(data, name="x", progress=progress)
    reading.run()
    assert progress.on_values is None
    assert 0 < len(progress.first_rows) < 50
    assert progress.first_rows[0] == ("w0", "float32  2  cpu")


def test_files_without_a_pickle_show_them(tmp_path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert watched(path).first_rows == (("w", "float32  2"),)
