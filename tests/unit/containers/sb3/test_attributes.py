from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from inspector.containers.sb3 import Attributes, InnerFiles, read_attributes
from inspector.containers.source import BytesSource
from inspector.containers.zip.directory import read_directory
from inspector.errors import ContainerError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Call, Dict, Global
from inspector.progress import Progress
from tests.builders.agents import pickled
from tests.builders.pickles import call, name, op, proto, storage, stream, text
from tests.builders.scripts import evil
from tests.builders.zips import Record, build_zip


def opened(data: bytes | dict[str, Any]) -> tuple[Attributes, BytesSource]:
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    source = BytesSource(build_zip(Record(name="data", data=data)), "a.zip")
    (entry,) = read_directory(source, DEFAULT_LIMITS).entries
    files = InnerFiles(source, DEFAULT_LIMITS, Progress())
    return read_attributes(source, entry, files, DEFAULT_LIMITS, Progress()), source


def globals_of(source: BytesSource) -> set[str]:
    return {use.dotted for program in source.programs.all() for use in program.stream.globals}


def is_whole(source: BytesSource) -> bool:
    return all(program.is_whole for program in source.programs.all())


def test_json_is_values_and_pickles_are_read_inert() -> None:
    found, source = opened(
        {"a": 1, "b": [None, {"c": 2.5}], "d": "text", "e": True, "f": pickled(name("torch.optim.adam.Adam"))}
    )
    values = dict(found.root.pairs)
    assert (values["a"], values["d"], values["e"], found.unread) == (1, "text", True, ())
    inner = values["b"]
    assert isinstance(inner, list)
    assert inner[0] is None
    assert isinstance(inner[1], Dict)
    assert isinstance(values["f"], Global)
    assert globals_of(source) == {"torch.optim.adam.Adam"}
    assert is_whole(source)


def test_base64_is_read_as_python_reads_it() -> None:
    packed = base64.b64encode(stream(proto(), evil())).decode()
    for spelled in (packed, "\n".join(packed), f"!{packed}\0", packed + "===="):
        found, source = opened({"x": {":serialized:": spelled}})
        assert isinstance(found.root.pairs[0][1], Call)
        assert "os.system" in globals_of(source)


def test_of_several_members_of_one_name_the_last_counts_and_all_are_read() -> None:
    def packed(dotted: str) -> str:
        return base64.b64encode(stream(proto(), call(dotted))).decode()

    inside = f'{{":serialized:": "{packed("a.b")}", ":serialized:": "{packed("c.d")}"}}'
    found, source = opened(f'{{"x": {inside}, "x": 3, "y": {{":serialized:": 1, ":type:": 2}}}}'.encode())
    assert globals_of(source) == {"c.d"}
    assert [key for key, _ in found.root.pairs] == ["x", "x"]
    assert found.unread == ("y",)


def test_what_cannot_be_unpickled_is_told() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    broken = {
        "no_text": {":serialized:": 5},
        "no_base64": {":serialized:": "A"},
        "no_ascii": {":serialized:": "\udc80"},
        "cut": {":serialized:": base64.b64encode(stream(proto(), evil())[:-1]).decode()},
        "outside": pickled(storage("0")),
        "deep": deep,
        "\x1b[2J": {":serialized:": None},
        "fine": {":serialized": "A"},
    }
    for key, value in broken.items():
        found, source = opened({"before": pickled(op("NONE")), key: value})
        if key == "fine":
            assert found.unread == ()
            continue
        assert len(found.unread) == 1
        assert "\x1b" not in found.unread[0]
        assert [name for name, _ in found.root.pairs] == ["before"]
        assert not is_whole(source)


def test_records_that_are_no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, words in ((b"[1]", "holds no object"), (b"{", "no valid JSON"), (b"\xff", "no valid JSON")):
        with pytest.raises(ContainerError, match=words):
            opened(data)
    monkeypatch.setattr("inspector.containers.sb3._MOST_PICKLES", 1)
    with pytest.raises(ContainerError, match="more than 1 pickled attributes"):
        opened({"a": pickled(op("NONE")), "b": pickled(evil())})
    monkeypatch.setattr("inspector.containers.sb3._MOST_NBYTES", 10)
    with pytest.raises(ContainerError, match="larger than 10 bytes"):
        opened({"a": text("x" * 20).decode("latin-1")})
