from __future__ import annotations

from inspector.target.call import LoadCall, plain_call
from tests.sweep import table


@table(
    ("given", "release", "meant"),
    [
        (None, (2, 5), False),
        (None, (2, 6), True),
        (True, (2, 5), True),
        (False, (2, 13), False),
    ],
)
def test_weights_only_is_the_default_since_2_6(
    given: bool | None, release: tuple[int, int], meant: bool
) -> None:
    assert LoadCall(weights_only=given).is_weights_only(release) is meant


@table(("release", "given"), [((1, 12), None), ((1, 13), False), ((2, 13), False)])
def test_the_plain_call_depends_on_the_file_alone(release: tuple[int, int], given: bool | None) -> None:
    plain = plain_call(release)
    assert plain == LoadCall(weights_only=given)
    assert not plain.is_weights_only(release)
