"""The list that comes with the program, against the torch it was read from."""

from __future__ import annotations

import pytest

from inspector.safety.allowlist import default_allow_list


def test_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    ours = default_allow_list()
    if torch.__version__.partition("+")[0] != ours.torch_version:
        pytest.skip(f"the list speaks for torch {ours.torch_version}, and this is {torch.__version__}")
    assert ours.names == set(torch._weights_only_unpickler._get_allowed_globals())


def test_holds_what_every_checkpoint_needs() -> None:
    assert {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2"} <= default_allow_list().names
