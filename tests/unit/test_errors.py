from __future__ import annotations

from inspector import errors
from inspector.errors import CancelledError, CheckpointError, ContainerError
from tests.sweep import table

TREE = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, CheckpointError)
]


@table(
    ("error", "text"),
    [
        (CheckpointError("it broke"), "it broke"),
        (CheckpointError("it broke", where="byte 3"), "it broke: byte 3"),
        (CheckpointError("it broke", remedy="mend it"), "it broke (mend it)"),
        (CheckpointError("it broke", where="byte 3", remedy="mend it"), "it broke: byte 3 (mend it)"),
        (CancelledError(), "cancelled"),
    ],
)
def test_error_says_what_where_and_what_to_do(error: CheckpointError, text: str) -> None:
    assert str(error) == text


def test_parts_can_be_shown_one_by_one() -> None:
    error = ContainerError("short", where="record data.pkl", remedy="download it again")
    assert (error.what, error.where, error.remedy) == ("short", "record data.pkl", "download it again")
    assert error.args == ("short",)


def test_every_kind_of_error_has_a_name_of_its_own() -> None:
    kinds = [error.kind for error in TREE if "kind" in vars(error)]
    assert len(set(kinds)) == len(kinds) > 1
