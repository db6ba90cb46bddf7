from __future__ import annotations

import pytest

from inspector.errors import PlanError
from inspector.remap.forms import choose_shape
from inspector.resources import demo_path
from tests.corpus import CORPUS


def test_the_name_of_the_output_and_the_source_tell_the_form() -> None:
    demo, shards = str(demo_path()), str(CORPUS / "hf_sharded")
    plain = str(CORPUS / "plain_pickle" / "state_p2.pkl")
    arrays = str(CORPUS / "joblib" / "arrays.joblib")
    wrong = {}
    for path, output, asked, expected in (
        (demo, "out.pth", None, ("same", "same")),
        (demo, "out.SafeTensors", None, ("safetensors", "same")),
        (demo, "out.safetensors", "safetensors", ("safetensors", "same")),
        (demo, "out.pth", "state-dict", ("state-dict", "same")),
        (demo, None, None, ("same", "same")),
        (shards, "out.pth", None, ("state-dict", "same")),
        (shards, "out", None, ("same", "same")),
        (plain, "copy.pkl", None, ("same", "same")),
        (plain, "copy.pt", None, ("same", "zip")),
        (arrays, "copy.pt", None, ("same", "zip")),
    ):
        found = choose_shape(path, output, asked)
        if found != expected:
            wrong[path, output, asked] = found
    assert wrong == {}


def test_a_file_changed_in_place_is_not_looked_at() -> None:
    assert choose_shape("missing.pth", "out.pth", None, in_place=True) == ("same", "same")


def test_a_name_of_another_format_is_refused() -> None:
    with pytest.raises(PlanError):
        choose_shape(str(demo_path()), "out.safetensors", "state-dict")
