from __future__ import annotations

from inspector.session.frame import shown_name
from inspector.session.present.compose import compose
from inspector.session.state import State


def test_a_file_that_stands_for_its_folder_is_called_like_that() -> None:
    asked = {
        "/runs/step-500/.metadata": "step-500",
        "/runs/step-500/__0_0.distcp": "step-500",
        "/runs/ds/latest": "ds",
        "/runs/llama/model.safetensors.index.json": "llama",
        "/runs/llama/model-00001-of-00002.safetensors": "model-00001-of-00002.safetensors",
        "/.metadata": ".metadata",
        "latest": "latest",
        "/runs/e\u202ex/latest": "e\\u202ex",
    }
    assert {path: shown_name(path) for path in asked} == asked
    assert compose(State(phase="opening", path="/runs/ds/latest")).title == "ds - Checkpoint Inspector"
