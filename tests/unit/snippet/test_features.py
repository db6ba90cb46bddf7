"""Each release is asked what it has; what is not known counts as the newest."""

from __future__ import annotations

from inspector.snippet.loading import FEATURES, has
from inspector.target.profile import Profile
from tests.sweep import table


@table("name", FEATURES)
def test_features_by_release(name: str) -> None:
    major, minor = FEATURES[name]
    for version, expected in (
        (f"{major}.{minor}.0+cu118", True),
        (f"{major}.{minor - 1}.1", False),
        ("1.0", False),
        ("2.13.0", True),
        ("no version", True),
        (None, True),
    ):
        assert has(Profile(id="cpu", label="", torch_version=version), name) == expected
