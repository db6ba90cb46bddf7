"""The table of styles: which snippets a file offers, and who writes them.

Whoever writes a style is imported when it is written: the window asks for the list whenever it composes its
screen, and starts by doing so.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.snippet.contents import find_contents
from inspector.snippet.order import Order
from inspector.snippet.placement import place_devices
from inspector.snippet.styles.plain import render_plain
from inspector.snippet.traits import Traits, look_at
from inspector.target.machine.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One way of writing the loading code.

    Attributes:
        id: The word for it on the command line.
        label: What people read.
    """

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    style: Style
    fits: Callable[[Traits], bool]
    write: Callable[[Order], str]


def _lightning(order: Order) -> str:
    from inspector.snippet.styles.lightning import render_lightning

    return render_lightning(order)


def _lightning_weights(order: Order) -> str:
    from inspector.snippet.styles.lightning import render_lightning_weights

    return render_lightning_weights(order)


def _transformers(order: Order) -> str:
    from inspector.snippet.styles.transformers import render_transformers

    return render_transformers(order)


def _data(order: Order) -> str:
    from inspector.snippet.styles.data import render_data

    return render_data(order)


def _module(order: Order) -> str:
    from inspector.snippet.styles.module import render_module

    return render_module(order)


def _module_weights(order: Order) -> str:
    from inspector.snippet.styles.module import render_module_weights

    return render_module_weights(order)


def _resume(order: Order) -> str:
    from inspector.snippet.styles.resume import render_resume

    return render_resume(order)


def _distributed(order: Order) -> str:
    from inspector.snippet.styles.distributed import render_distributed

    return render_distributed(order)


def _distributed_broadcast(order: Order) -> str:
    from inspector.snippet.styles.distributed import render_broadcast

    return render_broadcast(order)


_TABLE = (
    _Entry(
        style=Style(id="lightning", label="Lightning"),
        fits=lambda traits: traits.is_lightning,
        write=_lightning,
    ),
    _Entry(
        style=Style(id="lightning-weights", label="Lightning, without its class"),
        fits=lambda traits: traits.is_lightning,
        write=_lightning_weights,
    ),
    _Entry(
        style=Style(id="transformers", label="Transformers"),
        fits=lambda traits: traits.is_pretrained and traits.has_model,
        write=_transformers,
    ),
    _Entry(
        style=Style(id="data", label="Batches of data"),
        fits=lambda traits: traits.is_data,
        write=_data,
    ),
    _Entry(
        style=Style(id="plain", label="Load"),
        fits=lambda _: True,
        write=render_plain,
    ),
    _Entry(
        style=Style(id="module", label="Whole module"),
        fits=lambda traits: traits.has_module,
        write=_module,
    ),
    _Entry(
        style=Style(id="module-weights", label="Weights of the whole module"),
        fits=lambda traits: traits.has_module,
        write=_module_weights,
    ),
    _Entry(
        style=Style(id="resume", label="Resume training"),
        fits=lambda traits: traits.has_optimizer and traits.has_model,
        write=_resume,
    ),
    _Entry(
        style=Style(id="distributed", label="Distributed: each rank loads"),
        fits=lambda traits: traits.has_model,
        write=_distributed,
    ),
    _Entry(
        style=Style(id="distributed-broadcast", label="Distributed: one rank loads"),
        fits=lambda traits: traits.has_model and not traits.has_module,
        write=_distributed_broadcast,
    ),
)
"""In the order in which they are offered: what names the program that wrote the file comes first."""
_LABELS = {entry.style.id: entry.style.label for entry in _TABLE}


def styles(checkpoint: Checkpoint) -> tuple[Style, ...]:
    """List the styles that this file offers, the most fitting first."""
    if not format_of(checkpoint.format).torch_loads:
        from inspector.snippet.unopened import unopened_styles

        offered = unopened_styles(checkpoint.format, checkpoint.path)
        return tuple(Style(id=style, label=_LABELS[style]) for style in offered)
    traits = look_at(checkpoint)
    return tuple(entry.style for entry in _TABLE if entry.fits(traits))


def render(
    checkpoint: Checkpoint,
    *,
    style: str,
    target: Profile,
    mapping: tuple[tuple[str, str], ...] = (),
    path: str | None = None,
) -> str:
    """Write the loading code.

    Args:
        checkpoint: The file.
        style: The id of one of its styles.
        target: The machine; with the id `this`, the code finds out when it runs.
        mapping: What the user chose, as (saved device, where to). What is not among it stays where it was
            saved if the target has such a device, and goes to the target's best device otherwise.
        path: The path to load; the checkpoint's own if it is None.

    Raises:
        PlanError: The file does not offer this style.
    """
    offered = [offer.id for offer in styles(checkpoint)]
    if style not in offered:
        raise PlanError(
            f"this file offers no snippet in the style {style!r}",
            remedy=f"it offers {', '.join(offered) or 'none: torch.load does not open this format'}",
        )
    path = checkpoint.path if path is None else path
    if not format_of(checkpoint.format).torch_loads:
        from inspector.snippet.unopened import render_unopened

        return render_unopened(checkpoint.format, path, target, style=style)
    contents = find_contents(checkpoint)
    order = Order(
        checkpoint=checkpoint,
        # The names of data may pass for those of parameters.
        contents=replace(contents, models=()) if "data" in offered else contents,
        placement=place_devices(checkpoint, target, mapping),
        target=target,
        path=path,
    )
    return next(entry.write(order) for entry in _TABLE if entry.style.id == style)
