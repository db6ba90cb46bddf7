"""Machine profiles that are genuine, damaged or anything at all, for hypothesis."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

PROFILES = sorted(Path(__file__).parents[2].joinpath("data/profiles").glob("*.json"))


def encoded(value: object, encoding: str = "utf-8") -> bytes:
    return json.dumps(value).encode(encoding)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A genuine profile with some of its values replaced by anything."""
    found = json.loads(draw(st.sampled_from(PROFILES)).read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        place = found
        while True:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.booleans()):
                place[key] = draw(values)
                break
            place = place[key]
    return json.dumps(found).encode("utf-8", "surrogatepass")
