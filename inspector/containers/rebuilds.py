"""torch's functions that make tensors while a pickle is loaded: the one table of them.

They are those of `torch/_utils.py` and `torch/_tensor.py` (`Tensor.__reduce_ex__`), of every release since
0.4. What their arguments mean stands in `model.tensors.rebuild`, which values they take in `model.arguments`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inspector.pickles.state import Expected


class Rebuild(NamedTuple):
    """One function."""

    name: str
    module: str = "torch._utils"
    common: bool = False  # whether files call it for each of their tensors
    # whether it is on the list of `weights_only=True`, and which arguments it takes is known
    judged: bool = True
    parameter: bool = False
    view: bool = False  # whether its first arguments are a storage, an offset, sizes and strides
    sent: bool = False  # whether it sends what is stored on the CPU to a device, its third argument
    # whether it calls another of these functions, for an object of a class of its own
    from_type: bool = False
    class_at: int = -1  # which of its arguments is a class, whatever is handed over; -1 for none
    grad_at: int = -1  # which argument of a common one says whether gradients are wanted; -1 for none
    arity: int = -1  # how many arguments a common one has

    @property
    def dotted(self) -> str:
        """Module and name."""
        return f"{self.module}.{self.name}"


WRAPPER = "_rebuild_wrapper_subclass"
JAGGED = "_rebuild_njt"
PARAMETER = Rebuild("_rebuild_parameter", common=True, parameter=True, grad_at=1, arity=3)
REBUILDS = (
    Rebuild("_rebuild_tensor", common=True, view=True, arity=4),
    Rebuild("_rebuild_tensor_v2", common=True, view=True, grad_at=4, arity=6),
    Rebuild("_rebuild_tensor_v3", common=True, view=True, grad_at=4, arity=7),
    PARAMETER,
    Rebuild("_rebuild_parameter_with_state", parameter=True),
    Rebuild("_rebuild_qtensor", view=True),
    Rebuild("_rebuild_sparse_tensor"),
    Rebuild("_rebuild_sparse_csr_tensor", judged=False),
    Rebuild("_rebuild_nested_tensor"),
    Rebuild(JAGGED, "torch.nested._internal.nested_tensor", judged=False),
    Rebuild("_rebuild_device_tensor_from_numpy", sent=True),
    Rebuild("_rebuild_device_tensor_from_cpu_tensor", sent=True),
    Rebuild("_rebuild_xla_tensor", judged=False, sent=True),
    Rebuild("_rebuild_meta_tensor_no_storage"),
    Rebuild(WRAPPER, class_at=0),
    Rebuild("_rebuild_from_type", "torch._tensor", judged=False, from_type=True, class_at=1),
    Rebuild("_rebuild_from_type_v2", "torch._tensor", from_type=True, class_at=1),
)


def names_of(wanted: Callable[[Rebuild], bool]) -> frozenset[str]:
    """Return the names, without their modules, of the functions that are wanted."""
    return frozenset(one.name for one in REBUILDS if wanted(one))


SENT, FROM_TYPE = names_of(lambda one: one.sent), names_of(lambda one: one.from_type)
PARAMETERS, VIEWS = names_of(lambda one: one.parameter), names_of(lambda one: one.view)
JUDGED = frozenset(one.dotted for one in REBUILDS if one.judged)
_COMMON = {"collections.OrderedDict": -1, **{one.dotted: one.arity for one in REBUILDS if one.common}}
EXPECTED = Expected(
    common=_COMMON,
    stateful=frozenset(_COMMON) | {"_codecs.encode", "torch.serialization._get_layout"},
    package="torch",
)
"""What the pickle machine is told of torch's pickles: it knows no name by itself."""
