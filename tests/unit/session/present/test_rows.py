from __future__ import annotations

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.document import Document
from inspector.session.operations import Job
from inspector.session.present.compose import compose
from inspector.session.screen import Screen
from inspector.session.state import State
from inspector.values.statistics import Oddity, Scan, Scanned
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of, saved_on


def ready(document: Document, **fields: object) -> Screen:
    return compose(State(**{"phase": "ready", "path": "dir/best.pth", "document": document, **fields}))


def test_parameters_that_cannot_be_counted_are_named() -> None:
    packed = {"role": "buffer", "dtype": "int32", "shape": (8, 8)}
    document = document_of(checkpoint(tensor("m", "a"), tensor("m", "q", **packed)))
    (group,) = ready(document, selected=1).tensor[:1]
    assert dict(group.facts)["Parameters"] == "4; 1 matrix of integers, maybe packed weights, not counted"
    assert dict(ready(document).file[0].facts)["Parameters"] == dict(group.facts)["Parameters"]


def test_the_facts_of_what_is_selected() -> None:
    rows = checkpoint(
        tensor("m", "a.w", storage="0"), value("epoch", text="3"), value("c", "d"), storage("0")
    )
    document = document_of(rows)
    tree = document.tree
    assert ready(document, selected=None).tensor == ()
    assert ready(document, selected=0).tensor == ready(document, selected=999).tensor == ()
    chosen = ready(document, selected=tree.tensor_nodes[0])
    assert [group.title for group in chosen.tensor] == ["Tensor", "Layout", "Storage"]
    assert ready(document, selected=tree.value_nodes[0]).tensor[0].facts[2] == ("Value", "3")
    group = ready(document, selected=tree.nodes[0].children[0]).tensor
    assert group[0].facts == (
        ("Name", "m/a"),
        ("Path", "m/a."),
        ("Tensors", "1"),
        ("Parameters", "4"),
        ("Size", "16 B"),
    )
    assert group[1].facts == (("cpu", "16 B"),)
    bare = ready(document, selected=tree.nodes[tree.value_nodes[1]].parent).tensor
    assert [part.title for part in bare] == ["Group"]


def test_a_search_gives_nodes() -> None:
    document = saved_on("cpu", "cpu")
    assert ready(document, query="layer1").matches == (document.tree.tensor_nodes[1],)
    assert ready(document, query="nothing").matches == ()


def test_a_search_tells_what_it_found_in_all_and_why_it_found_nothing() -> None:
    tied = {"storage": "0", "nbytes": 16}
    rows = checkpoint(
        tensor("m", "a.w", **tied), tensor("m", "b.w", **tied), value("w"), storage("0", tensors=2)
    )
    document = document_of(rows)
    assert ready(document).search is None
    found = ready(document, query="w").search
    assert (found.size, found.why, found.query.spans("a.w")) == ("16 B", "", [(2, 3)])
    assert ready(document, query='"w"').search.size == ""
    nothing = ready(document, query="devise:cpu").search
    assert (nothing.why, nothing.instead) == (
        "devise: is no field of the search: did you mean device:?",
        "device:cpu",
    )


def test_what_a_scan_found_is_searched_when_that_is_asked_for() -> None:
    document = document_of(checkpoint(tensor("a"), tensor("b")))
    odd, sound = Scanned(row=1, statistics=None, oddities=(Oddity.NAN,)), Scanned(row=0, statistics=None)
    scan = Scan(tensors=(odd, sound), nbytes=32)
    before = Job(kind="scan", about="best.pth", progress=Progress())
    after = replace(before, result=scan)
    found = [ready(document, query="nan:", jobs=jobs) for jobs in ((), (before,), (after,))]
    assert [screen.matches for screen in found] == [(), (), (document.tree.tensor_nodes[1],)]
    assert found[0].search.why == "nan: needs a scan of all tensors first."
    assert ready(document, query="b", jobs=(after,)).matches == (document.tree.tensor_nodes[1],)
