from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.units import (
    cut_text,
    escape_text,
    format_count,
    format_exact,
    format_nbytes,
    format_quantity,
    format_shape,
    meant,
    nearest,
    short_value,
    shown_path,
    unescaped_path,
)
from tests.sweep import table


@table(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (-999, "-999 B"),
        (1000, "1.0 KB"),
        (-1500, "-1.5 KB"),
        (37_632, "37.6 KB"),
        (99_949, "99.9 KB"),
        (99_950, "100 KB"),
        (999_949, "1000 KB"),
        (999_950, "1.0 MB"),
        (1_200_000_000, "1.2 GB"),
        (412 * 10**12, "412 TB"),
        (10**18, "1.0 EB"),
        (2**62, "4.6 EB"),
        (2**80, "1208926 EB"),
        (2**100, "over 10^30 B"),
    ],
)
def test_size_is_given_as_disks_give_it(nbytes: int, text: str) -> None:
    assert format_nbytes(nbytes) == text


def test_size_may_have_more_digits_than_python_writes() -> None:
    assert format_nbytes(1 << 300_000) == "over 10^30 B"


@table(("count", "text"), [(0, "0 tensors"), (1, "1 tensor"), (2, "2 tensors"), (1204, "1,204 tensors")])
def test_count_agrees_with_its_noun(count: int, text: str) -> None:
    assert format_count(count, "tensor") == text


@table(("shape", "text"), [((), "scalar"), ((0,), "0"), ((64, 3, 7), "64 × 3 × 7")])
def test_shape_is_a_product(shape: tuple[int, ...], text: str) -> None:
    assert format_shape(shape) == text


@table(
    ("text", "escaped"),
    [
        ("", ""),
        ("layer1.0.weight", "layer1.0.weight"),
        ("ключ 名前 é", "ключ 名前 é"),
        ("a\nb\x1b[31m", r"a\u000ab\u001b[31m"),
        ("user\u202etxt", r"user\u202etxt"),
        ("a\ud800b", r"a\ud800b"),
        ("\u2028\u2029\u200b\ufeff", r"\u2028\u2029\u200b\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\x7f", r"\u007f"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text: str, escaped: str) -> None:
    assert escape_text(text) == escaped


@given(st.text(alphabet=st.characters()))
def test_escaped_text_is_printable_and_stays_so(text: str) -> None:
    escaped = escape_text(text)
    escaped.encode("utf-8")
    assert escape_text(escaped) == escaped


@table(("text", "most", "cut"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 0, ""), ("abc", 1, "…")])
def test_long_text_ends_in_an_ellipsis(text: str, most: int, cut: str) -> None:
    assert cut_text(text, most) == cut


def test_only_so_many_characters_are_remembered() -> None:
    strange = "".join(map(chr, range(0xE000, 0xE000 + 5000)))  # private use: invisible
    assert escape_text(strange) == "".join(f"\\u{ord(char):04x}" for char in strange)
    assert escape_text(strange) == escape_text(strange)


def test_quantities_have_three_digits() -> None:
    written = {
        0: "0",
        9_999: "9,999",
        10_000: "10.0K",
        999_499: "999K",
        999_500: "1.00M",
        11_689_512: "11.7M",
        7_241_732_096: "7.24B",
        1_800_000_000_000_000: "1,800T",
        -20_000: "-20.0K",
        10**40: "over 10^30",
    }
    assert {count: format_quantity(count) for count in written} == written


def test_a_count_that_nobody_can_read_is_not_written_out() -> None:
    assert [format_exact(count) for count in (0, 12_345, 10**5000)] == ["0", "12,345", "over 10^30"]


def test_the_word_that_was_meant_is_asked_for() -> None:
    assert nearest("cdua", ("cpu", "cuda")) == "cuda"
    assert nearest("moon", ("cpu", "cuda")) is None
    assert meant("cdua", ("cpu", "cuda"), "{}:1") == "did you mean cuda:1? "
    assert meant("moon", ("cpu", "cuda")) == ""


@table(
    ("path", "shown"),
    [
        ("", ""),
        ("a/b c/d", "a/b c/d"),
        ("a/", 'a/""'),
        ("/a", '""/a'),
        ("a//b", 'a/""/b'),
        (" ", '" "'),
        ("a /b", '"a "/b'),
        ("a/ b", 'a/" b"'),
        ("a\u00a0", '"a\u00a0"'),
        ('""', '""""'),
        ('a"b', 'a"b'),
    ],
)
def test_steps_are_in_quotes_where_nobody_would_see_them(path: str, shown: str) -> None:
    assert shown_path(path) == shown


def test_numbers_have_six_significant_digits_and_their_exponent() -> None:
    cases = {
        ("float", "5.813959432394e-06"): "5.81396e-06",
        ("float", "3.141592653589793"): "3.14159",
        ("float", "-1.23456789e+22"): "-1.23457e+22",
        ("float", "0.001"): "0.001",
        ("float", "1e-07"): "1e-07",
        ("float", "12345678.0"): "12345678.0",  # a count, maybe
        ("float", "1234567890"): "1234567890",  # the value of a tensor of int64
        ("float", "nan"): "nan",
        ("numpy.float32", "0.12345679"): "0.123457",
        ("complex", "(1.23456789+2j)"): "(1.23457+2j)",
        ("tuple", "(0.9, 0.999123456)"): "(0.9, 0.999123)",
        ("list", "[1234567890, 0.5, 0.1234567890123\u2026"): "[1234567890, 0.5, 0.1234567890123\u2026",
        ("list", '["0.123456789", 0.5]'): '["0.123456789", 0.5]',
        ("str", "0.123456789"): "0.123456789",
        ("int", "1234567890"): "1234567890",
    }
    assert {case: short_value(*case) for case in cases} == cases


def test_names_are_shown_as_they_are() -> None:
    cases = {
        "encoder~1layer_1~1kernel": "encoder/layer_1/kernel",
        "a~01": "a~1",
        "a~0~1~#1": "a~/~#1",
        "x": "x",
    }
    assert {path: unescaped_path(path) for path in cases} == cases
