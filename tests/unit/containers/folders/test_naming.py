from __future__ import annotations

from inspector.containers.folder import are_files, listed, shown


def test_few_names_are_listed_and_the_others_counted() -> None:
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed([*"abc", *map(str, range(1000))]) == "a, b, c and 1,000 more"


def test_names_are_escaped_and_cut() -> None:
    assert shown("a\x1b[31m") == "a\\u001b[31m"
    assert len(shown("x" * 1000)) == 80
    assert listed(["a\nb"]) == "a\\u000ab"


def test_files_are_counted() -> None:
    assert (are_files(1), are_files(2)) == ("1 file is", "2 files are")
