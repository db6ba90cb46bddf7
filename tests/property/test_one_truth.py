"""The window, `check`, the findings, the snippets and explanations say the same of a file on a machine.

They quote `target.simulate`; this compares every place with it, and the places with each other, for the
whole corpus and for generated modules, on machines with torch before and after 2.6, whose default is another.
"""

from __future__ import annotations

import contextlib
import functools
import re
from pathlib import Path

import pytest

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.report.checking import Check, check_document, format_check
from inspector.safety.names import allow_list
from inspector.safety.words import LEVELS
from inspector.session.device_map import map_devices
from inspector.session.export.outlook import planned
from inspector.session.present.banner import banner, safety_chip
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import Profile
from inspector.target.simulate import DefaultLoad, Judged, judge_load
from inspector.target.versions import WEIGHTS_ONLY_DEFAULT, release_of
from inspector.target.wish import parse_target
from tests.builders import zips
from tests.builders.pickles import call, dict_, list_, name, new, op, proto, storage, stream, tensor, text
from tests.corpus import varied
from tests.sweep import table
from tests.unit.session.documents import document_of

VERSIONS = ("2.4.1", "2.6.0", "2.13.0+cpu")
TARGETS = [
    replace(target, torch_version=version)
    for version in VERSIONS
    for target in (
        parse_target("cpu"),
        parse_target("cuda"),
        Profile(id="this", label="this machine"),
        Profile(id="/tmp/node.json", label="node", accelerators=(("cuda", 2),)),
    )
]
FINDINGS = {
    "weights-only": set(),
    "needs-allow-list": {"needs-allow-list"},
    "runs-code": {"runs-code"},
    "dangerous": {"dangerous-global"},
}
TORCH_LOADS = {"zip", "legacy", "tar"}
ARGUMENT = re.compile(r"weights_only=(True|False)\b")
ALLOWED = re.compile(r"until [\d,]+ names? (is|are) allowed")
LISTED = re.compile(r"add_safe_globals\((.*?)\)\n", re.DOTALL)
ON_GPU = tensor(storage(location="cuda:0"), 2)
PARAMETERS = (text("_parameters"), dict_((text("w"), ON_GPU)))
MODULE = (PARAMETERS, (text("_modules"), dict_()))
GENERATED = {
    "a module of the user's": new("mine.Net", *MODULE),
    "a module of torch's": new("torch.nn.modules.linear.Linear", *MODULE),
    "a module with a function": new("mine.Net", *MODULE, (text("act"), name("torch.nn.functional.gelu"))),
    "a module with a partial": new(
        "mine.Net", *MODULE, (text("f"), call("functools.partial", name("mine.f")))
    ),
    "a dangerous module": new("mine.Net", *MODULE, (text("f"), call("posix.system", text("id")))),
    "a set, which torch 2.4 does not know": dict_(
        (text("w"), ON_GPU), (text("s"), call("builtins.set", list_()))
    ),
    "arguments": dict_(
        (text("args"), new("argparse.Namespace", (text("a"), text("b")))), (text("w"), ON_GPU)
    ),
    "another opcode": dict_((text("w"), ON_GPU), (text("x"), op("SHORT_BINUNICODE", b"\1x"))),
}


@functools.cache
def corpus() -> list[Checkpoint]:
    """Return what can be opened, read once by the process that runs these tests."""
    found = []
    for case in varied():
        with contextlib.suppress(CheckpointError):
            found.append(open_checkpoint(str(case.path)))
    return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[Checkpoint]:
    folder = tmp_path_factory.mktemp("generated")
    made = []
    for number, value in enumerate(GENERATED.values()):
        path = folder / f"{number}.pt"
        path.write_bytes(zips.checkpoint(stream(proto(), value), {"0": bytes(8)}))
        made.append(open_checkpoint(str(path)))
    return made


def ids(target: Profile) -> str:
    return f"{Path(target.id).stem}-{target.torch_version}"


@table("target", TARGETS, ids=ids)
def test_all_places_agree_on_the_corpus(target: Profile) -> None:
    assert len(corpus()) > 40
    for checkpoint in corpus():
        agree(checkpoint, target)


@pytest.mark.parametrize("target", TARGETS, ids=ids)
def test_all_places_agree_on_modules(target: Profile, generated: list[Checkpoint]) -> None:
    ways = {agree(checkpoint, target).way for checkpoint in generated}
    is_old = target.torch_version == "2.4.1"
    assert ways >= ({"never", "unchecked"} if is_old and target.count("cuda") else {"never"})
    assert is_old or ways >= {"names", "full", "never"}


def agree(checkpoint: Checkpoint, target: Profile) -> DefaultLoad:
    load = judge_load(checkpoint, target)
    where = f"{checkpoint.path} on {ids(target)}: {load.way}"
    assert load.safety.torch_version == allow_list(target.torch_version).torch_version
    _check(checkpoint, target, load, where)
    _findings(checkpoint, target, load, where)
    _banner(checkpoint, target, load, where)
    if checkpoint.format in TORCH_LOADS:
        _snippets(checkpoint, target, load, where)
    return load


def _check(checkpoint: Checkpoint, target: Profile, load: DefaultLoad, where: str) -> None:
    check = Check(checkpoint=checkpoint, target=target, load=load, findings=(), explanation=None)
    document = check_document(check)
    assert document["loads"] is load.loads is (load.failure is None), where
    assert document["error"] == (None if load.failure is None else load.failure.message), where
    assert document["safe"] is load.is_safe is (load.safety.verdict == "weights-only"), where
    said = " ".join(format_check(check).split())
    assert ("DOES NOT LOAD" in said or "IS NOT KNOWN TO LOAD" in said) is not load.loads, where
    assert f"{LEVELS[load.safety.verdict].upper()}: " in said, where
    asks = load.way == "names" and release_of(target.torch_version) >= WEIGHTS_ONLY_DEFAULT
    assert (ALLOWED.search(said) is not None) is asks, where
    if load.failure is not None and load.safety.verdict != "needs-allow-list":
        assert "safe_globals" not in said, where


def _findings(checkpoint: Checkpoint, target: Profile, load: DefaultLoad, where: str) -> None:
    found = {finding.id: finding for finding in diagnose(checkpoint, load.safety, target)}
    verdicts = found.keys() & {"needs-allow-list", "runs-code", "dangerous-global"}
    assert verdicts == FINDINGS[load.safety.verdict], where
    module = found.get("whole-module")
    if module is not None and load.safety.verdict != "dangerous":
        needs = "those classes allowed" if load.code.weights_only else "weights_only=False"
        assert f"Loading it needs {needs}" in module.detail, where


def _banner(checkpoint: Checkpoint, target: Profile, load: DefaultLoad, where: str) -> None:
    document = document_of(checkpoint)
    findings = diagnose(checkpoint, load.safety, target)
    routes = map_devices(document, target, ())
    after = judge_load(planned(checkpoint, routes.plan), target)
    shown = banner(document, Judged(checkpoint=checkpoint, target=target, load=load), routes, after, findings)
    is_damaged = any(finding.severity == "error" for finding in findings)
    said = shown.headline
    assert said.startswith("Dangerous: ") is (load.way == "never"), where
    says_loads = ". Loads" in said
    assert says_loads is (load.loads and load.way != "never" and not is_damaged), (where, said)
    assert ("runs whatever the file asks for" in said) <= (load.way == "unchecked"), where
    if load.way == "never":
        assert shown.tone == "bad"
    elif load.last_error is not None:
        assert (shown.error_text is None) is False, where
        assert shown.tone == "bad", where
    elif not is_damaged:
        assert (ALLOWED.search(said) is not None) is (load.way == "names"), where
        by_torch = load.safety.archive is None
        assert ("weights_only=False" in said) is (load.way == "full") or not by_torch, where
        assert (shown.tone == "good") <= (load.way == "as-it-is"), where
    assert (safety_chip(load.safety).tone == "good") is load.is_safe, where


def _snippets(checkpoint: Checkpoint, target: Profile, load: DefaultLoad, where: str) -> None:
    for style in styles(checkpoint):
        code = render(checkpoint, style=style.id, target=target, path="x.pt")
        assert set(ARGUMENT.findall(code)) <= {str(load.code.weights_only)}, (where, style.id, code)
        listed = LISTED.findall(code)
        if "torch.load(" in code:
            assert ARGUMENT.search(code), (where, style.id, code)
            assert bool(listed) is bool(load.safety.to_allow), (where, style.id, code)
        for allowed in load.safety.to_allow if listed else ():
            assert allowed.rpartition(".")[2] in listed[0], (where, style.id)


@pytest.mark.parametrize("target", TARGETS, ids=ids)
def test_the_explanation_of_torchs_refusal_says_the_same(
    target: Profile, generated: list[Checkpoint]
) -> None:
    seen = 0
    for checkpoint in [*corpus(), *generated]:
        load = judge_load(checkpoint, target)
        ours = FINDINGS[load.safety.verdict]
        if load.failure is None or load.failure.finding not in ours:
            continue
        said = explain_error(load.failure.message, checkpoint, target)
        seen += 1
        assert said.fits == "yes", checkpoint.path
        assert said.finding in ours, (checkpoint.path, said)
    assert (seen > 15) is (target.torch_version != "2.4.1")
