from __future__ import annotations

import pytest

from inspector.errors import PlanError
from inspector.remap.rules import parse_rule
from inspector.session.device_map import map_devices
from inspector.session.present import compose as module
from inspector.session.present.compose import code_page
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import document_of, saved_on

ONE = parse_target("cuda")


def test_a_device_that_is_kept_by_choice_stays_in_the_code() -> None:
    document = saved_on("cuda:0", "cuda:1")
    for chosen, said in (
        ((), "cuda:1"),
        ((("cuda:0", "cpu"), ("cuda:1", "cuda:1")), 'map_location={"cuda:0": "cpu"}'),
        ((("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")), '{"cuda:0": "cuda:1", "cuda:1": "cuda:0"}'),
    ):
        device_map = map_devices(document, ONE, chosen)
        page = code_page(document, device_map, ONE, "plain", chosen)
        flat = " ".join(page.text.split())
        assert (said in flat) == bool(chosen)
        assert page.style == "plain"


def test_what_no_map_location_says_is_told() -> None:
    rows = document_of(
        checkpoint(
            tensor("model", "w", storage="0", device="cpu"),
            tensor("step", storage="1", device="cpu", on_cpu_by_design=True),
            *(storage(key, "cpu") for key in "01"),
        )
    )
    branches = tuple(parse_rule(f"path:model/{name}\u202e@cuda:1") for name in "abcd")
    chosen = (("cpu", "cuda:0"),)
    told = code_page(rows, map_devices(rows, ONE, chosen, branches), ONE, "", chosen)
    text = " ".join(line.removeprefix("# ") for line in told.text.splitlines())
    assert text.startswith("The map also sends model/a\\u202e to cuda:1, model/b\\u202e to cuda:1, ")
    assert " and 1 more. map_location knows no names: only an exported copy has that." in text
    assert "The map sends what is on the CPU to cuda:0, but for 1 tensor that belong there" in text
    two = map_devices(rows, ONE, (), branches[:2])
    told = code_page(rows, two, ONE, "", ())
    assert "more. map_location" not in told.text
    assert "what is on the CPU" not in told.text
    assert told.text.count("# The map") == 1
    plain = code_page(rows, map_devices(rows, ONE, ()), ONE, "", ())
    assert not plain.text.startswith("#")


def test_code_that_cannot_be_given_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> str:
        raise PlanError("no code\nfor this")

    monkeypatch.setattr(module, "render", refuse)
    monkeypatch.setattr(module, "offered_styles", lambda rows, wanted: ())
    document = saved_on("cpu")
    code = code_page(document, map_devices(document, CPU_ONLY, ()), CPU_ONLY, "plain", ())
    assert (code.style, code.styles, code.text) == ("", (), "# no code\\u000afor this\n")


def test_the_file_is_named_as_people_paste_it_and_each_argument_is_in_sight() -> None:
    document = saved_on("cuda:0", path="/a/long/way/to/best.pth")
    routes = map_devices(document, CPU_ONLY, ())
    lines = code_page(document, routes, CPU_ONLY, "plain", ()).text.splitlines()
    place = lines.index('    "best.pth",')
    assert lines[place - 1 : place + 3] == [
        "checkpoint = torch.load(",
        '    "best.pth",',
        '    map_location="cpu",',
        "    weights_only=True,",
    ]
    folder = code_page(document, routes, CPU_ONLY, "accelerate", ())
    assert folder.style == "accelerate"
    assert "/a/long/way/to" in folder.text  # whose loader is given the folder
