from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Piece
from inspector.report.charts.areas import color_by, measure
from inspector.report.charts.bars import device_chart, dtype_chart
from inspector.report.charts.modules import damage_in, facts_of, module_map
from inspector.report.charts.tables import table_of
from inspector.report.charts.treemap import Box, Cell
from inspector.report.damage import Marks, damage_of
from inspector.report.details import look_up, tensor_facts
from inspector.report.outline.strip import strip_of
from inspector.report.query import matching_nodes, parse_query, searchable, why_nothing
from inspector.report.tree import build_tree
from tests.unit.report.rows import checkpoint, storage, tensor

PAST = "it runs past its storage"
LOST = Piece("", (0,), (4,))
FILE = checkpoint(
    tensor("m", "sound", storage="0"),
    tensor("m", "a.gone", storage="1"),
    tensor("m", "a.cut", storage="2"),
    tensor("m", "a.long", storage="3"),
    tensor("m", "past", storage="0", problem=PAST),
    tensor("m", "gone_and_past", storage="1", problem=PAST),
    tensor("undescribed", problem="too many dimensions to be read"),
    tensor("empty", storage="4", nbytes=0),
    tensor("pieces", storage="5"),
    storage("0", nbytes=16),
    storage("1", nbytes=1000, missing=True),
    storage("2", nbytes=8, expected_nbytes=16),
    storage("3", nbytes=32, expected_nbytes=16),
    storage("4", nbytes=0, missing=True),
    storage("5", pieces=(LOST,)),
)
TREE = build_tree(FILE, {})


def words_of(file=FILE) -> dict[str, str]:
    return {file.tensors[index].path: str(word) for index, word in damage_of(file).items()}


def test_what_is_wrong_with_the_bytes_of_a_tensor() -> None:
    assert words_of() == {
        "m/a.gone": "missing",
        "m/a.cut": "missing",
        "m/a.long": "impossible",
        "m/past": "impossible",
        "m/gone_and_past": "missing",
        "pieces": "missing",
    }


def test_bytes_of_two_storages_are_doubled_where_the_file_has_such() -> None:
    rows = [tensor(name, storage=name) for name in "abcde"]
    places = {"a": (0, 100), "b": (10, 10), "c": (50, 10), "d": (100, 10), "e": (100, 0)}
    kept = [storage(key, file_offset=at, nbytes=nbytes) for key, (at, nbytes) in places.items()]
    doubled = checkpoint(*rows, *kept, notes=(Note(NoteKind.OVERLAP),))
    assert words_of(doubled) == dict.fromkeys("abc", "doubled")
    twice = Note(NoteKind.SHARED_NAME, ("b", "d"))
    assert words_of(checkpoint(*rows, *kept, notes=(twice,))) == dict.fromkeys("bd", "doubled")
    assert words_of(checkpoint(*rows, *kept, notes=(twice.within("part"),))) == {}  # keys of that file
    assert words_of(checkpoint(*rows, *kept)) == {}  # nothing was found on reading: maybe other files


def test_a_damaged_part_damages_the_whole() -> None:
    file = checkpoint(
        tensor("s", layout="sparse_coo"), tensor("s", "indices", part_of=0, storage="0"),
        storage("0", missing=True),
    )  # fmt: skip
    assert words_of(file) == dict.fromkeys(("s", "s/indices"), "missing")


def test_rows_and_the_modules_above_them_are_marked() -> None:
    nodes = {node.path: number for number, node in enumerate(TREE.nodes)}
    last = {path: max(node for other, node in nodes.items() if other.startswith(path)) for path in nodes}

    def mark(path: str) -> str:
        return TREE.marks.of(nodes[path], last[path])

    assert mark("m/a.") == "2 missing, 1 impossible"
    assert (mark("m/"), mark("m/a.cut"), mark("m/sound")) == ("3 missing, 2 impossible", "missing", "")
    assert not build_tree(checkpoint(tensor("a")), {}).marks
    again = build_tree(FILE, {}).marks  # two screens of one file are equal
    assert (again, hash(again)) == (TREE.marks, hash(TREE.marks))
    assert again != Marks({})


def test_a_search_finds_the_damaged() -> None:
    def find(text: str) -> list[str]:
        found = matching_nodes(parse_query(text), searchable(FILE), TREE)
        return [TREE.nodes[node].path for node in found or ()]

    assert find("is:missing") == ["m/a.gone", "m/a.cut", "m/gone_and_past", "pieces"]
    assert find("is:impossible") == ["m/a.long", "m/past"]
    assert find("is:damaged a.") == ["m/a.gone", "m/a.cut", "m/a.long"]
    assert find("-is:damaged") == ["m/sound", "undescribed", "empty"]
    reason = why_nothing("is:lost", searchable(FILE))
    assert reason.words.startswith("is:lost asks for no damage that is known: write is:damaged, is:missing")
    assert reason.is_mistake
    assert why_nothing("is:doubled", searchable(FILE)).words == (
        "No tensor is doubled, as far as the file tells."
    )


def test_the_facts_say_what_is_stored_and_what_should_be() -> None:
    def facts(index: int) -> dict[str, str]:
        groups = tensor_facts(FILE, index, look_up(FILE))
        return {name: text for group in groups for name, text in group.facts}

    gone, cut, sound = facts(1), facts(2), facts(0)
    assert (gone["Stored"], gone["Declared"]) == ("nothing", "1.0 KB (1,000 bytes)")
    assert gone["Damage"] == "Its bytes are missing from the file."
    assert (cut["Stored"], cut["Declared"]) == ("8 B", "16 B")
    assert sound["Stored"] == "16 B"
    assert not {"Damage", "Declared"} & sound.keys()
    strip = strip_of(FILE, TREE, look_up(FILE), [TREE.tensor_nodes[1]])
    assert strip.facts[0] == "Its bytes are missing from the file"


def test_charts_tell_what_is_missing_apart() -> None:
    before, after = device_chart(FILE, {"0": "cuda:0"}, {}).bars
    parts = [(part.label, part.nbytes, part.is_missing) for part in before.segments]
    assert parts == [("cpu", 72, False), ("missing", 1008, True)]
    assert after.segments[-1].query == "is:missing"
    assert before.text == after.text == "1.1 KB, of which 1.0 KB missing"
    (bar,) = dtype_chart(FILE).bars
    assert [(part.label, part.nbytes) for part in bar.segments] == [("float32", 72), ("missing", 1008)]


def test_the_map_shows_damage_with_an_area() -> None:
    areas = measure(FILE, TREE)
    page, box = module_map(areas, color_by(areas, "device"), 0), Box(0, 0, 9, 9)
    assert areas.nbytes(0) == 1080  # with what a cut one should have

    def cell(path: str, what: str = "row", *shown: str) -> Cell:
        nodes = [next(n for n, node in enumerate(TREE.nodes) if node.path == one) for one in (path, *shown)]
        return Cell(nodes[0], what, 1, box, tuple(nodes[1:]))

    assert damage_in(page, cell("m/a.gone")) == "missing"
    assert damage_in(page, cell("m/")) == "5 damaged"
    assert damage_in(page, cell("m/", "rest", "m/a.", "m/sound")) == "2 damaged"
    assert damage_in(page, cell("m/sound")) == damage_in(page, cell("m/", "loose")) == ""
    assert facts_of(page, cell("m/a.gone"))[1] == "missing"
    assert [line.texts[-1] for line in table_of(page)] == ["cpu, 5 damaged", "cpu, missing"]
