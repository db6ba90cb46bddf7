from __future__ import annotations

import pytest

from inspector import resources


def test_files_of_the_checkout_are_found():
    assert resources.resource_path("icons/app.svg").is_file()
    assert resources.resource_path("themes").is_dir()
    assert resources.demo_path().is_file()


def test_a_wheels_own_files_come_first(tmp_path, monkeypatch):
    wheel, checkout = tmp_path / "wheel", tmp_path / "checkout"
    for place in (wheel, checkout):
        place.mkdir()
        (place / "file.txt").write_text(place.name)
    monkeypatch.setattr(resources, "_PLACES", (wheel, checkout))
    assert resources.resource_path("file.txt").read_text() == "wheel"


def test_an_incomplete_installation_says_what_is_missing():
    with pytest.raises(FileNotFoundError, match=r"icons/none\.svg"):
        resources.resource_path("icons/none.svg")
