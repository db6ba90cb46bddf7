"""Each tensor of a file has a path of its own, and that finds it again wherever a path is asked for."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inspector.errors import PlanError
from inspector.library.checkpoint import open as open_library
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.forms import Patterns
from inspector.remap.plan import plan_remap
from inspector.remap.rules import literal_pattern, parse_rule, path_of
from inspector.report.values import choose_tensors
from tests.sweep import tries
from tests.unit.report.outline.test_patterns import wrong_rows

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

LONG = "layer" + "x" * 600
KEYS: tuple[Any, ...] = (
    *("1", 1, -1, "-1", None, "None", True, "True", 1.5, "1.5", (1, 2), "(1, 2)", b"a", "1 B: 61"),
    *("a", "b", "a.b", "a/b", "a~1b", "a~", "~", "~#1", "1~#1", "", " ", " a", "a ", "a\n", "\\n", "a@cpu"),
    *(
        "a*",
        "a?",
        "a[*]",
        "a[[]",
        "[]",
        "[",
        "**",
        "a[0]",
        "-a",
        "A",
        "\u202ea",
        "\\u202ea",
        "\\",
        "\\\u202ea",
    ),
    *("\u00e9", "e\u0301", "\ud800", "\\ud800", "\U000e0001", "\\U000e0001", "\u540d", "\uff11", "\u00a0"),
    *(LONG, LONG + ".a", LONG + ".b", LONG + "1" + LONG, LONG + "2" + LONG, "\n" * 600, "\n" * 601),
)
TREES = st.recursive(
    st.none(),
    lambda inside: st.dictionaries(st.sampled_from(KEYS), inside, min_size=1, max_size=6),
    max_leaves=12,
).filter(lambda value: value is not None)


def with_tensors(value: Any) -> Any:
    """A tensor in each place that has nothing, all of them different."""
    count = iter(range(1000))

    def fill(value: Any) -> Any:
        if value is None:
            return torch.full((2,), float(next(count)))
        return {key: fill(item) for key, item in value.items()}

    return fill(value)


def check(path: str) -> None:
    checkpoint = open_checkpoint(path)
    paths = [row.path for row in checkpoint.tensors]
    assert len(set(paths)) == len(paths)
    assert wrong_rows(checkpoint) == []
    library = open_library(path)
    for row, place in enumerate(paths):
        is_copy = path_of(place) in paths and path_of(place) != place
        for pattern in [literal_pattern(place)] + ([place] if place and not is_copy else []):
            assert choose_tensors(checkpoint, [pattern]) == [row]
            assert set(moved(checkpoint, pattern)) == {row}
            chosen = Patterns([pattern], checkpoint)
            assert [number for number, one in enumerate(paths) if chosen.cover(one)] == [row]
        assert library[place].path == place


def moved(checkpoint: Checkpoint, pattern: str) -> dict[int, str]:
    return plan_remap(checkpoint, [parse_rule(f"path:{pattern}@cuda:0")]).tensors


@settings(max_examples=tries(40, 2000), deadline=None, suppress_health_check=list(HealthCheck))
@given(value=TREES, is_zip=st.booleans())
@example(value=dict.fromkeys(KEYS), is_zip=True)
@example(value={key: dict.fromkeys(("w", key)) for key in KEYS}, is_zip=True)
@example(value={"optimizer": {"state": {key: {"exp_avg": None} for key in KEYS}}}, is_zip=False)
def test_each_path_finds_its_tensor_alone(value: Any, is_zip: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a.pth"))
        torch.save(with_tensors(value), path, _use_new_zipfile_serialization=is_zip)
        check(path)


def test_what_an_exact_path_means_is_said_by_the_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a.pth"))
        torch.save({"a*": torch.zeros(1), "ab": torch.zeros(1), "a[*]": torch.zeros(1)}, path)
        checkpoint = open_checkpoint(path)
        assert choose_tensors(checkpoint, ["a*"]) == [0]
        assert choose_tensors(checkpoint, ["a[*]"]) == [0]
        assert choose_tensors(checkpoint, ["?b"]) == [1]
        with pytest.raises(PlanError, match="no tensor of the file"):
            choose_tensors(checkpoint, ["b*"])
