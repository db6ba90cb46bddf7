"""Copies that are not: what verify must see, whether a row shows it or not."""

from __future__ import annotations

import pickle
import shutil
import struct
from collections import OrderedDict
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.diff import copies
from inspector.diff.copies import compare_objects, name_differences
from inspector.diff.tokens import ExactTokens, Kept
from inspector.errors import ExportError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.remap import in_place, relabel
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.remap.verify import compare_devices, compare_files
from tests.builders.folders import trainer
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    NBYTES,
    call,
    container_of,
    device,
    get,
    group,
    legacy_of,
    mapping,
    name,
    put,
    sent,
    sparse,
    stream,
    tensor,
    text,
    wrapper,
    written,
    zip_of,
)

A, HOST, META = text("cuda:0"), text("cpu"), text("meta")
STORAGES = {"0": bytes(range(NBYTES))}
IDS = list(range(2000))
SWAPPED = [*IDS[:1500], IDS[1501], IDS[1500], *IDS[1502:]]
LONG = "x" * 9000
ODD_CALL = call(name("mine", "Thing"), text("a"))


def spelled(value: object) -> bytes:
    """The instructions of a plain value, as Python writes them."""
    return pickle.dumps(value, 2)[2:-1]


def file_of(*values: bytes, where: bytes = A) -> bytes:
    items = {f"v{number}": value for number, value in enumerate(values)}
    return stream(mapping(t=tensor(where), **items))


LIES = [
    (spelled(IDS), spelled(SWAPPED)),
    (spelled(LONG), spelled(f"{LONG[:5000]}y{LONG[5001:]}")),
    (spelled(LONG.encode()), spelled(f"{LONG[:5000]}y{LONG[5001:]}".encode())),
    (spelled({"a": 1}), spelled(OrderedDict(a=1))),
    (spelled(10**400), spelled(10**400 + 10**20)),
    (spelled([IDS]), spelled((IDS,))),
    (spelled({"a": 1, "b": 2}), spelled({"b": 2, "a": 1})),
    (spelled(1), spelled(True)),
    (spelled(0.0), spelled(-0.0)),
    (b"G" + struct.pack(">Q", 0x7FF8 << 48), b"G" + struct.pack(">Q", 0x7FF9 << 48)),
    (b"](" + b"K\x01" * 9 + b"e", b"](" + b"K\x01" * 8 + b"K\x02e"),
    (
        b"](" + b"G" + struct.pack(">Q", 0x7FF8 << 48) + b"K\x01" * 9 + b"e",
        b"](" + b"G" + struct.pack(">Q", 0x7FF9 << 48) + b"K\x01" * 9 + b"e",
    ),
    (spelled({LONG: 1}), spelled({f"{LONG[:5000]}y{LONG[5001:]}": 1})),
    (b"](]" + put(1) + get(1) + b"e", b"](]" + put(1) + b"]e"),  # one list twice, two lists
    (ODD_CALL, call(name("mine", "Thing"), text("b"))),
    (ODD_CALL, call(name("yours", "Thing"), text("a"))),
    (name("mine", "Thing"), name("mine", "Other")),
    (b"U\x01\xff", b"X\x01\x00\x00\x00a"),
    (call(name("torch", "device"), text("x" * 65)), call(name("torch", "device"), text("y" * 65))),
    (
        call(name("torch", "device"), text("cuda"), b"J\xff\xff\xff\x7f"),
        call(name("torch", "device"), text("cuda"), b"J\xff\xff\xff\x6f"),
    ),
    (
        b"}" + sparse(tensor(META, "0"), tensor(META, "0")) + b"K\x01s",
        b"}" + sparse(tensor(META, "0"), tensor(META, "1")) + b"K\x01s",
    ),
    (
        b"K\x01" + ODD_CALL + b"0",
        b"K\x01" + call(name("mine", "Worse"), text("a")) + b"0",
    ),  # is dropped again
]


@table("pair", LIES)
@table("make", [zip_of, legacy_of])
def test_what_differs_anywhere_is_no_copy(pair: tuple[bytes, bytes], make, tmp_path: Path) -> None:
    one, other = (
        written(tmp_path, make(file_of(value), STORAGES), name)
        for value, name in zip(pair, "ab", strict=True)
    )
    found = compare_files(str(other), str(one))
    assert found.differences
    assert not compare_files(str(one), str(other)).is_same
    assert compare_files(str(one), str(one)).is_same


@table("pair", LIES[:5])
def test_a_rewrite_that_damages_a_value_is_refused(
    pair: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the guard out the copy was written, and called one with the same tensors and values."""
    source, plan = _source(tmp_path, pair[0])
    damaged = file_of(pair[1], where=HOST)
    monkeypatch.setattr(relabel, "rewrite_pickle", lambda *_, **__: damaged)
    with pytest.raises(ExportError, match="the copy is not as planned"):
        export_copy(str(source), tmp_path / "out.pt", plan, verify="full")
    assert not (tmp_path / "out.pt").exists()


def _source(tmp_path: Path, value: bytes):
    source = written(tmp_path, zip_of(file_of(value), STORAGES))
    return source, plan_remap(open_checkpoint(str(source)), [parse_rule("*=cpu")])


@table("pair", LIES[1:2])
def test_a_change_in_place_that_damages_a_value_is_taken_back(
    pair: tuple[bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, plan = _source(tmp_path, pair[0])
    before = source.read_bytes()
    real = in_place.pieces_of

    def damaged(*asked: object) -> tuple[in_place.Patch, ...]:
        return tuple(
            piece._replace(data=piece.data.replace(b"x" * 100, b"y" + b"x" * 99, 1)) for piece in real(*asked)
        )

    monkeypatch.setattr(in_place, "pieces_of", damaged)
    with pytest.raises(ExportError, match=r"not as planned, and was restored: v0 differs"):
        patch_in_place(str(source), plan)
    assert source.read_bytes() == before


# --- devices are left out, wherever they stand --------------------------------------------------------------

MESH = name("torch.distributed.device_mesh", "DeviceMesh") + b")\x81"


def everywhere(device_text: bytes, device_call: bytes, file: bytes = b"") -> bytes:
    """Devices in each place that names one."""
    return file_of(
        device_call,
        b"](" + device_call + put(9) + get(9) + b"e",
        b"}" + device_call + b"K\x01s",
        MESH + mapping(_device_type=device_text, other=text("cuda")) + b"b",
        wrapper(device_call, i=tensor(device_text, "0")),
        sent(tensor(HOST), device_text),
        sent(tensor(HOST), device_call),
        call(name("torch._C", "Generator"), device_call),
        *([b"B" + struct.pack("<I", len(file)) + file] if file else []),
        where=device_text,
    )


def test_devices_are_left_out_and_kept() -> None:
    one, other = (container_of(everywhere(*args)) for args in ((A, CUDA_0), (HOST, CPU)))
    devices = compare_objects(one, other, Progress())
    assert devices is not None
    assert set(devices) == {("cuda:0", "cpu"), ("cpu", "cpu")}
    assert len(devices) == 13
    assert compare_objects(one, container_of(everywhere(A, CUDA_0)), Progress()) == [
        (here, here) for here, _ in devices
    ]


def test_files_within_bytes_have_devices_of_their_own(tmp_path: Path) -> None:
    inner, moved = (legacy_of(stream(mapping(t=tensor(place))), STORAGES) for place in (A, HOST))
    other = moved.replace(bytes(range(NBYTES)), bytes(NBYTES))
    files = [container_of(everywhere(A, CUDA_0, file)) for file in (inner, moved, other, inner[:-1])]
    assert [compare_objects(files[0], file, Progress()) is None for file in files] == [
        False,
        False,
        True,
        True,
    ]
    deep = inner
    for _ in range(copies._MOST_NESTED + 1):
        deep = legacy_of(stream(mapping(f=b"B" + struct.pack("<I", len(deep)) + deep, t=tensor(A))), STORAGES)
    turned = deep.replace(b"cuda:0", b"cuda:1")
    assert (
        compare_objects(
            container_of(stream(mapping(f=b"B" + struct.pack("<I", len(deep)) + deep))),
            container_of(stream(mapping(f=b"B" + struct.pack("<I", len(turned)) + turned))),
            Progress(),
        )
        is None
    )


def test_bytes_that_protocol_2_spells_as_a_text_are_files_too() -> None:
    def spelled_file(place: bytes, encoding: str = "latin1") -> bytes:
        file = legacy_of(stream(mapping(t=tensor(place))), STORAGES).decode("latin-1")
        return stream(mapping(f=call(name("_codecs", "encode"), text(file), text(encoding))))

    one = container_of(spelled_file(A))
    assert compare_objects(one, container_of(spelled_file(HOST)), Progress()) == [("cuda:0", "cpu")]
    assert compare_objects(one, container_of(spelled_file(A, "utf-8")), Progress()) is None
    odd = call(name("_codecs", "encode"), text("\u1234"), text("utf-8"))
    assert compare_objects(container_of(stream(odd)), container_of(stream(odd)), Progress()) == []


def test_a_device_that_no_row_shows_must_be_as_planned() -> None:
    def read(place: bytes):
        inner = call(name("mine", "Odd"), place) + b"0"
        return container_of(stream(b"}(" + text("t") + tensor(A) + inner + b"u"))

    del read
    one, other = (container_of(file_of(tensor(place), where=A)) for place in (A, A))
    devices = compare_objects(one, other, Progress())
    assert devices is not None
    rows = build_checkpoint(one), build_checkpoint(other)
    plan = plan_remap(rows[0], [parse_rule("cuda:1=cpu")])
    assert compare_devices(*rows, plan, devices) == []
    assert compare_devices(*rows, plan, [*devices, ("cuda:1", "cpu")]) == []  # a rule sends it there
    stray = [*devices, ("cuda:0", "cuda:1")]
    assert compare_devices(*rows, plan, stray) == ["A device that no row shows differs."]


def test_where_they_differ_is_said(tmp_path: Path) -> None:
    def saved(where: str, **items: bytes) -> str:
        return str(written(tmp_path, zip_of(stream(mapping(**items)), STORAGES), where))

    one = saved(
        "a",
        t=tensor(A),
        gone=tensor(A),
        old=b"K\x01",
        text=text("a"),
        d=CUDA_0,
        box=b"](" + tensor(A) + b"e",
        run=ODD_CALL,
    )
    other = saved(
        "b",
        t=tensor(HOST, numel=9),
        new=tensor(A),
        young=b"K\x02",
        text=text("b"),
        d=CPU,
        box=group(tensor(A)),
        run=b"N",
    )
    first, second = read_container(one), read_container(other)
    assert name_differences(first, second, Progress()) == [
        "gone is missing from the copy.",
        "old is missing from the copy.",
        "new is in the copy alone.",
        "young is in the copy alone.",
        "t differs: problem.",
        "box/0 differs: problem.",
        "text differs: a, in the copy b.",
        'run differs: mine.Thing("a"), in the copy None.',
        "box differs: list, in the copy tuple.",
        "mine.Thing is imported or called by one of them alone.",
    ]
    assert name_differences(first, first, Progress()) == ["The objects differ in what no row shows."]


def test_containers_of_other_formats_are_compared_byte_by_byte(tmp_path: Path) -> None:
    one, other = (
        written(
            tmp_path,
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117)
            + b"\n"
            + bytes([7, number] * 4),
            f"{number}.npy",
        )
        for number in (1, 2)
    )
    assert compare_files(str(one), str(one)).is_same
    assert compare_files(str(other), str(one)).differences == (
        "The contents differ from byte 0 of the copy on.",
    )


def test_digests_tell_a_call_from_a_tensor() -> None:
    """What is no tensor as torch writes it is entered, and never taken for one."""
    plain = tensor(A)
    assert plain.count(b"K\x00") == 1
    odd = [
        plain,
        plain.replace(b"K\x00", b"K\x01"),
        plain.replace(b"K\x00", b"G" + bytes(8)),
        plain.replace(b"\x89", b"\x88"),
        plain.replace(b"\x89", b"K\x00"),
        plain.replace(b"K\x01\x85", b"K\x01"),
        plain.replace(name("collections", "OrderedDict"), name("collections", "Counter")),
        plain.replace(name("torch", "FloatStorage"), name("torch", "HalfStorage")),
        plain.replace(name("torch", "FloatStorage"), text("FloatStorage")),
        plain.replace(text("cuda:0"), text("cuda:0" * 99)),
        plain.replace(text("storage"), text("module")),
        plain + b"}b",
        plain.replace(b"tR", b"\x89tR"),
        tensor(device(text("cuda"))),
    ]
    digests = set()
    for value in odd:
        read = read_pickle(stream(value))
        digests.add(ExactTokens(read.data, lambda: None, Kept()).of(read.root))
    assert len(digests) == len(odd)


def test_a_copy_that_torch_refuses_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (written(tmp_path, zip_of(file_of(), STORAGES), name) for name in "ab")
    assert compare_files(str(other), str(one)).is_same
    monkeypatch.setattr(copies, "faults_of", lambda container: container.path)
    assert compare_files(str(other), str(one)).differences == (
        "One of them is damaged, or refused by torch, where the other is not.",
    )


def test_other_persistent_ids_and_texts_are_told_apart() -> None:
    values = [
        group(text("module"), name("mine", "Net"), text("a.py"), text("source")) + b"Q",
        group(text("module"), name("mine", "Net"), text("b.py"), text("source")) + b"Q",
        b"U\x01a",
        b"X\x01\x00\x00\x00a",
        b"C\x01a",
        name("a b", "c"),
        name("a", "b c"),
        b"\x8f(K\x01\x90",
        b"(K\x01\x91",
        call(name("torch._C", "Generator"), text("cuda")),
        MESH + mapping(_device_type=text("x" * 65)) + b"b",
        MESH + mapping(_device_type=text("y" * 65)) + b"b",
        b"X" + struct.pack("<I", 70_000) + b"a" * 70_000,
        b"B" + struct.pack("<I", 70_000) + b"a" * 70_000,
    ]
    digests = set()
    for value in values:
        read = read_pickle(stream(value, 4))
        digests.add(ExactTokens(read.data, lambda: None, Kept()).of(read.root))
    assert len(digests) == len(values)


def test_files_of_torch_within_large_bytes_are_opened() -> None:
    def holding(place: bytes) -> bytes:
        file = legacy_of(stream(mapping(t=tensor(place))), {"0": bytes(70_000)})
        return stream(mapping(f=b"B" + struct.pack("<I", len(file)) + file), 3)

    one, other = container_of(holding(A)), container_of(holding(HOST))
    assert compare_objects(one, other, Progress()) == [("cuda:0", "cpu")]


def test_parts_of_a_folder_that_are_no_checkpoints_are_bytes(tmp_path: Path) -> None:
    run, copy = trainer(tmp_path / "run"), tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "scheduler.pt").write_bytes(zip_of(file_of(spelled(1)), STORAGES))
    (run / "scheduler.pt").write_bytes(zip_of(file_of(spelled(2)), STORAGES))
    (copy / "odd.bin").write_bytes(b"")
    (run / "odd.bin").write_bytes(b"x")
    assert compare_files(str(copy), str(run)).differences == (
        "The file odd.bin differs.",
        "The file scheduler.pt differs: v0 differs: 2, in the copy 1.",
    )
