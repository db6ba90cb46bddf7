from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.session.present.scripts import script_card
from tests.corpus import CORPUS
from tests.unit.diagnose.script.following import LOADED, machine, opened

FAILS = 'import torch\nsd = torch.load("sd_cuda.pth")\n'


def test_card_of_a_line_that_fails() -> None:
    card = script_card(FAILS, "train.py", opened("sd_cuda.pth"), machine("cpu"))
    assert (card.id, card.tone, card.title) == ("load-fails", "bad", "Line 2 fails.")
    assert card.detail == '2: sd = torch.load("sd_cuda.pth")'
    assert [caption for caption, _ in card.facts] == ["What torch says", "Why", "What to do"]
    assert card.patch.startswith("--- a/train.py\n+++ b/train.py\n")


def test_card_of_a_script_that_works() -> None:
    card = script_card(LOADED, "", opened("sd_cpu.pth"), machine("cpu"))
    assert (card.id, card.tone, card.patch) == ("script", "good", "")
    assert card.detail.startswith("12: model.load_state_dict(")
    assert card.facts == (("Limits", "Not judged: whether all names and shapes fit the model."),)


def test_card_of_what_is_no_script() -> None:
    card = script_card("import torch\ndef (:", "", opened("sd_cpu.pth"), machine("cpu"))
    assert (card.tone, card.title) == ("warning", "This script cannot be read")
    assert card.detail == "this is not valid Python: invalid syntax: script.py, line 2"
    long = script_card("import torch\n" + "x" * (2 << 20), "", opened("sd_cpu.pth"), machine("cpu"))
    assert long.detail.startswith("this script is too long")


def test_card_of_a_script_that_lets_the_file_run_commands_is_never_green() -> None:
    text = 'import torch\nx = torch.load("os_system.pt", weights_only=False)\n'
    evil = open_checkpoint(str(CORPUS / "hostile" / "os_system.pt"))
    card = script_card(text, "", evil, machine("cpu"))
    assert (card.tone, card.patch) == ("bad", "")
    assert card.title.startswith("Do not run this script")
