from __future__ import annotations

import pytest

import inspector
from inspector.diagnose.run import diagnose
from inspector.library.sources import Opened, telling_what_runs
from inspector.resources import demo_path
from tests.unit.remap.samples import call, name, stream, tensor, text

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
