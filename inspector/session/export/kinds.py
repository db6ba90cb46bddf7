"""The kinds of export that the dialog offers, and the form that each stands for."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.formats import Step, format_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import is_damaged
from inspector.model.totals import wasted_nbytes
from inspector.records import dataclass, replace
from inspector.remap.forms import Cast, Form
from inspector.report.words.formats import nothing_to_map
from inspector.session.export.choosing import split_patterns
from inspector.session.export.page import ExportWish
from inspector.session.screen import Choice

COPY, IN_PLACE, RECOVER = "copy", "in-place", "recover"
_PTH = "pth"
_CASTS: dict[str, Cast] = {"float16": "float16", "bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    Attributes:
        word: What stands in the proposed name; empty for the device that everything goes to.
        suffix: The proposed suffix; empty for the file's own.
        form: The form of the export, or None where no form is needed.
    """

    id: str
    label: str
    word: str = ""
    suffix: str = ""
    form: Form | None = None
    step: Step | None = None
    fits: Callable[[Checkpoint], bool] = lambda _: True


def _has_weights(checkpoint: Checkpoint) -> bool:
    return any(tensor.role == "parameter" for tensor in checkpoint.tensors)


def _becomes(what: str) -> Callable[[Checkpoint], bool]:
    return lambda checkpoint: format_of(checkpoint.format).copied_as == what


def _is_copied(checkpoint: Checkpoint) -> bool:
    return _becomes("same")(checkpoint)


def _is_module(checkpoint: Checkpoint) -> bool:
    return checkpoint.module_class is not None


KINDS = (
    Kind(id=COPY, label="The whole file, with other devices", step="remap"),
    Kind(id=IN_PLACE, label="Change the file itself", step="in-place"),
    Kind(
        id="torch",
        label="All of it, as a file for torch.load",
        word="torch",
        suffix=_PTH,
        form=Form(container="zip"),
        fits=_becomes("objects"),
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
        step="recover",
        fits=is_damaged,
    ),
    Kind(
        id="compact",
        label="The whole file, without unused bytes",
        word="compact",
        form=Form(compact=True),
        fits=lambda checkpoint: _is_copied(checkpoint) and wasted_nbytes(checkpoint.storages) > 0,
    ),
)


def kind_of(wish: ExportWish) -> Kind:
    """Return the kind that is asked for."""
    return next((kind for kind in KINDS if kind.id == wish.kind), KINDS[0])


def first_wish(checkpoint: Checkpoint) -> ExportWish:
    """Return what most people want: a copy, what is left of a damaged file, or what else there is."""
    if offers(RECOVER, checkpoint):
        return ExportWish(kind=RECOVER)
    kinds = offered_kinds(checkpoint)
    return ExportWish(kind=next((kind.id for kind in kinds if not kind.why), COPY))


def offered_kinds(checkpoint: Checkpoint) -> tuple[Choice, ...]:
    """List the kinds that fit a file; those that make no sense for its format say why."""
    return tuple(
        Choice(id=kind.id, label=kind.label, why=_why_not(kind, checkpoint))
        for kind in KINDS
        if kind.fits(checkpoint)
    )


def offers(id_: str, checkpoint: Checkpoint) -> bool:
    """Return whether a file offers a kind."""
    return any(kind.id == id_ and not kind.why for kind in offered_kinds(checkpoint))


def _why_not(kind: Kind, checkpoint: Checkpoint) -> str:
    if kind.step is None:
        return ""
    if kind.step != "recover" and (why := nothing_to_map(checkpoint)):
        return why
    found = (why.what for why in format_of(checkpoint.format).cannot if kind.step in why.steps)
    return "".join(f"{what[:1].upper()}{what[1:]}." for what in found)


def form_of(wish: ExportWish) -> Form | None:
    """Return the form that is asked for; None for a copy, or a change in place, of all there is."""
    kind = kind_of(wish)
    exclude = split_patterns(wish.exclude)
    if kind.id in {IN_PLACE, RECOVER} or (kind.form is None and not exclude):
        return None
    form = replace(kind.form or Form(), exclude=exclude)
    if not form.takes_model:
        return form
    return replace(form, cast=_CASTS.get(wish.cast), ema=wish.ema)
