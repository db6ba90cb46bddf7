"""The kinds of export that the dialog offers, and the form that each stands for."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.formats import allows
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import is_damaged
from inspector.model.totals import wasted_nbytes
from inspector.records import dataclass, replace
from inspector.remap.convert.forms import Cast, Form
from inspector.session.screen import Choice, ExportWish

COPY, IN_PLACE, RECOVER = "copy", "in-place", "recover"
_CASTS: dict[str, Cast] = {"float16": "float16", "bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    Attributes:
        id: Its stable name.
        label: What people read.
        word: What stands in the proposed name; empty for the device that everything goes to.
        suffix: The proposed suffix; empty for the file's own.
        form: The form of the export, or None where no form is needed.
        fits: Whether a file offers it.
    """

    id: str
    label: str
    word: str = ""
    suffix: str = ""
    form: Form | None = None
    fits: Callable[[Checkpoint], bool] = lambda _: True


def _has_weights(checkpoint: Checkpoint) -> bool:
    return any(tensor.role == "parameter" for tensor in checkpoint.tensors)


def _is_module(checkpoint: Checkpoint) -> bool:
    return checkpoint.module_class is not None


KINDS = (
    Kind(
        id=COPY,
        label="The whole file, with other devices",
        fits=lambda checkpoint: allows(checkpoint.format, "remap"),
    ),
    Kind(
        id=IN_PLACE,
        label="Change the file itself",
        fits=lambda checkpoint: allows(checkpoint.format, "in-place"),
    ),
    Kind(
        id="weights",
        label="The weights alone, as a state dict",
        word="weights",
        form=Form(only_weights=True),
        fits=lambda checkpoint: _has_weights(checkpoint) and not _is_module(checkpoint),
    ),
    Kind(
        id="state-dict",
        label="The state dict of the module, without its classes",
        word="weights",
        form=Form(shape="state-dict"),
        fits=_is_module,
    ),
    Kind(
        id="safetensors",
        label="The weights as safetensors",
        word="weights",
        suffix="safetensors",
        form=Form(shape="safetensors"),
        fits=_has_weights,
    ),
    Kind(
        id=RECOVER,
        label="What is intact, as a new checkpoint",
        word="recovered",
        fits=lambda checkpoint: is_damaged(checkpoint) and allows(checkpoint.format, "recover"),
    ),
    Kind(
        id="compact",
        label="The whole file, without unused bytes",
        word="compact",
        form=Form(compact=True),
        fits=lambda checkpoint: wasted_nbytes(checkpoint.storages) > 0,
    ),
)


def kind_of(wish: ExportWish) -> Kind:
    """Return the kind that is asked for."""
    return next((kind for kind in KINDS if kind.id == wish.kind), KINDS[0])


def first_wish(checkpoint: Checkpoint) -> ExportWish:
    """Return what most people want of a file: a copy, or what is left of a damaged one, or what it offers."""
    offered = [choice.id for choice in offered_kinds(checkpoint)]
    if RECOVER in offered:
        return ExportWish(kind=RECOVER)
    return ExportWish(kind=COPY if COPY in offered else next(iter(offered), COPY))


def offered_kinds(checkpoint: Checkpoint) -> tuple[Choice, ...]:
    """List the kinds that a file offers."""
    return tuple(Choice(id=kind.id, label=kind.label) for kind in KINDS if kind.fits(checkpoint))


def form_of(wish: ExportWish) -> Form | None:
    """Return the form that is asked for; None for a copy, or a change in place, of all there is."""
    kind = kind_of(wish)
    exclude = tuple(wish.exclude.split())
    if kind.id in {IN_PLACE, RECOVER} or (kind.form is None and not exclude):
        return None
    form = replace(kind.form or Form(), exclude=exclude)
    if not form.takes_model:
        return form
    return replace(form, cast=_CASTS.get(wish.cast), ema=wish.ema)
