"""Style `plain`: load the file, and give the weights to the model."""

from __future__ import annotations

from inspector.snippet.layout import Script
from inspector.snippet.loading import YOURS, write_load, write_models
from inspector.snippet.order import Order


def render_plain(order: Order) -> str:
    """Write the shortest code that loads the file and fills the model."""
    script, placement = Script(), order.placement
    of_models = [device for _, model in order.models for device in model.devices]
    if placement.is_open(of_models if placement.as_one else placement.places):
        script.paragraph(*placement.choice)
    write_load(script, order, placement.map_location())
    write_models(script, order, placed=placement.by_map_location, comment=YOURS)
    return script.text()
