from __future__ import annotations

import pytest

from inspector.errors import ModelError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.walk import keyed_devices
from inspector.records import replace
from tests.builders.pickles import number, text
from tests.unit.model.making import call, root_of


def test_paths_of_keys_and_what_they_cost() -> None:
    keys = [root_of(call("torch.device", text("cuda"), number(1))), root_of(call("torch.device", number(1)))]
    work = DEFAULT_LIMITS.started().counted()
    found = [one for one, _ in keyed_devices(keys, "a/b", work)]
    assert [(one.path, one.device) for one in found] == [
        ('a/b/torch.device("cuda", 1)', "cuda:1"),
        ("a/b/torch.device(1)", "?"),
    ]
    assert [one.path for one, _ in keyed_devices(keys[:1], "", work)] == ['torch.device("cuda", 1)']
    few = replace(DEFAULT_LIMITS, parts=4).started().counted()
    with pytest.raises(ModelError):
        list(keyed_devices(keys, "", few))
