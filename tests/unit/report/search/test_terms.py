from __future__ import annotations

from inspector.report.query import refuse_mistakes, searchable
from inspector.report.terms import FIELDS, HELP, Term, begun_fields, parse_terms, quoted
from inspector.values.statistics import Oddity
from tests.unit.report.rows import checkpoint


def term(text: str) -> Term:
    (found,) = parse_terms(text)
    return found


def test_words_can_be_turned_round() -> None:
    assert term("-bias") == Term("path", "bias", is_not=True, written="-bias")
    assert term("-device:cpu") == Term("device", "cpu", is_not=True, written="-device:cpu")
    assert term('-"a b"') == Term("path", "a b", exact=True, is_not=True, written='-"a b"')
    assert term("-size>1KB") == Term("size", ">", bound=1000.0, is_not=True, written="-size>1KB")
    assert term("-") == Term("path", "-", written="-")


def test_bounds_are_written_as_people_say_them() -> None:
    said = {
        "size>1.5M": 1_500_000, "size>1MiB": 1 << 20, "size=0": 0, "size<2tb": 2 * 10**12,
        "params>7B": 7 * 10**9, "params>=1.2M": 1_200_000, "params<64k": 64_000, "params=768": 768,
    }  # fmt: skip
    assert {text: term(text).bound for text in said} == said


def test_fields_that_stand_alone_are_whole_words() -> None:
    assert (term("nan:").field, term("dead-rows:").field, term("NaN:").field) == ("nan", "dead-rows", "nan")
    assert set(FIELDS) >= set(Oddity)


def test_a_field_with_nothing_behind_it_is_only_begun() -> None:
    assert parse_terms("device: dtype:") == ()
    assert begun_fields('device: dtype:"" nan: size> a') == ["device:", 'dtype:""']


def test_a_quoted_text_is_one_word() -> None:
    assert term(quoted("a b*c")) == Term("path", "a b*c", exact=True, written='"a b*c"')
    assert term("storage:12").exact


def test_each_example_of_the_help_is_understood() -> None:
    rows = searchable(checkpoint())
    written = {found.written for row in HELP for found in parse_terms(row.example)}
    assert {"device:cuda:1", "size>10MB", "-bias", "nan:"} <= written
    for row in HELP[:-1]:
        refuse_mistakes(row.example, rows)
    fields = {found.field for row in HELP for found in parse_terms(row.example)}
    told = " ".join(f"{row.example} {row.words}" for row in HELP)
    assert {field for field in FIELDS if field not in fields and f"{field}:" not in told} == set()
