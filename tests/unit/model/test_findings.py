"""Findings name a few tensors and count all."""

from __future__ import annotations

from inspector.model.findings import MOST_PATHS, Fix, finding
from tests.sweep import table


def test_paths_are_cut_and_counted() -> None:
    made = finding(
        "id", "note", "title", "detail", [str(number) for number in range(50)], fix=Fix(rule="*=cpu")
    )
    assert (len(made.paths), made.count, made.paths[-1]) == (MOST_PATHS, 50, str(MOST_PATHS - 1))
    assert made.fix == Fix(rule="*=cpu")
    assert finding("id", "note", "title", "detail", []).fix is None


@table(
    ("fix", "kind", "label"),
    [
        (Fix(rule="*=cpu"), "rule", "Map everything to cpu"),
        (Fix(rule="cuda:*=cuda:0"), "rule", "Map cuda:* to cuda:0"),
        (Fix(rule="path:**/step@cpu"), "rule", "Map step to cpu"),
        (Fix(rule="path:a=b@c@cpu"), "rule", "Map a=b@c to cpu"),
        (Fix(rule="\u202ex=cpu"), "rule", r"Map \u202ex to cpu"),
        (Fix(option=("mmap", "True")), "option", "Load with mmap=True"),
        (Fix(style="resume"), "style", "Show the loading code"),
    ],
)
def test_fixes_say_what_they_do(fix: Fix, kind: str, label: str) -> None:
    assert (fix.kind, fix.label) == (kind, label)
    assert len(Fix(rule=f"{'x' * 500}=cpu").label) == 80
