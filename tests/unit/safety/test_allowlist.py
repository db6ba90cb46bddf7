"""The lists that come with the program, against the torch they were read from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.model.programs.facts import KNOWN_OPCODES
from inspector.safety import names as allowlist
from inspector.safety.names import allow_list, default_allow_list
from tests.sweep import table
from tests.torches import run_with_torch


@pytest.mark.wide
def test_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    ours = default_allow_list()
    if torch.__version__.partition("+")[0] != ours.torch_version:
        pytest.skip(f"the list speaks for torch {ours.torch_version}, and this is {torch.__version__}")
    assert ours.names == set(torch._weights_only_unpickler._get_allowed_globals()) | _allowed_on_import()


def _allowed_on_import() -> set[str]:
    """What torch allows itself while it is imported, in a process that has imported nothing else."""
    code = (
        "import torch\n"
        "for one in torch.serialization.get_safe_globals():\n"
        "    print(f'{one.__module__}.{one.__qualname__}')\n"
    )
    return set(run_with_torch("-c", code).stdout.split())


def test_holds_what_every_checkpoint_needs() -> None:
    assert {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2"} <= default_allow_list().names


@table(
    ("asked", "given"),
    [
        (None, "2.13.0"),
        ("nightly", "2.13.0"),
        ("2.13.0+cpu", "2.13.0"),
        ("2.13.1", "2.13.0"),
        ("2.4", "2.4.1"),
        ("2.4.0", "2.3.1"),
        ("2.5.1+cu124", "2.5.1"),
        ("2.6.0a0+git12", "2.6.0"),
        ("2.14.0", "2.13.0"),
        ("2.14.1", "2.14.1"),
        ("9.1", "2.15.0"),
        ("1.13.1", "1.13.1"),
        ("1.12", "1.13.1"),
    ],
)
def test_newest_list_that_is_not_newer_counts(asked: str | None, given: str) -> None:
    assert allow_list(asked).torch_version == given


def test_releases_differ_as_their_notes_say() -> None:
    assert "builtins.set" not in allow_list("2.5").names
    assert "builtins.set" in allow_list("2.6").names
    assert "collections.Counter" not in allow_list("2.3").names
    assert "torch._utils._rebuild_sparse_csr_tensor" in allow_list("1.13").names
    assert "BINFLOAT" not in allow_list("1.13").opcodes
    assert allow_list("2.0").opcodes == default_allow_list().opcodes
    assert allow_list("1.13").opcodes & default_allow_list().opcodes == KNOWN_OPCODES


def test_names_can_be_allowed_since_2_4() -> None:
    assert allow_list("2.4").takes_names
    assert not allow_list("2.3").takes_names
    assert default_allow_list().takes_names


def test_no_difference_speaks_of_what_is_not_there() -> None:
    folder = Path(allowlist.__file__).parent
    document = json.loads((folder / "allowlists.json").read_text(encoding="utf-8"))
    known = default_allow_list()
    assert document["base"] == known.torch_version
    assert len(document["others"]) >= 16
    for row in document["others"]:
        assert known.names.issuperset(row["without"])
        assert known.names.isdisjoint(row["with"])
        assert known.opcodes.issuperset(row["without_opcodes"])
