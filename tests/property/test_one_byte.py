"""One byte changed anywhere: `diff` and `verify` see it, or say that they did not look."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import one_byte
from tests.sweep import put_through, tries


@pytest.mark.wide
def test_no_changed_byte_is_missed(tmp_path: Path) -> None:
    seen = set()

    def check(sample: tuple[str, Path]) -> None:
        form, path = sample
        counts, missed = one_byte.tried(form, path, tries(6, 300))
        assert not missed
        seen.update(counts)

    put_through(check, one_byte.samples(tmp_path), name=lambda sample: f"{sample[0]}: {sample[1].name}")
    assert seen == {
        f"{command} {outcome}" for command in ("diff", "verify") for outcome in ("seen", "named", "same")
    }


def test_the_table_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_byte, "FILES", {"safetensors": one_byte.FILES["safetensors"]})
    monkeypatch.setattr(one_byte, "MADE", {})
    assert one_byte.main(2) == 0
    assert "| safetensors | 2 | 2 | 0 | 0 | 2 | 0 | 0 | 0 |" in capsys.readouterr().out
    monkeypatch.setattr(one_byte, "outcomes", lambda *_: ("missed", "seen"))
    assert one_byte.main(1) == 1
    assert "safetensors: all.safetensors: diff: all.safetensors byte" in capsys.readouterr().err
