from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.lookalikes import ZIP_LOOKALIKES, name_zip
from inspector.containers.opening import read_container
from inspector.errors import NotACheckpointError
from tests.builders.zips import Record, build_zip
from tests.sweep import table

# The names that each format's writer puts into its zip.
SAMPLES = {
    "keras": ["metadata.json", "config.json", "model.weights.h5"],
    "docx": ["[Content_Types].xml", "_rels/.rels", "word/document.xml"],
    "xlsx": ["[Content_Types].xml", "xl/workbook.xml"],
    "pptx": ["[Content_Types].xml", "ppt/presentation.xml"],
    "opendocument": ["mimetype", "content.xml"],
    "apk": ["AndroidManifest.xml", "classes.dex", "META-INF/MANIFEST.MF"],
    "torchserve": ["MAR-INF/MANIFEST.json", "model.pt"],
    "jar": ["META-INF/MANIFEST.MF", "com/x/Main.class"],
    "wheel": ["torch/__init__.py", "torch-2.4.dist-info/METADATA"],
    "coreml": ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel"],
    "tf-savedmodel": ["saved/saved_model.pb", "saved/variables/variables.index"],
    "zipped-folder": ["backup/", "backup/best/data.pkl", "backup/best/data/0"],
}


def test_every_row_has_its_sample() -> None:
    assert list(SAMPLES) == [row.form for row in ZIP_LOOKALIKES]


@table("form", SAMPLES)
def test_sample_is_named_with_the_next_step(write: Callable[..., str], form: str) -> None:
    path = write(build_zip(*(Record(name=name) for name in SAMPLES[form])))
    with pytest.raises(NotACheckpointError) as caught:
        read_container(path)
    row = next(row for row in ZIP_LOOKALIKES if row.form == form)
    error = caught.value
    assert (error.form, error.what, error.remedy) == (form, f"this is {row.what}", row.remedy)
    assert (error.where, error.finding) == (path, "not-a-checkpoint")


def test_checkpoints_in_a_zip_are_pointed_at() -> None:
    error = name_zip(["runs/", "runs/a/last\x1b.ckpt", "runs/best.PTH"], "x")
    assert error.what == "this is a zip with other files in it, among them runs/best.PTH"
    assert "unpack" in (error.remedy or "")
    assert "\\u001b" in name_zip(["a/last\x1b.ckpt"], "x").what
    assert len(name_zip(["a" * 5000 + ".pt"], "x").what) < 150


def test_zip_of_anything_else() -> None:
    for names in ([], ["readme.txt"]):
        error = name_zip(names, "x")
        assert error.form == "zip"
        assert error.what == "this zip holds no data.pkl, so torch.save did not write it"


def test_only_so_many_names_are_looked_at() -> None:
    names = (name for name in [*(f"{number}.txt" for number in range(10_000)), "AndroidManifest.xml"])
    assert name_zip(names, "x").form == "zip"
