"""The loading code of a file, which says what the device map says."""

from __future__ import annotations

from inspector.errors import PlanError
from inspector.session.cache import remembered
from inspector.session.device_map import DeviceMap, Pairs
from inspector.session.document import Document
from inspector.session.screen import Choice, CodePage
from inspector.snippet.script import comment_lines
from inspector.snippet.styles.table import offered_styles, render
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text, format_count

_MOST_BRANCHES = 3
_MOST_PATTERN = 60
_NO_NAMES = "map_location knows no names: only an exported copy has that."
_NO_TELLING = "map_location cannot tell them apart and leaves all of it: an exported copy has it."


def code_page(
    document: Document, device_map: DeviceMap, target: Profile, wanted: str, *, is_exact: bool
) -> CodePage:
    """Return the code page.

    Args:
        wanted: The id of the style that was chosen; where the file does not offer it, it gets its best one.
    """
    offered = _styles(document, wanted)
    ids = [style.id for style in offered]
    style = wanted if wanted in ids else next(iter(ids), "")
    mapping = device_map.going if is_exact else device_map.moves
    text = _code(document, target, style, mapping, is_exact)
    return CodePage(styles=offered, style=style, text=_not_in_code(device_map) + text)


@remembered
def _styles(document: Document, wanted: str) -> tuple[Choice, ...]:
    offered = offered_styles(document.checkpoint, wanted)
    return tuple(Choice(id=style.id, label=style.label) for style in offered)


@remembered
def _code(document: Document, target: Profile, style: str, mapping: Pairs, is_exact: bool) -> str:  # noqa: FBT001 - remembered by position
    try:
        return render(document.checkpoint, style=style, target=target, mapping=mapping, is_exact=is_exact)
    except PlanError as error:
        return f"# {escape_text(error.what)}\n"


def _not_in_code(device_map: DeviceMap) -> str:
    """Return comments on what of the map no `map_location` can say, and only a copy has."""
    said = []
    rules = [(rule.path, rule.to) for rule in device_map.branches if rule.path]
    if rules:
        shown = [f"{cut_text(path, _MOST_PATTERN)} to {to}" for path, to in rules[:_MOST_BRANCHES]]
        more = f" and {len(rules) - _MOST_BRANCHES:,} more" if len(rules) > _MOST_BRANCHES else ""
        said.append(f"The map also sends {escape_text(', '.join(shown))}{more}. {_NO_NAMES}")
    to, kept = dict(device_map.going).get("cpu", "cpu"), len(device_map.plan.kept)
    if to != "cpu" and kept:
        said.append(
            f"The map sends what is on the CPU to {to}, but for {format_count(kept, 'tensor')} that belong "
            f"there (step, RNG state). {_NO_TELLING}"
        )
    lines = [line for text in said for line in comment_lines(text)]
    return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")
