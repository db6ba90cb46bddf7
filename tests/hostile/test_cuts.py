"""A file with a payload, cut off anywhere behind it: whatever is said of it, the payload is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.unread import judge_unread
from inspector.safety.verdict import judge
from tests.builders import legacy, tars
from tests.builders.pickles import dict_, list_, name, number, op, proto, stream, text, tuple_
from tests.hostile.archives import EVIL, STORED, archive, pickled
from tests.hostile.streams import PAYLOAD, long_int
from tests.sweep import table

DROPPED = PAYLOAD + op("POP")
HONEST = stream(proto(), dict_())
MAGIC = stream(proto(), DROPPED, long_int(legacy.MAGIC))


def _tar() -> bytes:
    said = tuple_(number(1), text("cpu"), name("torch.FloatStorage"))
    storages = stream(proto(), number(1)) + stream(proto(), DROPPED, said) + bytes(8)
    members = {
        "pickle": HONEST,
        "tensors": stream(proto(), number(0)),
        "storages": storages + stream(list_()),
    }
    return tars.archive(members, mtime=0)[:5000]


FILES: dict[str, Callable[[], bytes]] = {
    "magic number": lambda: legacy.checkpoint(HONEST, magic=MAGIC),
    "system information": lambda: legacy.checkpoint(HONEST, info=stream(proto(), DROPPED, dict_())),
    "storage keys": lambda: legacy.checkpoint(HONEST, keys=stream(proto(), DROPPED, list_())),
    "zip": lambda: archive(pickled(EVIL), STORED),
    "tar": _tar,
    "plain pickle": lambda: EVIL + HONEST + b"garbage",
}


def verdict(path: Path) -> str | None:
    try:
        return judge(open_checkpoint(str(path))).verdict
    except CheckpointError as error:
        seen = judge_unread(error)
        return None if seen is None else seen.verdict


@table("what", FILES)
def test_payload_is_told_wherever_the_file_ends_behind_it(tmp_path: Path, what: str) -> None:
    data, path = FILES[what](), tmp_path / "file.pt"
    behind = data.index(PAYLOAD) + len(PAYLOAD)
    silent = []
    for nbytes in range(behind, len(data) + 1, 1 + len(data) // 400):
        path.write_bytes(data[:nbytes])
        if verdict(path) != "dangerous":
            silent.append(nbytes)
    assert silent == []
