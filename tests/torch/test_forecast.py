"""What `check` foretells of files made at random, beside torch: see `forecast`; all of them in a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.pickles import call, dict_, number, text, tuple_
from tests.hostile.constructed import legacy_file, zip_file
from tests.hostile.palette import FALSE, OD, floating, stored
from tests.sweep import tries
from tests.torch.forecast import LOADS, rows, table
from tests.torch.forecast_files import Made, made

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
SEED = 20261123


def test_what_is_foretold_of_files_made_at_random(tmp_path: Path) -> None:
    found = rows(made(tries(300, 3000), SEED), tmp_path)
    loads = [row for row in found if row.theirs == LOADS]
    assert len(loads) > 0.1 * len(found)
    assert sum(row.agrees for row in found) >= 0.995 * len(found), table(found)
    assert [row for row in found if row.is_false_promise] == [], table(found)


GEOMETRIES = {
    "past its storage": ((5,), (1,), 0),
    "of 2^40": ((1 << 40,), (1,), 0),
    "of a negative size": ((-1,), (1,), 0),
    "of a negative step": ((4,), (-1,), 0),
    "at a negative place": ((1,), (1,), -1),
    "of half a size": ((2.5,), (1,), 0),
    "at half a place": ((1,), (1,), 0.5),
    "of fewer steps than sizes": ((2, 2), (1,), 0),
}


def impossible(form: str, size: tuple[float, ...], stride: tuple[int, ...], offset: float) -> bytes:
    """A file with one tensor of four floats, seen so."""
    wrap = legacy_file if form == "legacy" else zip_file
    numbers = [
        [floating(one) if isinstance(one, float) else number(one) for one in ones] for ones in (size, stride)
    ]
    where = floating(offset) if isinstance(offset, float) else number(offset)
    given = (
        stored("s-float", legacy=form == "legacy"),
        where,
        tuple_(*numbers[0]),
        tuple_(*numbers[1]),
        FALSE,
        OD,
    )
    return wrap(dict_((text("w"), call("torch._utils._rebuild_tensor_v2", *given))))


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_tensors_that_cannot_be_are_not_called_loadable(tmp_path: Path, form: str) -> None:
    files = [
        Made(f"0 {form}: {title}", impossible(form, *given), False) for title, given in GEOMETRIES.items()
    ]
    found = rows(files, tmp_path)
    assert len(found) == 2 * len(GEOMETRIES)
    for row in found:
        assert (row.ours != LOADS, row.theirs != LOADS) == (True, True), row
        assert row.same_error, row
