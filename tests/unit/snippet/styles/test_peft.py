"""The style `peft`, as text; `test_table_torch.py` runs it."""

from __future__ import annotations

from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, tensor


def peft(*names: str, path: str = "lora.pt", target: Profile = CPU_ONLY) -> str:
    rows = checkpoint(*(tensor("m", name) for name in names))
    return render(rows, style="peft", target=target, path=path)


def test_folder() -> None:
    name, path = "base_model.model.q.lora_A.weight", "run/adapter_model.bin"
    assert peft(name, path=path) == (
        "from peft import AutoPeftModelForCausalLM\n\n"
        'folder = "run"\n'
        "# adapter_config.json names the base model; other tasks have classes of their own.\n"
        "model = AutoPeftModelForCausalLM.from_pretrained(folder)\n"
        "model.eval()\n"
    )
    assert "model.to(device)\n" in peft(name, path=path, target=THIS)
    assert 'model.to("cuda:1")\n' in peft(name, path="adapter_model.bin", target=parse_target("cuda:1"))


def test_any_other_file() -> None:
    text = peft("base_model.model.q.lora_A.weight", target=THIS)
    assert "from peft import set_peft_model_state_dict\n" in text
    assert text.endswith('m.to(device)\nset_peft_model_state_dict(m, checkpoint["m"])\n')
    saved_by_the_model = peft("q.lora_A.default.weight")
    assert "import peft" not in saved_by_the_model
    assert saved_by_the_model.endswith('m.load_state_dict(checkpoint["m"], strict=False)\n')
