"""Files of torch's own, damaged: what `recover` saves, loaded by torch, against what was intact.

What is intact is found without any code of ours: the bytes of each tensor are looked up in the whole file,
and a tensor counts as intact when the damaged file has the same bytes in the same place. `--update-golden`
writes the table into docs/recovery.md.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from inspector.errors import CheckpointError, DamagedError
from inspector.remap.recover import Recovery, recover
from tests.corpus import Case, varied
from tests.sweep import IS_SWEEP
from tests.torch.sameness import differences

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

DOCUMENT = Path(__file__).parents[2] / "docs" / "recovery.md"
BEGIN, END = "<!-- figures: written by pytest --update-golden -->", "<!-- end of figures -->"
CUTS = (10, 50, 90, 99)
Tree = dict[str, torch.Tensor]


# --- files --------------------------------------------------------------------------------------------------


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def training() -> dict:
    """What a training loop saves: a model, its optimizer's state by number, a schedule, random states."""
    sizes = [(16, 3, 3, 3), (16,), (64, 16, 3, 3), (64,), (128, 64), (128,), (1000, 128), (1000,)]
    return {
        "model": {f"layer{number}.weight": noise(*size) for number, size in enumerate(sizes)},
        "optimizer": {
            "state": {
                number: {"step": noise(), "exp_avg": noise(*size), "exp_avg_sq": noise(*size)}
                for number, size in enumerate(sizes)
            },
            "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": list(range(len(sizes)))}],
        },
        "rng": [torch.randint(0, 255, (5056,), dtype=torch.uint8) for _ in range(2)],
        "epoch": 7,
        "config": {"name": "net", "sizes": sizes},
    }


def many() -> dict:
    return {f"blocks.{number}.attn.weight": noise(16, 16 + number % 5) for number in range(100)}


def kinds() -> dict:
    """Other dtypes, parameters, views of one storage, a sparse tensor, lists and tuples."""
    shared = noise(500, 40)
    return {
        "half": noise(300, 50, dtype=torch.bfloat16),
        "long": torch.randint(-(2**40), 2**40, (4000,)),
        "bool": torch.rand(999) > 0.5,
        "complex": torch.randn(700, dtype=torch.complex64),
        "parameter": torch.nn.Parameter(noise(64, 64)),
        "views": [shared[:10], shared[10:], shared.t()],
        "tuple": (noise(100, 100), ("text", noise(10, 33))),
        "sparse": torch.sparse_coo_tensor(torch.randint(0, 50, (2, 500)), noise(500), (50, 50)),
        "last": noise(200, 200),
    }


MAKERS: dict[str, Callable[[], dict]] = {"training": training, "100 tensors": many, "all kinds": kinds}


class Sample(NamedTuple):
    """A file that torch saved, what it loads from it, and where the bytes of each tensor are."""

    name: str
    data: bytes
    tensors: Tree
    places: dict[str, list[tuple[int, int]]]


def flat(value: object, path: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict | list | tuple) and id(value) not in above:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(item, f"{path}/{key}", (*above, id(value)))


def parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]


def raw(tensor: torch.Tensor) -> bytes:
    """All bytes of the storage that a tensor views."""
    storage = tensor.untyped_storage()
    return bytes(torch.tensor([], dtype=torch.uint8).set_(storage).numpy())


def sample(name: str, container: str) -> Sample:
    torch.manual_seed(3)
    buffer = io.BytesIO()
    torch.save(MAKERS[name](), buffer, _use_new_zipfile_serialization=container == "zip")
    data = buffer.getvalue() if container == "zip" else in_fixed_order(buffer.getvalue())
    tensors = dict(flat(torch.load(io.BytesIO(data), weights_only=True)))
    places = {}
    for path, tensor in tensors.items():
        places[path] = []
        for part in map(raw, parts(tensor)):
            assert data.count(part) == 1 or len(part) < 8, path  # noise: each tensor is found where it is
            places[path].append((data.rindex(part), len(part)))
    return Sample(f"{name}, {container}", data, tensors, places)


def in_fixed_order(data: bytes) -> bytes:
    """A legacy file with numbers for keys: torch takes addresses, and orders the storages by them.

    Where memory lies, and how many digits that takes, is the machine's: here they come as they are named.
    """
    import pickle

    def spelled(text: str) -> bytes:
        return pickle.BINUNICODE + struct.pack("<I", len(text)) + text.encode()

    places, keys, object_end = read_legacy(data)
    head = data[:object_end]
    keys = sorted(keys, key=lambda key: head.index(spelled(key)))
    names = [f"{number:015d}" for number in range(len(keys))]
    for key, name in zip(keys, names, strict=True):
        head = head.replace(spelled(key), spelled(name))
    blocks = [data[start - 8 : start + nbytes] for start, nbytes in map(places.get, keys)]
    return b"".join([head, pickle.dumps(names, 2), *blocks])


class Anything:
    """Whatever a pickle asks for: it is made of anything and filled with anything."""

    def __new__(cls, *_: object) -> object:
        return object.__new__(cls)

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass

    def __setitem__(self, *_: object) -> None:
        pass


def read_legacy(data: bytes) -> tuple[dict[str, tuple[int, int]], list[str], int]:
    """Where each storage is, the keys by first use, and where the objects end; by Python's unpickler."""
    import pickle

    ids: dict[str, tuple] = {}

    class Reader(pickle.Unpickler):
        def find_class(self, _module: str, name: str) -> type:
            return type(name, (Anything,), {})

        def persistent_load(self, pid: tuple) -> tuple:
            if pid[0] == "storage":
                ids.setdefault(str(pid[2]), pid)
            return pid

    stream = io.BytesIO(data)
    for _ in range(4):
        Reader(stream).load()
    object_end = stream.tell()
    keys = Reader(stream).load()
    found, pos = {}, stream.tell()
    for key in keys:
        itemsize = getattr(torch, ids[key][1].__name__)().element_size()
        nbytes = struct.unpack_from("<q", data, pos)[0] * itemsize
        found[key] = (pos + 8, nbytes)
        pos += 8 + nbytes
    return found, list(ids), object_end


# --- damage -------------------------------------------------------------------------------------------------


def cut(percent: int) -> Callable[[bytes], bytes]:
    return lambda data: data[: len(data) * percent // 100]


def zeros_from(percent: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        start = len(data) * percent // 100
        return data[:start] + bytes(len(data) - start)

    return damage


def hole(data: bytes) -> bytes:
    start, nbytes = len(data) * 40 // 100, len(data) * 5 // 100
    return data[:start] + bytes(nbytes) + data[start + nbytes :]


def flipped(data: bytes) -> bytes:
    place = len(data) * 60 // 100
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def without_record(data: bytes) -> bytes:
    """The archive without one of its storages, as a program that lost it would write the directory."""
    at = data.index(b"PK\1\2")
    for _ in range(8):
        at = data.index(b"PK\1\2", at + 4)
    (start,) = struct.unpack_from("<L", data, at + 42)
    changed = bytearray(data)
    # Renamed in both headers to what nobody asks for, its bytes are as good as gone.
    for name in (start + 30, at + 46):
        place = changed.index(b"/data/", name)
        changed[place : place + 6] = b"/lost/"
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    **{f"cut at {percent} %": cut(percent) for percent in CUTS},
    "zeros from 50 % on": zeros_from(50),
    "hole of zeros, 5 %": hole,
    "one bit flipped": flipped,
    "one record lost": without_record,
}


class Outcome(NamedTuple):
    """What became of a damaged file, by the paths of tensors; of the `intact` the bytes are in place."""

    file: str
    damage: str
    tensors: frozenset[str]
    intact: frozenset[str]
    saved: frozenset[str]
    equal: frozenset[str]
    lost: frozenset[str]
    nbytes: int
    error: str


def is_intact(before: bytes, after: bytes, places: list[tuple[int, int]]) -> bool:
    return all(
        before[start : start + nbytes] == after[start : start + nbytes]
        and (start + nbytes <= len(after) or not nbytes)
        for start, nbytes in places
    )


def outcome(folder: Path, made: Sample, damage: str) -> Outcome:
    damaged = DAMAGES[damage](made.data)
    path, out = folder / "damaged.pt", folder / "saved.pt"
    path.write_bytes(damaged)
    if damage == "one record lost":  # its bytes are there, and nobody can know whose they were
        intact = frozenset(path for path in made.tensors if not _is_renamed(made, damaged, path))
    else:
        intact = frozenset(p for p, places in made.places.items() if is_intact(made.data, damaged, places))
    try:
        done: Recovery = recover(str(path), out, overwrite=True)
    except CheckpointError as error:
        nothing = frozenset[str]()
        return Outcome(
            made.name, damage, frozenset(made.tensors), intact, nothing, nothing, nothing, 0, error.what
        )
    found = dict(flat(torch.load(out, weights_only=True)))
    return Outcome(
        file=made.name,
        damage=damage,
        tensors=frozenset(made.tensors),
        intact=intact,
        saved=frozenset(found),
        equal=frozenset(
            path for path, tensor in found.items() if not differences(made.tensors[path], tensor)
        ),
        lost=frozenset(f"/{row.path}" for row in done.lost),
        nbytes=done.storage_nbytes,
        error="",
    )


def _is_renamed(made: Sample, damaged: bytes, path: str) -> bool:
    place = damaged.index(b"/lost/")
    start = place - damaged[:place][::-1].index(b"PK\3\4"[::-1]) - 4
    following = damaged.index(b"PK\3\4", start + 4)
    return any(start < offset < following for offset, _ in made.places[path])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    folder = tmp_path_factory.mktemp("recovery")
    return [
        outcome(folder, made, damage)
        for name in MAKERS
        for container in ("zip", "legacy")
        for made in [sample(name, container)]
        for damage in DAMAGES
        if container == "zip" or damage != "one record lost"
    ]


def test_zip_gives_back_exactly_what_is_intact(outcomes: list[Outcome]) -> None:
    compared = 0
    for row in outcomes:
        if row.file.endswith("zip") and not row.error:
            assert row.saved == row.equal == row.intact, (row.file, row.damage)
            assert row.lost == row.tensors - row.saved, (row.file, row.damage)
            compared += 1
    assert compared > 18


def test_legacy_gives_back_all_that_is_intact(outcomes: list[Outcome]) -> None:
    """It has no checksums: a tensor with a hole in it passes, and only there."""
    for row in outcomes:
        if row.file.endswith("legacy") and not row.error:
            assert row.saved >= row.intact, (row.file, row.damage)
            assert row.equal == row.saved & row.intact, (row.file, row.damage)
            assert row.lost == row.tensors - row.saved, (row.file, row.damage)
            if row.damage.startswith("cut"):
                assert row.saved == row.intact


def test_nothing_is_saved_only_where_nothing_has_a_name(outcomes: list[Outcome]) -> None:
    failed = [(row.file, row.damage) for row in outcomes if row.error]
    assert failed
    for row in outcomes:
        if row.error:
            assert "cut off" in row.error or "none of the file's" in row.error, row


def test_damaged_files_stop_torch_or_give_wrong_numbers(tmp_path: Path) -> None:
    """What recover is compared with: without it nothing is left of them."""
    for container in ("zip", "legacy"):
        made = sample("training", container)
        for percent in CUTS:
            path = tmp_path / "cut.pt"
            path.write_bytes(cut(percent)(made.data))
            with pytest.raises((RuntimeError, EOFError)):
                torch.load(path, weights_only=True)
    path.write_bytes(flipped(sample("training", "zip").data))
    found = dict(flat(torch.load(path, weights_only=True)))
    assert [name for name, tensor in found.items() if differences(made.tensors[name], tensor)]


# --- genuine files ------------------------------------------------------------------------------------------

# torch reads the sizes of nested tensors before they are there, and fails or not by chance.
BY_CHANCE = "legacy/nested.pt"
GENUINE: list[Case] = [
    case
    for case in varied()
    if case.container in {"zip", "legacy"}
    and case.weights_only
    and case.folder != "hostile"
    and case.name != BY_CHANCE
]


def storages_of(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each storage's bytes and checksum are in a whole file, by Python's own zipfile and unpickler."""
    if data[:2] != b"PK":
        return read_legacy(data)[0]
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            name_nbytes, extra_nbytes = struct.unpack_from("<2H", data, info.header_offset + 26)
            folder, _, key = info.filename.partition("/")[2].partition("/")
            if folder in {"data", "tensors"}:
                start = info.header_offset + 30 + name_nbytes + extra_nbytes
                found[key] = (start, info.compress_size + (16 if info.flag_bits & 8 else 0))
    return found


class Genuine(NamedTuple):
    """What became of the genuine files, each cut four times: storages that are whole, and are saved.

    `nameless` cuts leave nothing with a name; files are `parted` where parts of tensors lost another part.
    """

    files: int
    nameless: int
    intact: int
    saved: int
    parted: frozenset[str]


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Genuine:
    """Every genuine file, cut at each length; what is saved must equal the original."""
    folder = tmp_path_factory.mktemp("genuine")
    path, out = folder / "cut.pt", folder / "out.pt"
    saved = intact = nameless = 0
    parted = set()
    for case in GENUINE:
        data = case.path.read_bytes()
        whole = dict(flat(torch.load(case.path, weights_only=True, map_location="cpu")))
        places = storages_of(data)
        for percent in CUTS:
            path.write_bytes(cut(percent)(data))
            try:
                done = recover(str(path), out, overwrite=True)
            except DamagedError:
                nameless += 1
                continue
            found = dict(flat(torch.load(out, weights_only=True, map_location="cpu")))
            for name, tensor in found.items():
                assert dense(whole[name]) == dense(tensor), (case.name, percent, name)
            size = path.stat().st_size
            there = sum(start + nbytes <= size or not nbytes for start, nbytes in places.values())
            assert done.storages <= there, case.name
            saved, intact = saved + done.storages, intact + there
            if done.storages < there:
                parted.add(case.name)
    return Genuine(len(GENUINE), nameless, intact, saved, frozenset(parted))


def test_genuine_files_of_all_generations_give_back_what_is_whole(genuine: Genuine) -> None:
    assert genuine.files > (80 if IS_SWEEP else 20)
    assert genuine.saved > 0.99 * genuine.intact > 3000
    composite = ("sparse", "quantized", "nested", "misc")  # the last are of many kinds
    assert all(any(word in name for word in composite) for name in genuine.parted), genuine.parted


def dense(tensor: torch.Tensor) -> bytes:
    if tensor.is_meta:
        return repr(tensor.shape).encode()
    plain = tensor.int_repr() if tensor.is_quantized else tensor
    plain = plain.to_dense() if plain.layout != torch.strided else plain
    return raw(plain.contiguous().clone())


# --- the table ----------------------------------------------------------------------------------------------


def test_the_table_is_the_documents(
    outcomes: list[Outcome], genuine: Genuine, request: pytest.FixtureRequest
) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    figures, after = rest.split(END)
    # Only a sweep puts all genuine files through it.
    said = sentence(genuine) if IS_SWEEP else figures.strip().partition("\n\n")[2]
    written = f"{before}{BEGIN}\n\n{table(outcomes)}\n\n{said}\n\n{END}{after}"
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(written, encoding="utf-8")
    assert written == DOCUMENT.read_text(encoding="utf-8"), "run pytest --update-golden and review"


def table(outcomes: list[Outcome]) -> str:
    heads = ("Container", "Damage", "Tensors", "Intact", "Saved", "Byte-equal")
    rows = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    kinds = dict.fromkeys((row.file.rpartition(", ")[2], row.damage) for row in outcomes)
    for container, damage in kinds:
        same = [row for row in outcomes if row.file.endswith(f", {container}") and row.damage == damage]
        counts = [
            sum(len(found) for found in column)
            for column in zip(*((row.tensors, row.intact, row.saved, row.equal) for row in same), strict=True)
        ]
        rows.append(f"| {' | '.join((container, damage, *map(str, counts)))} |")
    return "\n".join(rows)


def sentence(genuine: Genuine) -> str:
    files, cuts, lost = genuine.files, len(CUTS) * genuine.files, genuine.intact - genuine.saved
    return (
        f"Besides, {files} genuine files (zip and legacy, torch 1.0 to 2.13) are cut at each of these "
        f"lengths, {cuts} cuts in all.\n"
        f"In {genuine.nameless} of them no tensor is whole, or the description itself is cut: most of these "
        "files are a few kilobytes, and\n"
        f"half of that is description. After the others {genuine.intact:,} storages are whole, "
        f"{genuine.saved:,} of them were saved, all equal to the\n"
        f"original; the other {lost} are parts of sparse or quantized tensors of which another part is lost."
    )
