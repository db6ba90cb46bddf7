"""The table of styles: which snippets a file offers, and who writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.snippet.contents import find_contents
from inspector.snippet.models import has_model
from inspector.snippet.order import Order
from inspector.snippet.placement import place_devices
from inspector.snippet.plain import render_plain
from inspector.snippet.resume import render_resume
from inspector.target.profile import Profile

_TORCH_LOADS = frozenset({"zip", "legacy", "tar"})


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
    formats: frozenset[str]
    fits: Callable[[Checkpoint], bool]
    render: Callable[[Order], str]


_TABLE = (
    _Entry(
        style=Style(id="plain", label="Load"),
        formats=_TORCH_LOADS,
        fits=lambda _: True,
        render=render_plain,
    ),
    _Entry(
        style=Style(id="resume", label="Resume training"),
        formats=_TORCH_LOADS,
        fits=lambda checkpoint: bool(checkpoint.optimizers) and has_model(checkpoint),
        render=render_resume,
    ),
)


def styles(checkpoint: Checkpoint) -> tuple[Style, ...]:
    """List the styles that this file offers, the most usual first."""
    return tuple(entry.style for entry in _offered(checkpoint))


def _offered(checkpoint: Checkpoint) -> Iterator[_Entry]:
    return (entry for entry in _TABLE if checkpoint.format in entry.formats and entry.fits(checkpoint))


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
    offered = {entry.style.id: entry for entry in _offered(checkpoint)}
    if style not in offered:
        raise PlanError(
            f"this file offers no snippet in the style {style!r}",
            remedy=f"it offers {', '.join(offered) or 'none: torch.load does not open this format'}",
        )
    order = Order(
        checkpoint=checkpoint,
        contents=find_contents(checkpoint),
        placement=place_devices(checkpoint, target, mapping),
        target=target,
        path=checkpoint.path if path is None else path,
    )
    return offered[style].render(order)
