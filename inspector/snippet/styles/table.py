"""The table of styles: which snippets a file offers, and what writes them. A new style is a module and a row.

The module of a style is imported when it writes: the window lists the styles whenever it composes its screen.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.model.agents import AGENT
from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.safety.verdict import judge
from inspector.snippet.device import Device, choose_device, fixed_device
from inspector.snippet.inventory import take_inventory
from inspector.snippet.placement import place_devices
from inspector.snippet.request import Request, build_request
from inspector.snippet.traits import Traits, look_at
from inspector.target.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One way of writing the loading code.

    Attributes:
        has_reason: Tells whether something in the file speaks for it, so that it is offered unasked.
        function: The function there, which takes a `Request` and returns the code.
        has_loader: Tells whether a loader of its own reads the file, which may run what torch would refuse.
        takes_folder: Whether its loader is given the folder of the file.
    """

    id: str
    label: str
    fits: Callable[[Traits], bool]
    module: str
    function: str = "render"
    has_loader: Callable[[Traits], bool] = lambda _: False
    has_reason: Callable[[Traits], bool] = lambda _: True
    takes_folder: bool = False

    def write(self, request: Request) -> str:
        """Return the code."""
        render: Callable[[Request], str] = getattr(import_module(self.module, __package__), self.function)
        return render(request)


STYLES: tuple[Style, ...] = (
    Style(
        id="lightning",
        label="Lightning",
        fits=lambda traits: traits.is_lightning,
        module=".lightning",
        has_loader=lambda _: True,
    ),
    Style(
        id="lightning-weights",
        label="Lightning, without its class",
        fits=lambda traits: traits.is_lightning,
        module=".lightning",
        function="render_weights",
    ),
    Style(
        id="peft",
        label="PEFT adapters",
        fits=lambda traits: traits.is_adapter,
        module=".transformers",
        function="render_adapter",
        has_loader=lambda traits: traits.is_adapter_file,
        takes_folder=True,
    ),
    Style(
        id="transformers",
        label="Transformers",
        fits=lambda traits: traits.is_pretrained and traits.has_model,
        module=".transformers",
        has_loader=lambda _: True,
        takes_folder=True,
    ),
    Style(id="data", label="Batches of data", fits=lambda traits: traits.is_data, module=".data"),
    Style(
        id="resume",
        label="Resume training",
        fits=lambda traits: traits.has_optimizer and not traits.is_data,
        module=".resume",
    ),
    Style(id="module", label="Whole module", fits=lambda traits: traits.has_module, module=".module"),
    Style(id="plain", label="Load", fits=lambda _: True, module=".plain"),
    Style(
        id="module-weights",
        label="Weights of the whole module",
        fits=lambda traits: traits.has_module,
        module=".module",
        function="render_weights",
    ),
    Style(
        id="distributed",
        label="Distributed: each rank loads",
        fits=lambda traits: traits.has_model,
        has_reason=lambda traits: traits.is_spread,
        module=".distributed",
    ),
    Style(
        id="distributed-broadcast",
        label="Distributed: one rank loads",
        fits=lambda traits: traits.has_model and not traits.has_module,
        has_reason=lambda traits: traits.is_spread,
        module=".distributed",
        function="render_broadcast",
    ),
    Style(
        id="fsdp",
        label="FSDP",
        fits=lambda traits: traits.has_model and not traits.has_module,
        has_reason=lambda traits: traits.is_sharded,
        module=".fsdp",
    ),
    Style(
        id="accelerate",
        label="Accelerate",
        fits=lambda traits: traits.has_model,
        has_reason=lambda traits: traits.is_pretrained and not traits.has_config,
        module=".accelerate",
        takes_folder=True,
    ),
    Style(
        id="deepspeed",
        label="DeepSpeed",
        fits=lambda traits: traits.has_model,
        has_reason=lambda traits: traits.is_deepspeed,
        module=".deepspeed",
        has_loader=lambda traits: traits.is_deepspeed,
        takes_folder=True,
    ),
    Style(id="save", label="Save the next one", fits=lambda _: True, module=".saving"),
)
"""In the order in which they are offered, the first where none is chosen: what names the program that wrote
the file comes first, then what the file was written for."""


def offered_styles(checkpoint: Checkpoint, wanted: str | None = None) -> tuple[Style, ...]:
    """List the styles that something in this file speaks for, and the one that was asked for."""
    fitting = styles(checkpoint)
    if not format_of(checkpoint.format).torch_loads:
        return fitting
    traits = look_at(checkpoint)
    return tuple(style for style in fitting if style.id == wanted or style.has_reason(traits))


def styles(checkpoint: Checkpoint) -> tuple[Style, ...]:
    """List the styles that can be written for this file, the most fitting first."""
    if not format_of(checkpoint.format).torch_loads:
        from inspector.snippet.listed import listed_styles  # noqa: PLC0415 - see above

        if judge(checkpoint).may_harm:
            return ()  # nothing keeps its loader from what is in it
        named = {style.id: style for style in STYLES}
        return tuple(named[id_] for id_ in listed_styles(checkpoint))
    traits = look_at(checkpoint)
    offered = [style for style in STYLES if style.fits(traits)]
    if any(style.has_loader(traits) for style in offered) and judge(checkpoint).may_harm:
        offered = [style for style in offered if not style.has_loader(traits)]
    if not traits.has_config:  # the folder may get one, but as it is `from_pretrained` fails there
        offered.sort(key=lambda style: style.id == "transformers")
    return tuple(offered)


def render(
    checkpoint: Checkpoint,
    *,
    style: str | None,
    target: Profile,
    mapping: tuple[tuple[str, str], ...] = (),
    path: str | None = None,
    is_exact: bool = False,
) -> str:
    """Write the loading code.

    Args:
        style: The id of one of its styles; None for the one that fits it best.
        target: The machine; with the id `this`, the code finds out when it runs.
        mapping: What the user chose, as (saved device, where to). What is not among it stays where it was
            saved if the target has such a device, and goes to the target's best device otherwise.
        path: The path to load; the checkpoint's own if it is None.
        is_exact: Whether the user has made the map: then `map_location` is that map, where less would do too.
    """
    path = checkpoint.path if path is None else path
    from inspector.snippet.listed import loader_obstacle, render_refused  # noqa: PLC0415 - see above

    code = _render(checkpoint, style, target, mapping, path, is_exact=is_exact)
    obstacle = loader_obstacle(checkpoint)
    return code if obstacle is None else render_refused(checkpoint, path, obstacle)


def _render(
    checkpoint: Checkpoint,
    style: str | None,
    target: Profile,
    mapping: tuple[tuple[str, str], ...],
    path: str,
    *,
    is_exact: bool,
) -> str:
    if format_of(checkpoint.format).unchecked and style in {None, "plain"}:
        return _unchecked_code(checkpoint, target, mapping, path)
    offered = {offer.id: offer for offer in styles(checkpoint)}
    style = next(iter(offered), "plain") if style is None else style
    if style not in offered:
        raise PlanError(
            f"this file offers no snippet in the style {style!r}",
            remedy=f"it offers {', '.join(offered) or _none(checkpoint)}",
        )
    if not format_of(checkpoint.format).torch_loads:
        from inspector.snippet.listed import render_listed  # noqa: PLC0415 - see above

        return render_listed(checkpoint, path, target, style=style, device=_device_of(mapping))
    inventory = take_inventory(checkpoint)
    if "data" in offered:  # the names of data may pass for those of parameters
        inventory = replace(inventory, models=())
    placement = place_devices(checkpoint, target, mapping, inventory.models, is_exact=is_exact)
    return offered[style].write(build_request(checkpoint, inventory, placement, target, path))


def _unchecked_code(
    checkpoint: Checkpoint, target: Profile, mapping: tuple[tuple[str, str], ...], path: str
) -> str:
    """Write the code for a file whose loader runs whatever is named in it."""
    from inspector.snippet.arrays import NPY, NPZ, render_arrays  # noqa: PLC0415 - as above
    from inspector.snippet.folders import folder_code  # noqa: PLC0415 - as above
    from inspector.snippet.pickled import render_agent, render_pickled  # noqa: PLC0415 - such files are rare

    device = _device_of(mapping) or choose_device(target)
    if checkpoint.parts:
        return folder_code(checkpoint.format, path, device)
    if checkpoint.format == AGENT:
        return render_agent(checkpoint, path, device)
    if checkpoint.format in {NPY, NPZ}:
        return render_arrays(checkpoint, path, device)
    return render_pickled(checkpoint, path)


def _device_of(mapping: tuple[tuple[str, str], ...]) -> Device | None:
    """Return the one device that everything is sent to; such loaders take one for everything."""
    wanted = {device for _, device in mapping}
    return fixed_device(wanted.pop()) if len(wanted) == 1 else None


def _none(checkpoint: Checkpoint) -> str:
    safety = judge(checkpoint)
    if safety.may_harm:
        return f"none: {safety.danger}"
    return "none: torch.load does not open this format"
