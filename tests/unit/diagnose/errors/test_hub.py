"""Models that are spread over files and devices."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_the_package_that_is_missing_is_named() -> None:
    text = "ImportError: Loading an AWQ quantized model requires auto-awq library (`pip install autoawq`)"
    assert "install -U auto-awq" in explain_error(text, None).advice
    text = "ImportError: this needs something: run pip install -U einops2 first"
    assert (
        "install -U einops2"
        in explain_error(text.replace("this needs something: run", "you need"), None).advice
    )


def test_each_message_has_its_row() -> None:
    ids = {
        "ValueError: Can't find a valid checkpoint at out/checkpoint-5": "folder-without-weights",
        "Exception: data did not match any variant of untagged enum ModelWrapper": "tokenizer-version",
        "lora key not loaded: lora_te1_text": "lora-form",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids
