from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.findings import Finding, Fix
from inspector.report.query import matching_nodes, parse_query, searchable
from inspector.report.text import format_report
from inspector.report.tree import build_tree
from inspector.safety.verdict import judge
from tests.sweep import table
from tests.unit.report.rows import checkpoint, is_harmless, optimizer, tensor, value


def report(
    rows: Checkpoint, *findings: Finding, depth: int | None = None, query: str | None = None
) -> list[str]:
    tree = build_tree(rows, {})
    only = None if query is None else matching_nodes(parse_query(query), searchable(rows), tree)
    return format_report(rows, judge(rows), findings, tree, depth=depth, only=only).splitlines()


def listing(lines: list[str]) -> list[str]:
    start = next(place for place, line in enumerate(lines) if line.startswith("Name "))
    end = next((place for place, line in enumerate(lines) if place > start and not line), len(lines))
    return lines[start:end]


def finding(**fields: object) -> Finding:
    return Finding(**{"id": "x", "severity": "error", "title": "Bad", "detail": "", **fields})


def test_a_whole_report() -> None:
    rows = checkpoint(
        tensor("m", "a.weight", device="cuda:0", shape=(2, 2)),
        value("epoch", text="3"),
        optimizer("o"),
        optimizer("p", with_state=0),
        versions=(("version", "3"),),
        notes=(Note(NoteKind.OVERLAP),),
    )
    found = finding(detail="It is so and so. " * 7, paths=("a", "b", "c", "d"), count=9)
    assert report(rows, found, finding(severity="warning"), finding(severity="note")) == [
        "best.pth",
        "  zip, torch 1.6 to 2.0, 1 tensor, 1.0 KB",
        "  safe: weights only",
        "  Several records share bytes, which no ordinary program writes.",
        "",
        "Saved on",
        "  cuda:0             1 tensor        0 B",
        "",
        "Name      Device  Shape or value      Type     Size",
        "m/a       cuda:0  1 tensor, 4 params           16 B",
        "  weight  cuda:0  2 × 2               float32  16 B",
        "epoch             3                   int",
        "",
        "Parameter names of optimizer state",
        "  o: Nearly certain. All agree.",
        "",
        "Findings",
        "!! Bad",
        "     It is so and so. It is so and so. It is so and so. It is so and so. It is so and so. It is so",
        "     and so. It is so and so.",
        "     - a",
        "     - b",
        "     - c",
        "     - and 6 more",
        " ! Bad",
        "   Bad",
    ]


def test_the_code_is_named_where_the_verdict_asks_for_it() -> None:
    asks = (GlobalUse(name="m.Net", count=1),)
    assert report(checkpoint(globals=asks))[3:5] == [
        "     Print the code that loads it with:",
        "       checkpoint-inspector snippet best.pth",
    ]
    evil = (GlobalUse(name="os.system", count=1),)
    for made in (checkpoint(), checkpoint(globals=evil), checkpoint(globals=asks, format="safetensors")):
        assert not any("snippet" in line for line in report(made))


def test_no_code_is_named_for_a_file_that_lost_bytes() -> None:
    made = checkpoint(globals=(GlobalUse(name="m.Net", count=1),))
    assert any("snippet" in line for line in report(made, finding()))
    assert not any("snippet" in line for line in report(made, finding(fix=Fix(recovers=True))))


def test_a_file_that_holds_nothing() -> None:
    assert report(checkpoint()) == [
        "best.pth",
        "  zip, 0 tensors, 1.0 KB",
        "  safe: weights only",
    ]


def test_all_paths_of_a_finding_are_named_when_they_are_few() -> None:
    lines = report(checkpoint(), finding(paths=("a", "b"), count=2))
    assert lines[-2:] == ["     - a", "     - b"]


def test_depth_ends_the_tree() -> None:
    rows = checkpoint(tensor("a", "b", "c"), tensor("a", "x"), value("d"))
    assert [line.split()[0] for line in listing(report(rows, depth=1))] == ["Name", "a", "d"]
    assert [line.split()[0] for line in listing(report(rows, depth=2))] == ["Name", "a", "b", "x", "d"]


def test_a_filter_shows_what_it_finds_and_the_way_there() -> None:
    rows = checkpoint(tensor("a", "b"), tensor("a", "x"), value("c", "b"), tensor("d"))
    assert [line.split()[0] for line in listing(report(rows, query="b"))] == ["Name", "a", "b", "c", "b"]
    assert "Nothing matches the filter." in report(rows, query="nothing")
    assert [line.split()[0] for line in listing(report(rows, query="b", depth=1))] == ["Name", "a", "c"]


@table(
    "name",
    [
        "a_very_long_name_" * 20 + "weight",
        "名前" * 60,
        "e\u0301" * 100,
        "mixed名前" * 20,
        "x" * 48,
        "x" * 49,
    ],
)
def test_columns_stay_aligned_whatever_the_names(name: str) -> None:
    rows = checkpoint(tensor("g", name, shape=(3,) * 40), tensor("g", "short", dtype="long" * 20))
    lines = listing(report(rows))
    ends = {columns(line) for line in lines}
    assert len(ends) == 1, lines
    assert max(ends) <= 48 + 24 + 40 + 32 + 12 + 8
    places = {columns(line[: line.index("cpu")]) for line in lines[1:]}
    assert len(places) == 1


def columns(text: str) -> int:
    import unicodedata

    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    line = listing(report(checkpoint(tensor("begin" + "x" * 100 + "end"))))[1]
    assert line.startswith("beginxxx")
    assert "end  cpu" in line
    assert "\u2026" in line


def test_names_at_great_depth_are_still_read() -> None:
    ways = [[f"level{above}" for above in range(level)] for level in range(1, 61)]
    rows = checkpoint(*(tensor(*way, "beside") for way in ways), tensor(*ways[-1], "end"))
    lines = listing(report(rows))
    assert lines[-1].lstrip().startswith("end ")
    assert "cpu" in lines[-1]
    assert len({len(line) for line in lines}) == 1


EVIL = st.text(
    alphabet=st.sampled_from("ab./~ \n\r\t\x1b\u202e\u2066\u200b\ud800\u2028\x85\u00ad\U000e0041名\u0301")
)


@given(EVIL, EVIL, EVIL, EVIL)
def test_a_report_has_no_control_or_bidi_character_but_line_ends(key, device, said, path) -> None:
    rows = checkpoint(
        tensor("m", key, device=device),
        tensor(key, device=device, storage=None),
        optimizer(key, detail=said),
        path=path,
        notes=(Note(NoteKind.REFUSED, (said,)),),
    )
    text = "\n".join(report(rows, finding(title=said, detail=said, paths=(rows.tensors[0].path,), count=1)))
    assert is_harmless(text.replace("\n", ""))
    text.encode()
