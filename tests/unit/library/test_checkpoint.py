from __future__ import annotations

import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import inspector
from inspector.diagnose.run import diagnose
from inspector.library.sources import Opened, telling_what_runs
from inspector.report.colors import device_name
from inspector.resources import demo_path
from tests.corpus import CORPUS
from tests.unit.remap.samples import call, mapping, name, stream, tensor, text, written, zip_of

WEIGHT = "model/stem.conv.weight"
CUDA = text("cuda:0")


def opened(tmp_path: Path, body: bytes, name: str = "x.pth") -> inspector.Checkpoint:
    path = written(tmp_path, zip_of(stream(body), {str(number): bytes(16) for number in range(9)}))
    return inspector.open(path.rename(tmp_path / name))


def test_it_says_what_show_says(demo: inspector.Checkpoint) -> None:
    document = demo.to_dict()
    assert json.loads(demo.json()) == document
    assert document["path"] == demo.path
    assert demo.format == document["format"] == "zip"
    assert demo.file_nbytes == document["file_nbytes"]
    assert demo.parameters == document["parameters"] == 44_370
    assert demo.versions == document["versions"]
    assert demo.verdict == demo.safety.verdict == document["safety"]["verdict"]
    assert demo.safety.weights_only is document["safety"]["weights_only"]
    assert list(demo.safety.globals_to_allow) == document["safety"]["globals_to_allow"]
    assert [one.id for one in demo.findings] == [one["id"] for one in document["findings"]]
    assert [(one.path, one.parameters) for one in demo.optimizers] == [
        (one["path"], one["parameters"]) for one in document["optimizers"]
    ]
    for rows, key in (
        (demo.devices, "devices"),
        (demo.globals, "globals"),
        (demo.storages, "storages"),
        (demo.other_values, "values"),
        (demo.tensors, "tensors"),
    ):
        assert len(rows) == len(document[key]) > 0
        for row, expected in zip(rows, document[key], strict=True):
            found = {name: getattr(row, name) for name in expected}
            assert json.loads(json.dumps(found)) == expected


def test_it_is_a_mapping_of_paths(demo: inspector.Checkpoint) -> None:
    assert len(demo) == len(demo.tensors) == len(demo.keys())
    assert list(demo) == list(demo.keys()) == [one.path for one in demo.values()]
    assert dict(demo) == dict(demo.items())
    assert demo[WEIGHT] is demo.get(WEIGHT) is demo.tensors[0]
    assert demo["model.stem.conv.weight"] is demo.tensors[0]
    assert WEIGHT in demo
    assert "model.stem.conv.weight" in demo
    assert "stem" not in demo
    assert 3 not in demo
    assert demo.get("stem") is None
    assert demo._ipython_key_completions_() == list(demo.keys())


def test_what_is_not_there_is_a_key_error_that_helps(demo: inspector.Checkpoint) -> None:
    with pytest.raises(KeyError, match=r"did you mean 'model/stem\.conv\.weight'"):
        demo["model/stem.conv.weigth"]
    with pytest.raises(KeyError) as found:
        demo["\u202eabc"]
    assert found.value.args == (r"there is no tensor '\u202eabc'",)
    with pytest.raises(KeyError):
        demo[0]  # type: ignore[index]


def test_keys_that_read_alike_are_never_mistaken_for_each_other(tmp_path: Path) -> None:
    """An int and its text are two keys of a dict."""
    found = opened(tmp_path, b"}(K\x01" + tensor(CUDA) + text("1") + tensor(text("cpu"), key="1") + b"u")
    assert found.keys() == ("1~#1", "1")
    assert [row.keys for row in found.tensors] == [(1,), ("1",)]
    assert (found["1~#1"].storage, found["1"].storage) == ("0", "1")


def test_a_name_that_two_tensors_have_is_refused(tmp_path: Path) -> None:
    body = mapping(a=mapping(**{"b.c": tensor(CUDA)}), **{"a.b": mapping(c=tensor(CUDA, key="1"))})
    found = opened(tmp_path, body)
    with pytest.raises(KeyError, match=r"2 tensors are meant by 'a\.b\.c': 'a/b\.c', 'a\.b/c'"):
        found["a.b.c"]


def test_names_with_dots_are_those_of_a_state_dict(tmp_path: Path) -> None:
    """A path wins over a name with dots, and a name that means two tensors means none."""
    body = mapping(a=mapping(**{"b.c": tensor(CUDA)}), **{"a.b": mapping(c=tensor(CUDA, key="1"))})
    found = opened(tmp_path, body)
    assert found.keys() == ("a/b.c", "a.b/c")
    assert found["a/b.c"].storage == "0"
    assert found.get("a.b.c") is None
    module = inspector.open(CORPUS / "zip" / "module_custom.pt")
    (weight, *_) = (one for one in module.tensors if "._parameters" in one.keys)
    name = ".".join(str(key) for key in weight.keys if not str(key).startswith(("._par", "._mod")))
    assert module[name.removeprefix(".")] is weight


def test_the_last_steps_of_a_path_are_enough_where_one_tensor_has_them(tmp_path: Path) -> None:
    body = mapping(
        model=mapping(**{"visual.conv1.weight": tensor(CUDA), "text.xconv1.weight": tensor(CUDA, key="1")}),
        ema=mapping(**{"bias": tensor(CUDA, key="2"), "a.bias": tensor(CUDA, key="3")}),
    )
    found = opened(tmp_path, body)
    for end in ("visual.conv1.weight", "conv1.weight", "model/visual.conv1.weight"):
        assert found[end] is found.get(end) is found.tensors[0]
        assert end in found
    with pytest.raises(KeyError) as error:
        found["weight"]
    assert error.value.args == (
        "2 tensors are meant by 'weight': 'model/visual.conv1.weight', 'model/text.xconv1.weight'",
    )
    assert found.get("bias") is None
    assert found["a.bias"].storage == "3"
    for end in ("onv1.weight", "", ".weight", "conv1"):
        assert end not in found
    many = opened(tmp_path, mapping(m=mapping(**{f"l{n}.w": tensor(CUDA, key=str(n)) for n in range(9)})))
    with pytest.raises(KeyError, match=r"9 tensors are meant by 'w': 'm/l0\.w', .* 'm/l4\.w' and 4 more"):
        many["w"]


def test_a_query_finds_tensors(demo: inspector.Checkpoint) -> None:
    found = demo.filter("role:parameter device:cuda:1")
    assert found
    assert {(one.role, one.device) for one in found} == {("parameter", "cuda:1")}
    assert demo.filter("nothing-of-the-kind") == ()
    with pytest.raises(inspector.QueryError):
        demo.filter("size>10XB")


def test_a_line_says_what_it_is(demo: inspector.Checkpoint, tmp_path: Path) -> None:
    line = repr(demo)
    assert line.endswith("demo.pth': zip, 283 tensors on cuda:0, cuda:1, cpu, 788 KB; safe: weights only>")
    many = mapping(**{f"w{n}": tensor(text(f"cuda:{n}\u202e"), key=str(n)) for n in range(9)})
    hostile = repr(opened(tmp_path, many, "a\u202e\x1b[31m" + 100 * "x" + ".pth"))
    assert hostile.isprintable()
    assert len(hostile) < 400
    assert device_name("cuda:3\u202e") + " and 5 more" in hostile
    plain = repr(inspector.open(CORPUS / "safetensors" / "all.safetensors"))
    assert "safetensors, 16 tensors, 1.2 KB" in plain
    assert "0 tensors, " in repr(opened(tmp_path, mapping(), "empty.pth"))


def test_its_text_is_that_of_show(demo: inspector.Checkpoint) -> None:
    text = demo.text()
    assert "Saved on" in text
    assert "stem" in text
    assert len(demo.text(depth=1).splitlines()) < len(text.splitlines())


def test_a_notebook_shows_a_page(demo: inspector.Checkpoint) -> None:
    assert demo._repr_html_().startswith('<div class="ckpt-inspector">')


def test_functions_are_sent_to_other_processes(demo: inspector.Checkpoint) -> None:
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as pool:
        snippet = pool.submit(inspector.snippet, demo.path)
        checked = pool.submit(inspector.check, demo.path, target="cpu")
        assert snippet.result() == inspector.snippet(demo.path)
        assert repr(checked.result()) == repr(inspector.check(demo.path, target="cpu"))


def test_other_processes_can_be_asked(demo: inspector.Checkpoint) -> None:
    """`multiprocessing` sends what it returns as a pickle; numbers are read as before."""
    for one in (demo, inspector.check(demo, target="cpu"), inspector.diff(demo, demo, compare="facts")):
        sent = pickle.loads(pickle.dumps(one))
        assert repr(sent) == repr(one)
    again = pickle.loads(pickle.dumps(demo))
    assert again.to_dict() == demo.to_dict()
    assert again._opened.located == demo._opened.located
    assert repr(pickle.loads(pickle.dumps(demo.tensors[1]))) == repr(demo.tensors[1])


def descriptors() -> set[str]:
    return {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.exists()}


def test_paths_of_any_kind_are_opened_and_closed_again() -> None:
    path = demo_path()
    for given in (path, str(path)):
        found = inspector.open(given)
        assert isinstance(found, inspector.Checkpoint)
        assert found.path == str(path)
    assert str(path) not in descriptors()


def test_a_folder_is_a_checkpoint_too() -> None:
    found = inspector.open(CORPUS / "hf_sharded")
    assert found.format == "sharded"
    assert len(found) > 1


def test_what_is_no_checkpoint_is_an_error_of_the_one_tree(tmp_path: Path) -> None:
    (tmp_path / "page.pth").write_bytes(b"<!DOCTYPE html><html></html>")
    for file, kind in (
        ("page.pth", inspector.NotACheckpointError),
        ("missing.pth", inspector.ContainerError),
    ):
        with pytest.raises(kind) as found:
            inspector.open(tmp_path / file)
        assert isinstance(found.value, inspector.CheckpointError)
        assert "\n" not in str(found.value)
    with pytest.raises(TypeError):
        inspector.open(3)  # type: ignore[arg-type]
    with pytest.raises(inspector.CheckpointError):
        inspector.open("a\0b")


def test_one_line_with_nothing_invisible(demo: inspector.Checkpoint, tmp_path) -> None:
    assert repr(demo.tensors[0]) == "<Tensor 'model/stem.conv.weight': float32 [8, 3, 3, 3] on cuda:0>"
    body = mapping(**{"a\u202e\n" + 300 * "x": tensor(text("cuda\x1b[0m"))})
    path = written(tmp_path, zip_of(stream(body), {"0": bytes(16)}))
    (hostile,) = inspector.open(path).tensors
    assert repr(hostile).isprintable()
    assert len(repr(hostile)) < 250


def test_its_numbers_are_read_when_they_are_asked_for(demo: inspector.Checkpoint, copy, monkeypatch) -> None:
    found = demo["model/stem.conv.weight"].stats()
    assert (found.numel, found.nan) == (216, 0)
    monkeypatch.chdir(copy.parent)
    here = inspector.open("demo.pth")
    monkeypatch.chdir("/")
    assert here.tensors[0].stats().max == found.max
    copy.write_bytes(copy.read_bytes())
    with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
        here.tensors[0].stats()


SYSTEM = call(name("os", "system"), text("echo"))


def test_the_facts_have_the_name_that_was_given_and_the_place_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(demo_path().parent)
    opened = Opened("demo.pth")
    monkeypatch.chdir(tmp_path)
    assert opened.facts.path == "demo.pth"
    assert opened.file == opened.located.path == str(demo_path())
    assert opened.safety.verdict == "weights-only"
    assert opened.findings == diagnose(opened.facts, opened.safety)
    assert opened.seconds > 0


def test_an_error_tells_what_loading_would_run_and_takes_no_advice(tmp_path) -> None:
    path = tmp_path / "cut.pth"
    path.write_bytes(stream(SYSTEM)[:-1])
    with pytest.raises(inspector.CheckpointError) as found:
        inspector.open(path)
    assert found.value.__notes__[0].startswith("DANGEROUS: Loading it can run commands")
    assert found.value.remedy == "do not load it with any program"
    path.write_bytes(stream(call(name("mine", "run"), text("echo")))[:-1])
    with pytest.raises(inspector.CheckpointError) as found:
        inspector.open(path)
    assert found.value.__notes__[0].startswith("NEEDS YOUR TRUST: Loading it runs code")


def test_an_error_of_which_nothing_was_seen_stays_as_it_is(tmp_path) -> None:
    with pytest.raises(inspector.CheckpointError) as found:
        inspector.open(tmp_path / "missing.pth")
    assert not hasattr(found.value, "__notes__")
    for body in (text("plain"), tensor(text("cpu"))):
        (tmp_path / "cut.pth").write_bytes(stream(body)[:-1])
        with pytest.raises(inspector.CheckpointError) as found:
            inspector.open(tmp_path / "cut.pth")
        assert not hasattr(found.value, "__notes__")
    with pytest.raises(ValueError, match="another"), telling_what_runs():
        raise ValueError("another")
