"""The look of a page in a notebook: two palettes, chosen by what notebooks put around it.

Everything is scoped below one class, and nothing has an id: many of these pages stand in one document. Text
is in the notebook's own color, so that it can be read on any background.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from inspector.report.colors import NEUTRAL
from inspector.resources import resource_path

SCOPE = "ckpt-inspector"
_DARK = (
    f"body.vscode-dark .{SCOPE}",
    f"html[theme=dark] .{SCOPE}",
    f'[data-jp-theme-light="false"] .{SCOPE}',
    f"[data-theme=dark] .{SCOPE}",
)
"""VS Code, Colab, JupyterLab, and the generators of sites; others are left to what the system prefers."""
_LIGHT = (
    f"body.vscode-light .{SCOPE}",
    f"html[theme=light] .{SCOPE}",
    f'[data-jp-theme-light="true"] .{SCOPE}',
    f"[data-theme=light] .{SCOPE}",
)
_WRONG = "wrong"
"""The color of the mark before what is wrong."""
_RULES = """
.S{font:13px/1.5 system-ui,sans-serif;max-width:70em;overflow-wrap:anywhere}
.S *{box-sizing:border-box}
.S .head{font-weight:600}
.S .soft{opacity:.8}
.S .bad{font-weight:600}
.S .bad::before{content:"\\26A0\\FE0E";margin-right:.3em;color:var(--wrong)}
.S .line{margin:.15em 0}
.S .bar{display:flex;height:.7em;margin:.4em 0;border:1px solid;border-radius:3px;overflow:hidden}
.S .bar span{display:block;min-width:2px}
.S .chip{display:inline-block;margin-right:1.2em}
.S .dot{display:inline-block;width:.75em;height:.75em;margin-right:.4em;border:1px solid;border-radius:2px}
.S .tree{margin-top:.5em;max-height:32em;overflow:auto;border-top:1px solid;border-bottom:1px solid;
scrollbar-color:rgba(128,128,128,.7) transparent}
.S .in{padding-left:1.1em}
.S .row{display:grid;grid-template-columns:minmax(9em,1fr) 13em 9em 9em 5.5em;column-gap:1em;padding:1px 4px}
.S .row>span:last-child{text-align:right}
.S .value{grid-template-columns:minmax(9em,1fr) 27em 11.5em}
.S .row:hover{background:rgba(128,128,128,.18)}
.S summary{cursor:pointer;list-style:none}
.S summary::-webkit-details-marker{display:none}
.S summary>span:first-child{padding-left:1em;position:relative}
.S summary>span:first-child::before{content:"\\25B8";position:absolute;left:0}
.S details[open]>summary>span:first-child::before{content:"\\25BE"}
.S .leaf>span:first-child{padding-left:1em}
@media (max-width:46em){.S .row{grid-template-columns:minmax(8em,1fr) 7.5em 7.5em 6em 4.5em;column-gap:.5em}
.S .value{grid-template-columns:minmax(8em,1fr) 16em 11em}}
"""


def mark(color: int) -> str:
    """Return the class of a device's color, by its number."""
    return "cpu" if color == NEUTRAL else f"d{color % len(_theme('light')['devices'])}"


@cache
def style() -> str:
    """Return the style sheet."""
    light, dark = _palette("light"), _palette("dark")
    swatches = "".join(
        f".S .{name}{{background:var(--{name})}}\n" for name in _colors("light") if name != _WRONG
    )
    rules = [
        f".S{{{light}}}",
        f"@media (prefers-color-scheme:dark){{.S{{{dark}}}}}",
        f"{','.join(_LIGHT)}{{{light}}}",
        f"{','.join(_DARK)}{{{dark}}}",
    ]
    return "\n".join([*rules, _RULES.strip(), swatches]).replace(".S", f".{SCOPE}")


def _palette(theme: str) -> str:
    return ";".join(f"--{name}:{color}" for name, color in _colors(theme).items())


def _colors(theme: str) -> dict[str, str]:
    data = _theme(theme)
    devices = {f"d{number}": color for number, color in enumerate(data["devices"])}
    return {"cpu": data["cpu"], _WRONG: data["colors"]["bad"], **devices}


@cache
def _theme(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(resource_path(f"themes/{name}.json").read_text(encoding="utf-8"))
    return data
