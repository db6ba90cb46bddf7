"""Letters that are lines."""

from __future__ import annotations

import string

from inspector.desktop.thumbnail.letters import CAP_HEIGHT, fit, lines_of, width_of
from inspector.model.roles.device_types import DEVICE_TYPES

SIZES = "0123456789.-+ BKMGTPE"


def drawn(char: str) -> tuple[tuple[tuple[float, float], ...], ...]:
    return tuple(tuple(line) for line in lines_of(char, (0.0, 0.0), 1.0))


def test_what_sizes_and_devices_need_is_there_and_differs():
    needed = {*SIZES, *string.ascii_lowercase, *":_", *"".join(DEVICE_TYPES)} - {" "}
    pictures = {char: drawn(char) for char in sorted(needed)}
    assert len(set(pictures.values())) == len(pictures)
    assert drawn("\u540d") not in pictures.values()
    for char, lines in pictures.items():
        across = [x for line in lines for x, _ in line]
        down = [y for line in lines for _, y in line]
        assert min(across) >= 0, char
        assert max(across) <= width_of(char) + 1e-9, char
        assert 0 <= min(down) <= max(down) <= CAP_HEIGHT + 2, char


def test_capitals_that_are_not_there_are_small_letters():
    assert drawn("U") == drawn("u")
    assert drawn("K") != drawn("k")


def test_a_text_is_set_letter_by_letter():
    assert width_of("") == 0
    assert width_of("ab") == width_of("a") + 2 + width_of("b")
    first, second = list(lines_of("l l", (10.0, 20.0), 2.0))
    assert first == [(10.0, 20.0), (10.0, 32.0)]
    assert second == [(10.0 + 2 * (2 + 2.5), 20.0), (10.0 + 2 * (2 + 2.5), 32.0)]


def test_a_long_text_is_cut_to_its_room():
    assert fit("cuda:0", width_of("cuda:0")) == "cuda:0"
    cut = fit("privateuseone:0", 40)
    assert cut.endswith(".")
    assert "privateuseone:0".startswith(cut[:-1])
    assert width_of(cut) <= 40 < width_of(f"{cut[:-1]}x.")
    assert fit("mmm", 1) == ""
