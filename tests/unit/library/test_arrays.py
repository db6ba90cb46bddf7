"""Arrays that the library reads itself: of each format, in part, and never of what is not there."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path

import numpy as np
import pytest

import inspector
from inspector.containers.folder import Folder
from inspector.containers.source import BytesSource, FileSource
from inspector.library.sources import Opened
from inspector.values import arrays, asking, tensor_bytes
from inspector.worker.tensor_values import answer
from tests.builders.safetensors import row, safetensors
from tests.corpus import CORPUS
from tests.unit.remap.samples import call, mapping, name, storage, stream, tensor, text, written, zip_of

WEIGHT = "model/stem.conv.weight"


def file_of(tmp_path: Path, array: np.ndarray, dtype: str = "F32") -> Path:
    path = tmp_path / "x.safetensors"
    data = np.ascontiguousarray(array).tobytes()
    path.write_bytes(safetensors({"w": row(dtype, list(array.shape), (0, len(data)))}, data))
    return path


@pytest.fixture
def numbers(tmp_path: Path) -> np.ndarray:
    return np.arange(4 * 300 * 50, dtype=np.float32).reshape(4, 300, 50)


class Counted:
    """What is read of files while it counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nbytes = 0
        for method in ("read_at", "read_into"):
            monkeypatch.setattr(FileSource, method, self._counting(getattr(FileSource, method)))

    def _counting(self, read):
        def counted(source, offset, wanted):
            self.nbytes += wanted if isinstance(wanted, int) else len(wanted)
            return read(source, offset, wanted)

        return counted


# --- the whole of a tensor ----------------------------------------------------------------------------------


def test_numbers_of_a_tensor(tmp_path) -> None:
    data = struct.pack("<4f", 1.0, -2.5, 0.0, float("inf"))
    path = written(tmp_path, zip_of(stream(mapping(w=tensor(text("cuda:0")))), {"0": data}))
    one = inspector.open(path)["w"]
    found = one.numpy()
    assert found.dtype == np.float32
    assert found.tolist() == [1.0, -2.5, 0.0, float("inf")]
    found[0] = 7  # it is the caller's own
    assert one.numpy()[0] == 1.0


def saved(opened: Opened, number: int) -> np.ndarray | str:
    """What the worker writes into a file of NumPy, or why it writes none."""
    request = opened.requests.of(number)
    answers = list(answer({"what": "rows", **opened.requests.file, "tensor": request}, iter(())))
    if "error" in answers[-1][0]:
        return str(answers[-1][0]["error"]["what"])
    head = answers[0][0]
    data = b"".join(block for _, block in answers)
    return np.frombuffer(data, head["descr"]).reshape(head["shape"])


def readable() -> list[Path]:
    """The files and folders of the corpus that open."""
    found = []
    for path in sorted(CORPUS.rglob("*")):
        try:
            inspector.open(path)
        except inspector.CheckpointError:
            continue
        found.append(path)
    return found


@pytest.mark.wide
def test_each_tensor_of_each_format_is_what_the_worker_saves() -> None:
    """Which lays elements out in another way: row by row, where this reads them as they stand."""
    wrong, formats, count = [], set(), 0
    for path in readable():
        checkpoint = inspector.open(path)
        for number, one in enumerate(checkpoint.tensors[:40]):
            try:
                found: np.ndarray | str = one.numpy()
            except inspector.CheckpointError as error:
                found = error.what
            try:
                wanted = saved(checkpoint._opened, number)
            except inspector.CheckpointError as error:
                wanted = error.what
            if isinstance(found, str) or isinstance(wanted, str):
                if isinstance(found, str) != isinstance(wanted, str) and "each channel" not in wanted:
                    wrong.append((path.name, one.path, found, wanted))
                continue
            count += 1
            formats.add(checkpoint.format)
            is_same = found.shape == one.shape and found.dtype == wanted.dtype
            if not is_same or found.tobytes() != wanted.tobytes():
                wrong.append((path.name, one.path, found.shape, wanted.shape))
    assert wrong == []
    assert count > 500
    assert formats >= {"zip", "legacy", "tar", "safetensors", "gguf", "dcp", "sharded", "pickle", "deepspeed"}


def test_a_file_that_is_compressed_as_a_whole_is_unpacked_once(demo, copy, monkeypatch) -> None:
    path = copy.with_suffix(".pth.gz")
    path.write_bytes(gzip.compress(copy.read_bytes()))
    found = inspector.open(path)
    counted = Counted(monkeypatch)
    for place, one in found.items():
        assert one.numpy().tobytes() == demo[place].numpy().tobytes()
    assert counted.nbytes < 10 * demo.file_nbytes
    found.close()
    assert tensor_bytes._OPEN == []
    assert np.array_equal(found[WEIGHT].numpy(), demo[WEIGHT].numpy())  # with the container that is known
    copy.replace(path)  # another file at the same path
    with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
        found[WEIGHT].numpy()


# --- a part of it -------------------------------------------------------------------------------------------


def test_a_part_of_a_tensor_takes_no_more_than_its_bytes(tmp_path, numbers, monkeypatch) -> None:
    one = inspector.open(file_of(tmp_path, numbers))["w"]
    head = 512  # a file is looked at before it is read
    for index, most in (
        ((slice(None, 2),), 2 * 300 * 50 * 4),
        ((2, 7), 50 * 4),
        ((3, 299, 49), 4),
        ((0, slice(None), 3), 300 * 50 * 4),  # what lies between is less than a page of memory
        ((slice(None), 5, slice(10, 12)), 4 * 2 * 4),
        ((slice(None, None, 3), 100, 0), 2 * 4),
        ((slice(2, 2),), 0),
    ):
        with monkeypatch.context() as patch:
            counted = Counted(patch)
            found = one[index]
        assert np.array_equal(found, numbers[index]), index
        assert counted.nbytes <= most + head, index


def test_an_index_means_what_it_means_to_numpy(tmp_path, numbers) -> None:
    one = inspector.open(file_of(tmp_path, numbers))["w"]
    for index in (
        0, -1, np.int64(2), ..., None, slice(None, None, -1), (slice(3, None, -2), ..., slice(-7, None)),
        (None, 1, ..., None), (..., 4), (1, 2, 3), (slice(5, 9), 3), (1, ..., 2, 3),
    ):  # fmt: skip
        found, wanted = one[index], numbers[index]
        assert type(found) is type(wanted), index
        assert found.shape == wanted.shape, index
        assert np.array_equal(found, wanted), index
    outside = (4, -5, (0, 300), (0, 0, 0, 0), (..., ...))
    others = ([0, 1], np.array([1]), True, "w", 1.0)
    for index, error in (*((one, IndexError) for one in outside), *((one, TypeError) for one in others)):
        with pytest.raises(error):
            one[index]


def test_rows_are_read_in_blocks(tmp_path, numbers, monkeypatch) -> None:
    monkeypatch.setattr("inspector.library.rows._BLOCK_NBYTES", 100 * 200)
    one = inspector.open(file_of(tmp_path, numbers[0]))["w"]  # rows of 200 bytes
    opened: list[str] = []
    init = FileSource.__init__
    monkeypatch.setattr(FileSource, "__init__", lambda self, path: opened.append(path) or init(self, path))
    assert np.array_equal(list(one), numbers[0])
    assert len(opened) == 3
    assert list(inspector.open(file_of(tmp_path, numbers[:0]))["w"]) == []


def test_it_looks_like_an_array(tmp_path, numbers) -> None:
    one = inspector.open(file_of(tmp_path, numbers))["w"]
    assert (one.ndim, one.numel, one.size, len(one)) == (3, numbers.size, numbers.size, 4)
    assert np.array_equal(np.asarray(one), numbers)
    assert np.asarray(one, dtype=np.float64).dtype == np.float64
    assert float(np.mean(one)) == numbers.mean()
    with pytest.raises(ValueError, match="array of its own"):
        one.__array__(copy=False)
    empty = inspector.open(file_of(tmp_path, numbers[:0]))["w"]
    assert (len(empty), empty.numel, bool(empty), empty.numpy().shape) == (0, 0, True, (0, 300, 50))
    scalar = inspector.open(file_of(tmp_path, np.float32(7.0)))["w"]
    assert (scalar.ndim, scalar.numel, scalar.numpy().shape, scalar[()], scalar[...].shape) == (
        0,
        1,
        (),
        7.0,
        (),
    )
    for ask in (len, iter):
        with pytest.raises(TypeError):
            ask(scalar)


def test_what_is_repeated_beyond_measure_is_refused(tmp_path, monkeypatch) -> None:
    """A file of a few hundred bytes may claim any number of elements that are all the same."""
    geometry = b"K\x00", b"J\x00\x00\x00\x40\x85", b"K\x00\x85", b"\x89", b"}"  # 2^30 elements, stride 0
    body = mapping(w=call(name("torch._utils", "_rebuild_tensor_v2"), storage(text("cpu")), *geometry))
    data = struct.pack("<4f", 5, 6, 7, 8)
    one = inspector.open(written(tmp_path, zip_of(stream(body), {"0": data})))["w"]
    assert (one.shape, one.stride) == ((1 << 30,), (0,))
    with pytest.raises(inspector.ValuesError, match=r"repeat 1 of the storage: w \(read a part of it"):
        one.numpy()
    assert one[:3].tolist() == [5, 5, 5]


@pytest.mark.parametrize("sizes", [(0, 1 << 62), (1,) * 65])
def test_what_makes_no_array_of_numpy_is_refused(tmp_path, sizes) -> None:
    data = safetensors({"w": row("F32", sizes, (0, 4 * prod(sizes)))}, bytes(4 * prod(sizes)))
    one = inspector.open(data)["w"]
    for read in (one.numpy, lambda: one[:1]):
        with pytest.raises(inspector.ValuesError, match="NumPy has no array of its shape: w"):
            read()


# --- what is not there --------------------------------------------------------------------------------------


def test_bytes_that_are_missing_are_an_error_and_no_zeros(tmp_path, numbers) -> None:
    path = file_of(tmp_path, numbers)
    opened = inspector.open(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    cut = inspector.open(path)["w"]
    for read in (opened["w"].numpy, cut.numpy, lambda: cut[-1]):
        with pytest.raises(inspector.CheckpointError):
            read()
    body = mapping(a=tensor(text("cpu")), b=tensor(text("cpu"), key="1"))
    lost = inspector.open(written(tmp_path, zip_of(stream(body), {"0": bytes(16)})))
    assert lost["a"].numpy().tolist() == [0, 0, 0, 0]
    with pytest.raises(inspector.ValuesError, match="does not hold its bytes"):
        lost["b"].numpy()
    with pytest.raises(inspector.ValuesError, match="does not hold its bytes"):
        lost.state_dict()


def test_a_file_that_ends_while_it_is_read_is_an_error(tmp_path, numbers, monkeypatch) -> None:
    path = file_of(tmp_path, numbers)
    one = inspector.open(path)["w"]
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:7]], offset) % 7)
    monkeypatch.setattr("inspector.containers.source._pread", lambda *_: b"")
    with FileSource(str(path)) as source, pytest.raises(inspector.DamagedError, match="ends too early"):
        source.read_into(0, memoryview(bytearray(64)))
    monkeypatch.undo()
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:4096]], offset))
    assert np.array_equal(one.numpy(), numbers)  # a read may stop early
    monkeypatch.delattr(os, "preadv")  # Windows
    assert np.array_equal(one.numpy(), numbers)


@pytest.mark.parametrize("replaced", [False, True], ids=["written", "replaced"])
def test_a_file_that_changed_is_refused(tmp_path, numbers, replaced) -> None:
    path = file_of(tmp_path, numbers)
    one = inspector.open(path)["w"]
    assert one[0, 0, 1] == 1
    if replaced:
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
    else:
        os.utime(path, ns=(5, 5))
    for read in (one.numpy, lambda: one[0], one.stats):
        with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
            read()


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, numbers, monkeypatch) -> None:
    path = file_of(tmp_path, numbers)
    one = inspector.open(path)["w"]
    read_into = FileSource.read_into

    def touching(source, offset, buffer):
        read_into(source, offset, buffer)
        os.utime(path, ns=(5, 5))

    monkeypatch.setattr(FileSource, "read_into", touching)
    with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
        one.numpy()


def test_more_than_the_memory_holds(demo, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(arrays, "_read_box", fail)
    with pytest.raises(inspector.ValuesError, match=f"not enough memory for its numbers: {WEIGHT}"):
        demo[WEIGHT].numpy()


def test_what_is_not_installed_is_told(demo, monkeypatch) -> None:
    monkeypatch.setattr("inspector.library.arrays.find_spec", lambda _: None)
    with pytest.raises(inspector.ExportError, match="this needs PyTorch"):
        demo[WEIGHT].torch()
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    with pytest.raises(inspector.ExportError, match="this needs NumPy"):
        demo[WEIGHT].numpy()
    with pytest.raises(inspector.PlanError, match="framework='jax'"):
        monkeypatch.undo() or demo.state_dict(framework="jax")


def test_reading_tells_how_far_it_is_and_can_be_stopped(tmp_path, numbers, monkeypatch) -> None:
    monkeypatch.setattr(arrays, "_STEP_NBYTES", 1 << 12)
    one = inspector.open(file_of(tmp_path, numbers))["w"]
    steps: list[inspector.Step] = []
    one.numpy(progress=steps.append)
    assert (steps[0].stage, steps[-1].done, steps[-1].total) == ("reading values", one.nbytes, one.nbytes)

    def stop(step: inspector.Step) -> None:
        if step.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.numpy(progress=stop)


# --- all of them --------------------------------------------------------------------------------------------


def test_a_state_dict_is_a_plain_mapping_of_arrays(demo) -> None:
    found = demo.state_dict("model")
    assert type(found) is dict
    assert "stem.conv.weight" in found
    assert np.array_equal(found["stem.conv.weight"], demo[WEIGHT].numpy())
    assert len(found) == sum(name.startswith("model/") for name in demo)
    with pytest.raises(KeyError, match="no tensor below 'nowhere'"):
        demo.state_dict("nowhere")


def test_two_tensors_of_one_name_are_no_mapping(tmp_path) -> None:
    body = mapping(
        a=mapping(**{"b.c": tensor(text("cpu"))}), **{"a.b": mapping(c=tensor(text("cpu"), key="1"))}
    )
    found = inspector.open(written(tmp_path, zip_of(stream(body), {"0": bytes(16), "1": bytes(16)})))
    with pytest.raises(inspector.PlanError, match=r"2 tensors have the name 'a\.b\.c'"):
        found.state_dict()


def test_the_processes_that_read_are_none(demo, monkeypatch) -> None:
    """Which took 95 s for 250 tensors: each started a Python of its own."""
    monkeypatch.setattr("inspector.child.Worker.request", None)
    assert len(demo.state_dict()) > 250


# --- other sources than paths -------------------------------------------------------------------------------


def test_bytes_and_file_objects_are_opened(demo, copy) -> None:
    data = copy.read_bytes()
    behind = io.BytesIO(b"..." + data)
    behind.seek(3)
    for given in (data, bytearray(data), memoryview(data), io.BytesIO(data), behind, gzip.compress(data)):
        with inspector.open(given) as found:
            assert found.keys() == demo.keys()
            assert found.path == "<bytes>"
            assert np.array_equal(found[WEIGHT].numpy(), demo[WEIGHT].numpy())
            assert np.array_equal(pickle.loads(pickle.dumps(found))[WEIGHT][2], demo[WEIGHT][2])
    with copy.open("rb") as file:
        assert inspector.open(file).path == str(copy)
        file.read(3)
        with pytest.raises(inspector.CheckpointError):
            inspector.open(file)
    with copy.open("r", encoding="latin-1") as file, pytest.raises(TypeError, match="mode 'rb'"):
        inspector.open(file)  # type: ignore[arg-type]


def test_who_needs_a_file_of_bytes_gets_one_while_they_are_open(demo, copy, tmp_path) -> None:
    with inspector.open(copy.read_bytes()) as found:
        assert inspector.check(found, target="cpu").safe
        assert found[WEIGHT].stats().mean == demo[WEIGHT].stats().mean
        made = Path(found._opened.file)
        assert inspector.diff(found, demo).equal
        assert inspector.remap(found, tmp_path / "out.pth").nbytes
        for change in (inspector.undo, lambda one: inspector.remap(one, in_place=True)):
            with pytest.raises(inspector.PlanError, match="opened from bytes"):
                change(found)
        assert made.exists()
    assert not made.exists()
    assert found[WEIGHT].stats().numel == 216  # another one
    found.close()
    again = inspector.open(copy.read_bytes())
    made = Path(again._opened.file)
    del again
    assert not made.exists()


def test_numbers_of_bytes_are_read_without_a_file(copy, monkeypatch) -> None:
    monkeypatch.setattr(FileSource, "__init__", None)
    parsed: list[int] = []
    reading = tensor_bytes.read_container
    monkeypatch.setattr(tensor_bytes, "read_container", lambda one: parsed.append(1) or reading(one))
    packed = inspector.open(gzip.compress(copy.read_bytes()))
    assert len([one.numpy() for one in packed.values()]) == len(packed)
    assert parsed == [1]
    assert inspector.open(copy.read_bytes())[WEIGHT].numpy().shape == (8, 3, 3, 3)
    assert BytesSource(b"abc", "").read(1, 2) == b"bc"


# --- threads, processes, and the child that computes --------------------------------------------------------


def test_threads_read_the_same_tensors(demo, copy) -> None:
    packed = copy.with_suffix(".gz")
    packed.write_bytes(gzip.compress(copy.read_bytes()))
    names = [name for name in demo if demo[name].layout == "strided"][:60]
    wanted = {name: demo[name].numpy().tobytes() for name in names}
    for found in (inspector.open(copy), inspector.open(packed)):
        barrier = threading.Barrier(4)

        def read(turn: int, found=found, barrier=barrier) -> bool:
            barrier.wait()
            order = names[turn * 15 :] + names[: turn * 15]
            return all(found[name].numpy().tobytes() == wanted[name] for name in order)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(read, range(4)))


def test_functions_and_tensors_are_sent_to_other_processes(demo) -> None:
    for value in (getattr(inspector, one) for one in inspector.__all__):
        assert pickle.loads(pickle.dumps(value)) is value or isinstance(value, str), value
    one = pickle.loads(pickle.dumps(demo[WEIGHT]))
    assert np.array_equal(one.numpy(), demo[WEIGHT].numpy())


def test_threads_compute_at_the_same_time(demo) -> None:
    wanted = demo[WEIGHT].stats().mean
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda _: demo[WEIGHT].stats().mean, range(6))) == {wanted}
    assert len(asking._FREE) == 1


def test_reading_imports_no_torch(demo) -> None:
    code = (
        "import sys, inspector; c = inspector.open(sys.argv[1]); a = 'numpy' in sys.modules;"
        "c.tensors[0].numpy(); print(a, 'numpy' in sys.modules, 'torch' in sys.modules)"
    )
    root = Path(inspector.__file__).parents[1]
    command = [sys.executable, "-c", code, demo.path]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_the_child_that_computes_stays_until_the_end(demo) -> None:
    asking.end_staying_reader()
    demo[WEIGHT].stats()
    (reader,) = asking._FREE
    child = reader._worker.pid
    inspector.stats(demo, WEIGHT)
    assert [one._worker.pid for one in asking._FREE] == [child]
    with asking.staying_reader() as one, asking.staying_reader() as another:  # as of two threads
        assert one is not another
    assert len(asking._FREE) == 1
    demo.close()
    assert asking._FREE == []
    assert reader._worker.pid is None


PROGRAM = """
import os, sys
import inspector
with open(sys.argv[1], "rb") as file:
    held = inspector.open(file.read())
held["model/stem.conv.weight"].stats()
one = inspector.open(sys.argv[1])["model/stem.conv.weight"]
one.stats()
from inspector.values import asking
child = asking._FREE[0]._worker.pid
if os.fork() == 0:
    assert asking._FREE == []
    print(one.stats().numel, one.numpy().size, flush=True)
    sys.exit()
os.wait()
one.stats()
assert os.path.exists(held._opened.file)
assert asking._FREE[0]._worker.pid == child
print(child, held._opened.file)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_nothing_is_left_and_nothing_is_said_at_the_end(demo) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "dev",
            "-W",
            "error",
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            PROGRAM,
            demo.path,
        ],
        cwd=Path(inspector.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    counted, last = done.stdout.splitlines()
    child, made = last.split()
    assert counted == "216 216"
    assert not Path(f"/proc/{child}").exists()
    assert not Path(made).exists()


def shards(folder: Path, count: int) -> inspector.Checkpoint:
    names = {f"w{number}": f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)}
    for number, (key, file) in enumerate(names.items(), 1):
        (folder / file).write_bytes(safetensors({key: row()}, struct.pack("<2f", number, number)))
    index = json.dumps({"weight_map": names})
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    return inspector.open(folder)


def test_a_folder_is_listed_once_for_all_its_tensors(tmp_path, monkeypatch) -> None:
    found, listed = shards(tmp_path, 4), []
    listing = Folder._list
    monkeypatch.setattr(Folder, "_list", lambda folder: listed.append(1) or listing(folder))
    assert {name: one.numpy().tolist() for name, one in found.items()} == {
        f"w{number}": [number, number] for number in range(1, 5)
    }
    assert found.state_dict()["w3"].tolist() == [3, 3]
    assert listed == [1]
    found.close()
    assert tensor_bytes._OPEN == []


@pytest.mark.parametrize("replaced", [False, True], ids=["written", "replaced"])
def test_a_folder_of_which_a_file_changed_is_refused(tmp_path, replaced) -> None:
    found = shards(tmp_path, 2)
    assert found["w1"].numpy().tolist() == [1, 1]
    path = tmp_path / "model-00001-of-00002.safetensors"
    if replaced:
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
    else:
        path.write_bytes(path.read_bytes())
    for _ in range(2):
        with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
            found["w1"].numpy()
