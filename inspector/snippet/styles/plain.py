"""Style `plain`: load the file, and give the weights to the model."""

from __future__ import annotations

from inspector.snippet.loading import write_load, write_models
from inspector.snippet.request import Request
from inspector.snippet.script import Script


def render(request: Request) -> str:
    """Write the shortest code that loads the file and fills the model."""
    script, placement = Script(), request.placement
    devices = () if placement.as_one or placement.copied else placement.places
    script.paragraph(
        *(placement.choice_for(devices, moved=False) or placement.choice_for(request.model_devices))
    )
    write_load(script, request, placement.map_location())
    write_models(script, request)
    return script.text()
