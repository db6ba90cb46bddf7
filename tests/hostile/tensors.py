"""Tensors that cannot be: groups 22 and 23. Each is shown as invalid, and the rest of the file as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.builders import zips
from tests.builders.pickles import (
    NONE,
    call,
    dict_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)

Rows = dict[int, dict[str, tuple[Callable[[], bytes], dict[str, Any]]]]
ORDERED = call("collections.OrderedDict")


def view(
    data: bytes | None = None,
    offset: bytes = number(0),
    size: bytes = tuple_(number(2)),
    stride: bytes = tuple_(number(1)),
) -> bytes:
    return call(
        "torch._utils._rebuild_tensor_v2", data or storage(), offset, size, stride, op("NEWFALSE"), ORDERED
    )


def beside(bad: bytes, storages: dict[str, bytes] | None = None) -> Callable[[], bytes]:
    honest = tensor(storage("9"), 2)
    data = stream(proto(), dict_((text("bad"), bad), (text("good"), honest)))
    return lambda: zips.checkpoint(
        data, {"9": bytes(8)} | ({"0": bytes(8)} if storages is None else storages)
    )


def sizes(*values: int) -> bytes:
    return tuple_(*map(number, values))


INVALID = {"answer": "errors", "paths": "good"}
ONE_PROBLEM = {**INVALID, "problems": "."}
HUGE = 2**62

CASES: Rows = {
    22: {
        "past its storage": (beside(view(size=sizes(3))), ONE_PROBLEM),
        "an offset past its storage": (beside(view(offset=number(1))), ONE_PROBLEM),
        "a negative size": (beside(view(size=sizes(-1))), ONE_PROBLEM),
        "a negative stride": (beside(view(stride=sizes(-1))), ONE_PROBLEM),
        "a negative offset": (beside(view(offset=number(-1))), ONE_PROBLEM),
        "sizes that overflow": (beside(view(size=sizes(HUGE, HUGE), stride=sizes(1, 1))), ONE_PROBLEM),
        "strides that overflow": (beside(view(size=sizes(2, 2), stride=sizes(HUGE, HUGE))), ONE_PROBLEM),
        "an offset that overflows": (beside(view(offset=number(2**63 - 1))), ONE_PROBLEM),
        "more sizes than strides": (beside(view(size=sizes(1, 2))), ONE_PROBLEM),
        "a size that is no whole number": (beside(view(size=tuple_(op("BINFLOAT", bytes(8))))), INVALID),
        "a size of 2 to the 70": (beside(view(size=sizes(2**70))), INVALID),
        "a hundred thousand dimensions": (
            beside(view(size=sizes(*[1] * 100_000), stride=sizes(*[1] * 100_000))),
            {"answer": "accepts"},
        ),
        "no arguments": (beside(call("torch._utils._rebuild_tensor_v2")), INVALID),
        "a text as its storage": (beside(view(data=text("0"))), INVALID),
        "a record that is missing": (beside(view(), storages={}), {**INVALID, "findings": "truncated"}),
        "a record that is too short": (beside(view(), storages={"0": bytes(4)}), ONE_PROBLEM),
        "a record that is too long": (beside(view(), storages={"0": bytes(12)}), ONE_PROBLEM),
        "a storage class that does not exist": (
            beside(view(data=storage(cls="torch.NoStorage"))),
            {"paths": "good"},
        ),
        "a storage of 2 to the 62 elements": (beside(view(data=storage(numel=HUGE))), INVALID),
    },
    23: {
        "a step of zero and 2 to the 62 elements": (
            beside(view(size=sizes(HUGE // 8), stride=sizes(0))),
            {"answer": "accepts", "problems": []},
        ),
        "a meta tensor of 2 to the 60 elements": (
            beside(
                call(
                    "torch._utils._rebuild_meta_tensor_no_storage",
                    name("torch.float32"),
                    sizes(2**60),
                    sizes(1),
                    op("NEWFALSE"),
                )
            ),
            {"answer": "accepts", "nbytes": [2**62, 8]},
        ),
        "a tensor of nothing": (beside(NONE), {"answer": "accepts", "tensors": 1}),
    },
}
