"""Pasted text loses its noise and keeps its words."""

from __future__ import annotations

from inspector.diagnose.errors.paste import MOST_CHARS, read_pasted, squeeze
from tests.sweep import table


@table(
    ("text", "flat"),
    [
        ("a  b\tc\n\n d ", "a b c d"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1bM", "red text"),
        ("[31mred[0m stays [1, 2]", "red stays [1, 2]"),
        ("\u2502 in a box   \u2502\n\u2570\u2500\u2500\u256f", "in a box"),
        ("> > quoted", "quoted"),
        ("[rank0]: a\n[rank12]:   b", "a b"),
        ("(pid=12, ip=1.2.3.4) a", "a"),
        ("E       assert", "assert"),
        ("Errors stay", "Errors stay"),
        ("2024-05-01 10:00:00,123 - root - ERROR - a", "a"),
        ("[2024-05-01T10:00:00.123Z] a", "a"),
        ("don\u2019t \u201csay\u201d `so`", "don't \"say\" 'so'"),
        ("it&#39;s &lt;module&gt; &amp;", "it's <module> &"),
        ("a\\nb\\tc", "a b c"),
        ("zero\u200bwidth\u202e", "zerowidth"),
        ("a\r\nb\rc\u2028d", "a b c d"),
        ("\uff08\uff1a\uff0c\uff09", "(:,)"),
        ("> " * 9 + "deep", "deep"),
        ("[rank0]: [rank1]: [rank2]: a", "[rank2]: a"),  # so many are no prefixes of one line
        ("", ""),
    ],
)
def test_noise(text: str, flat: str) -> None:
    assert read_pasted(text).flat == flat


def test_errors_are_given_last_first() -> None:
    pasted = read_pasted(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1\n'
        "KeyError: 'a'\n"
        "\nDuring handling of the above exception, another exception occurred:\n"
        "    some source\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory.\n"
        "Tried to allocate 2 GiB\n"
        '  File "b.py", line 2\n'
        "more\n"
        "EOFError\n"
    )
    assert pasted.errors == (
        "EOFError",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "KeyError: 'a'",
    )


def test_a_notebooks_heading_is_no_error() -> None:
    pasted = read_pasted(
        "RuntimeError           Traceback (most recent call last)\n---> 1 load()\nRuntimeError: no"
    )
    assert pasted.errors == ("RuntimeError: no",)


def test_long_texts_keep_both_ends() -> None:
    flat = read_pasted("begin" + "x" * (2 * MOST_CHARS) + "end").flat
    assert flat.startswith("begin")
    assert flat.endswith("end")
    assert len(flat) <= MOST_CHARS + 1


def test_squeezing_undoes_broken_words() -> None:
    assert read_pasted("Attemp\nting to").squeezed == squeeze("Attempting to") == "Attemptingto"
