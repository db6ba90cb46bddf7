"""Every fix that is offered for a genuine file is taken: by the planner, by the command line, by a load."""

from __future__ import annotations

import ast
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.records import replace
from inspector.remap.plan import plan_remap, refuse_unmatched
from inspector.remap.rules import parse_rule
from inspector.report.remedies import Remedy, remedies_for
from inspector.snippet.styles.table import styles
from inspector.target.call import TagMap, load_call
from inspector.target.profile import Profile, presets
from inspector.target.simulate import Judged, first_failure, judge_load
from inspector.target.wish import parse_target
from tests.corpus import cases
from tests.sweep import put_through, tries

_ON_DEVICES = {
    "cuda-unavailable",
    "cuda-index-out-of-range",
    "mps-unavailable",
    "xpu-unavailable",
    "unknown-device",
}


MACHINES = (*presets(), parse_target("2xcuda:1"), parse_target("cuda:3"))


def opened(path: Path) -> Checkpoint | None:
    try:
        return open_checkpoint(str(path))
    except CheckpointError:
        return None


def found_on(checkpoint: Checkpoint, target: Profile) -> tuple[Judged, tuple[Finding, ...]]:
    load = judge_load(checkpoint, target)
    judged = Judged(checkpoint=checkpoint, target=target, load=load)
    return judged, diagnose(checkpoint, load.safety, target)


def remapped(checkpoint: Checkpoint, rule: str) -> Checkpoint:
    """The rows of a copy."""
    rules = (parse_rule(rule),)
    refuse_unmatched(rules, checkpoint)
    plan = plan_remap(checkpoint, rules)
    assert not plan.is_empty
    tensors = (
        row._replace(device=plan.tensors.get(index, row.device))
        for index, row in enumerate(checkpoint.tensors)
    )
    storages = (row._replace(device=plan.storages.get(row.key, row.device)) for row in checkpoint.storages)
    return replace(checkpoint, tensors=tuple(tensors), storages=tuple(storages))


@pytest.mark.wide
def test_each_fix_is_taken_and_removes_what_was_found() -> None:
    def check(case: object) -> None:
        checkpoint = opened(case.path)
        for target in MACHINES if checkpoint is not None else ():
            judged, findings = found_on(checkpoint, target)
            for finding in findings:
                if finding.fix is not None and finding.fix.kind == "rule":
                    copy = remapped(checkpoint, finding.fix.rule)
                    left = {one.id: one.count for one in found_on(copy, target)[1]}
                    assert left.get(finding.id, 0) < max(finding.count, 1), (target.id, finding.id)
                    # What stops the load is gone, but for what has to do with no device.
                    failure = first_failure(
                        copy, target, replace(load_call(copy, judged.load.safety), refusal=None)
                    )
                    assert finding.id not in _ON_DEVICES or failure is None or not failure.device, finding.fix
                elif finding.fix is not None and finding.fix.style:
                    assert finding.fix.style in {style.id for style in styles(checkpoint)}, (
                        target.id,
                        finding.id,
                    )

    put_through(check, cases(), lambda case: case.name, every=3)


def lines(checkpoint: Checkpoint) -> Iterator[tuple[Judged, Finding, tuple[Remedy, ...]]]:
    """All lines for a file, each set of lines once."""
    known = set()
    for target in MACHINES:
        judged, findings = found_on(checkpoint, target)
        for finding in findings:
            remedies = remedies_for(finding.fix, judged)
            if remedies and (target.id, remedies) not in known:
                known.add((target.id, remedies))
                yield judged, finding, remedies


@pytest.mark.wide
def test_the_first_call_loads() -> None:
    """What the simulation says; what torch says is asked in `tests/torch`."""

    def check(case: object) -> None:
        checkpoint = opened(case.path)
        for judged, finding, remedies in lines(checkpoint) if checkpoint is not None else ():
            kinds = [one.kind for one in remedies]
            order = ["load", "code", "copy", "in-place", "recover"]
            assert kinds == sorted(kinds, key=order.index)
            for one in remedies:
                if one.kind != "load":
                    continue
                call = ast.parse(one.text, mode="eval").body
                assert ast.literal_eval(call.args[0]) == str(case.path)
                (given,) = call.keywords
                value = ast.literal_eval(given.value)
                place = TagMap(pairs=tuple(value.items())) if isinstance(value, dict) else value
                how = replace(load_call(checkpoint, judged.load.safety), map_location=place)
                assert first_failure(checkpoint, judged.target, how) is None, (finding.id, one.text)

    put_through(check, cases(), lambda case: case.name, every=3)


@pytest.mark.wide
@pytest.mark.slow
def test_each_command_does_what_it_says(cli: Callable[..., object], tmp_path: Path) -> None:
    """A copy and a change in place are made, and then what was found is gone."""

    def check(case: object) -> None:
        name = "a b'c" + case.path.suffix
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        shutil.copy(case.path, folder / name)
        checkpoint = opened(folder / name)
        for judged, finding, remedies in lines(checkpoint) if checkpoint is not None else ():
            for one in remedies:
                if one.language == "python":
                    continue
                program, *words = shlex.split(one.text)
                assert program == "checkpoint-inspector"
                answer = cli(*words)
                assert answer.code == 0, (one.text, answer.err)
                if one.kind in {"copy", "in-place"}:
                    made = Path(words[words.index("-o") + 1]) if one.kind == "copy" else folder / name
                    left = {
                        found.id: found.count
                        for found in found_on(open_checkpoint(str(made)), judged.target)[1]
                    }
                    assert left.get(finding.id, 0) < max(finding.count, 1), one.text
                    if one.kind == "copy":
                        made.unlink()
                    else:
                        assert cli("remap", folder / name, "--undo").code == 0

    every = [case for case in cases() if case.path.is_file()]
    put_through(check, every, lambda case: case.name, every=tries(12, 1))
