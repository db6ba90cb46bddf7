"""Nothing that this program prints ever offers to put a function, or Python's own names, on torch's list.

Who copies our loading code trusts us with it: each name of `tests/data/gadgets.txt` is called, constructed,
mentioned and handed on by a file, and every text about that file is searched for an offer.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint, Safety
from inspector.pickles.values import present_name
from inspector.records import replace
from inspector.report.checking import explanation_lines
from inspector.report.details import file_facts
from inspector.report.jsonable import finding_document
from inspector.report.page import plain_lines
from inspector.report.text import finding_lines
from inspector.safety.names import allow_list, judge_global, known_classes, standard_modules
from inspector.safety.offers import offers_for
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render, styles
from inspector.target.call import Refusal, refusal_message
from inspector.target.wish import parse_target
from tests.builders.pickles import call, dict_, list_, name, new, number, storage, tensor, text, tuple_
from tests.documents import show_document
from tests.sweep import IS_SWEEP, table, tries
from tests.unit.model.making import by_hand
from tests.unit.report.rows import BLANK

DATA = Path(__file__).parents[1] / "data" / "gadgets.txt"
GADGETS = [line for line in DATA.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")]
OFFER = re.compile(r"safe_globals\((.*?)\)", re.DOTALL)
RELEASES = ((2, 3), (2, 4), (2, 5), (2, 6), (2, 13))
TARGETS = ("cpu", "cuda")
FORMS = {
    "called": lambda gadget: call(gadget, text("id")),
    "constructed": new,
    "mentioned": name,
    "called and constructed": lambda gadget: list_(call(gadget, number(1)), new(gadget)),
    "handed to torch": lambda gadget: call(
        "torch._tensor._rebuild_from_type_v2", name(gadget), name("torch.Tensor"), tuple_(text("id"))
    ),
    "handed deep down": lambda gadget: list_(
        call("collections.OrderedDict", list_(tuple_(text("a"), name(gadget)))), new(gadget)
    ),
}


def holding(value: bytes) -> Checkpoint:
    return by_hand(dict_((text("model"), dict_((text("w"), tensor(storage(), 2)))), (text("x"), value)))


def texts(checkpoint: Checkpoint, gadget: str) -> Iterator[str]:
    """Everything that the program says of a file in words or code of its own."""
    safety = judge(checkpoint)
    findings = diagnose(checkpoint, safety, parse_target("cpu"))
    yield json.dumps(show_document(checkpoint, safety, findings, open_seconds=0))
    for finding in findings:
        yield "\n".join(plain_lines(finding_lines(finding)))
        yield json.dumps(finding_document(finding))
    for group in file_facts(checkpoint, safety):
        yield from (f"{key} {value}" for key, value in group.facts)
    for style in styles(checkpoint):
        for target in TARGETS:
            yield render(checkpoint, style=style.id, target=parse_target(target), path="x.pt")
    for release in RELEASES:
        said = refusal_message(Refusal(finding="x", name=gadget), release)
        explanation = explain_error(said, checkpoint)
        yield "\n".join(
            plain_lines(explanation_lines(replace(explanation, quoted="")))
        )  # the quotation is torch's


def offers(said: str, gadget: str) -> list[str]:
    """The lists of names in a text in which the gadget stands."""
    last = gadget.rpartition(".")[2]
    return [found for found in OFFER.findall(said) if gadget in found or re.search(rf"\b{last}\b", found)]


def test_the_list_is_long() -> None:
    assert len(GADGETS) == len(set(GADGETS)) >= 400


@table("turn", range(len(FORMS)), ids=list(FORMS))
def test_no_text_offers_a_gadget(turn: int) -> None:
    """Each gadget is used in one of the ways here; the next test asks the verdict on all of them."""
    form = list(FORMS)[turn]
    for gadget in GADGETS[turn :: tries(3, 1) * len(FORMS)]:
        checkpoint = holding(FORMS[form](gadget))
        safety = judge(checkpoint)
        present = present_name(gadget)
        assert present not in safety.to_allow, gadget
        assert safety.verdict in {"runs-code", "dangerous"}, gadget
        for said in texts(checkpoint, gadget):
            assert not offers(said, present), (gadget, said)
            assert f"exactly these names are allowed: {present}" not in said


def test_a_harmless_class_is_found_by_the_same_search() -> None:
    checkpoint = holding(new("argparse.Namespace"))
    assert any(offers(said, "argparse.Namespace") for said in texts(checkpoint, "argparse.Namespace"))


@table("version", ["2.4", "2.6", None])
def test_whatever_the_torch(version: str | None) -> None:
    usual = [[form] for form in FORMS] if version is None else [["called"], ["constructed"]]
    for gadget, forms in zip(GADGETS, itertools.cycle([[*FORMS]] if IS_SWEEP else usual), strict=False):
        for form in forms:
            safety = judge(holding(FORMS[form](gadget)), version)
            assert present_name(gadget) not in safety.to_allow, gadget
            assert safety.verdict in {"runs-code", "dangerous"}, gadget


def test_the_worst_are_called_dangerous() -> None:
    words = ("pydoc.pipepager", "uuid._get_command_stdout", "joblib.load", "numpy.f2py.compile", "pip.main")
    assert {judge_global(gadget) for gadget in words} == {"dangerous"}
    unknown = [gadget for gadget in GADGETS if judge_global(gadget) != "dangerous"]
    assert len(unknown) < len(GADGETS) / 8, unknown


# --- the standard library -----------------------------------------------------------------------------------


DEFINED = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"^(?:from \S+ )?import (\([\w\s,]+\)|[\w ,.]+)", re.MULTILINE)


def defined() -> Iterator[str]:
    """Every function, class and imported name at the top of a module of this Python's standard library."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for file in root.rglob("*.py"):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0] not in sys.stdlib_module_names or "test" in parts or "tests" in parts:
            continue
        module = ".".join(part for part in parts if part != "__init__")
        source = file.read_text(encoding="utf-8", errors="replace")
        yield from (f"{module}.{defined}" for defined in DEFINED.findall(source))
        for imported in IMPORTED.findall(source):
            yield from (
                f"{module}.{item.split()[-1]}" for item in imported.strip("()").split(",") if item.strip()
            )
    for module in sys.builtin_module_names:
        yield from (f"{module}.{attribute}" for attribute in dir(__import__(module)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Debian builds some into its Python that are to go
def test_no_name_of_the_standard_library_is_offered_but_those_of_the_table() -> None:
    names = tuple(dict.fromkeys(defined()))
    assert len(names) > 8000
    listed = allow_list(None).names
    # As favorable as can be: as if the file did nothing but construct objects of them.
    made = replace(
        BLANK, safety=Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=(), constructed=names)
    )
    offered = offers_for(made, tuple(map(present_name, names))).offered
    assert {name for name in offered if name not in listed} <= known_classes().keys()
    called = replace(BLANK, safety=replace(made.safety, constructed=(), called=names))
    offered = offers_for(called, tuple(map(present_name, names))).offered
    assert {name for name in offered if name not in listed} <= {
        name for name, uses in known_classes().items() if uses == "call"
    }


def test_the_table_knows_all_modules_of_the_running_python() -> None:
    assert sys.stdlib_module_names <= standard_modules()
    assert {
        "annotationlib",
        "compression",
        "distutils",
        "asyncore",
        "cPickle",
        "commands",
    } <= standard_modules()
    assert "torch" not in standard_modules()
