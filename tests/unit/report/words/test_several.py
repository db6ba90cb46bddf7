from __future__ import annotations

from inspector.report.words.results import summary


def test_each_command_counts_in_its_own_words() -> None:
    assert summary("check", {0: 1, 1: 2, 3: 1}) == (
        "4 files: 1 loads and is safe, 2 do not load or are not safe, 1 could not be read"
    )
    assert summary("script", {0: 1, 1: 1}) == (
        "2 files: 1 is safe and works with the script, 1 does not work or is not safe"
    )
    assert summary("remap", {1: 1}) == "1 file: 1 was written without all of the model"
    assert summary("verify", {0: 2, 1: 1}) == "3 files: 2 are as they should be, 1 differs"
    assert summary("remap", {4: 1, 0: 1200}) == "1,201 files: 1,200 were written, 1 could not be written"
    assert summary("dry-run", {2: 1, 0: 1}) == "2 files: 1 can be written, 1 was refused"
    assert summary("snippet", {0: 2}) == "2 files: 2 have their code above"
