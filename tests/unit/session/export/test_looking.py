from __future__ import annotations

import os

import pytest

from inspector.progress import Progress
from inspector.remap.storages import free_nbytes
from inspector.session.device_map import map_devices
from inspector.session.document import open_document
from inspector.session.export import looking
from inspector.session.export.draft import draft_of
from inspector.session.export.looking import Wanted, look_at, wanted_by
from inspector.session.export.page import ExportWish
from inspector.target.wish import parse_target
from tests.builders.folders import trainer


@pytest.fixture
def here(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/best.pth").write_bytes(b"source")
    (tmp_path / "run/part-1.bin").write_bytes(b"part")
    (tmp_path / "run/taken.pth").write_bytes(b"taken")
    (tmp_path / "run/m.bin.index.json").write_bytes(b"{}")
    os.link(tmp_path / "run/best.pth", tmp_path / "run/hard.pth")
    (tmp_path / "soft.pth").symlink_to("run/best.pth")
    (tmp_path / "way").symlink_to("run")
    (tmp_path / "run/dangling.pth").symlink_to("nowhere")
    os.mkfifo(tmp_path / "run/pipe")
    return tmp_path


def test_each_place_is_told_from_the_others(here) -> None:
    source = str(here / "run/best.pth")
    wanted = Wanted(source=source, parts=(source, str(here / "run/part-1.bin"), str(here / "run/gone.bin")))
    itself = "bad", "This is the file itself, which stays as it is. Choose another name."
    asked = {
        "run/best.pth": itself,
        "run/../run/./best.pth": itself,
        "run/hard.pth": itself,
        "soft.pth": itself,
        "way/best.pth": itself,
        "run/part-1.bin": ("bad", "This file is a part of the checkpoint itself. Choose another name."),
        "run/m.bin.index.json": ("bad", "This file is a part of the checkpoint itself. Choose another name."),
        "run/new.pth": ("free", ""),
        "run/taken.pth": ("file", "taken.pth exists already (5 B)."),
        "run/dangling.pth": ("file", "dangling.pth is a link that leads nowhere."),
        "run": ("bad", "This is a folder. Add a file name."),
        "run/pipe": ("bad", "This is not a regular file. Choose another name."),
        "run/a/b/c.pth": ("bad", "There is no folder a."),
        "run/best.pth/c.pth": ("bad", "best.pth is not a folder."),
        "run/new.safetensors": (
            "bad",
            "The file name is one for safetensors, but the file would be for torch.load.",
        ),
        "x" * 300: ("bad", "This is not the name of a file."),
        "a\0b": ("bad", "This is not the name of a file."),
    }
    found = {}
    for name in asked:
        at = look_at(str(here / name), wanted)
        assert at.path == str(here / name)
        found[name] = at.found, at.note
    assert found == asked
    assert (look_at(" ", wanted).found, look_at("", wanted).note) == ("bad", "Enter a path for the copy.")


def test_a_folder_must_be_new_and_elsewhere(here) -> None:
    wanted = Wanted(source=str(here / "run"), folder=str(here / "run"))
    asked = {
        "run.cpu": ("free", ""),
        "run": ("bad", "run exists already. Choose a name for a new folder."),
        "way": ("bad", "way exists already. Choose a name for a new folder."),
        "run/within": ("bad", "This is in the folder that is copied. Choose another place."),
        "way/within": ("bad", "This is in the folder that is copied. Choose another place."),
        "none/x": ("bad", "There is no folder none."),
    }
    found = {name: look_at(str(here / name), wanted) for name in asked}
    assert {name: (at.found, at.note) for name, at in found.items()} == asked


def test_a_folder_that_takes_nothing_is_told(here, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: str(path) != str(here / "run"))
    wanted = Wanted(source="/x.pth")
    told = look_at(str(here / "run/new.pth"), wanted)
    assert (told.found, told.note) == ("bad", "You may not write to the folder run.")
    assert look_at(str(here / "new.pth"), wanted).found == "free"


def test_too_little_room_is_told_and_only_a_shared_copy_may_still_fit(here, monkeypatch) -> None:
    monkeypatch.setattr(looking, "free_nbytes", lambda _folder: 1_200_000_000)
    place, short = str(here / "new.pth"), "The disk has room for 1.2 GB, and the copy takes 3.0 GB."
    told = look_at(place, Wanted(source="/x.pth", nbytes=3_000_000_000))
    assert (told.found, told.note) == ("bad", short)
    for folder in (None, "/x"):
        told = look_at(place, Wanted(source="/x.pth", nbytes=3_000_000_000, can_share=True, folder=folder))
        assert told.found == "free"
        assert told.note == f"{short} It fits only where the file system shares the blocks of both."
    taken = str(here / "run/taken.pth")
    told = look_at(taken, Wanted(source="/x.pth", nbytes=3_000_000_000, can_share=True))
    assert told.note.startswith("taken.pth exists already (5 B). The disk")
    assert look_at(place, Wanted(source="/x.pth", nbytes=1_200_000_000)).found == "free"


def test_the_room_on_a_disk_is_asked_of_the_system(tmp_path) -> None:
    status = os.statvfs(tmp_path)
    assert free_nbytes(tmp_path) <= status.f_blocks * status.f_frsize


def test_what_a_draft_is_about_to_write(tmp_path) -> None:
    folder = trainer(tmp_path / "run")
    document = open_document(str(folder), Progress())
    found = {}
    for kind in ("copy", "safetensors"):
        device_map = map_devices(document, parse_target("cpu"), ())
        wanted = wanted_by(document.checkpoint, draft_of(device_map, ExportWish(kind=kind)))
        found[kind] = wanted.folder, wanted.can_share, wanted.says_safetensors
        assert len(wanted.parts) == len(document.checkpoint.parts)
    assert draft_of(map_devices(document, parse_target("cpu"), ())).makes_folder
    assert found == {"copy": (str(folder), True, False), "safetensors": (None, False, True)}
    inside = open_document(str(document.checkpoint.parts[0].path), Progress())
    wanted = wanted_by(inside.checkpoint, draft_of(map_devices(inside, parse_target("cpu"), ())))
    assert wanted.folder is None
