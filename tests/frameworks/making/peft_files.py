"""Adapters of peft, alone and in training."""

from __future__ import annotations

from typing import Any

import torch
from peft import IA3Config, LoraConfig, PrefixTuningConfig, get_peft_model

from tests.frameworks.making.table import Out, maker
from tests.frameworks.making.transformers_files import gpt2, keep_run, llama, texts, train
from tests.frameworks.oracle import Truth


def stepped(model: Any, optimizer: Any) -> None:
    ids = torch.arange(8)[None]
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()


def keep_adapter(out: Out, model: Any, name: str) -> None:
    for safe in (True, False):
        folder = out.scratch / f"{name}_{safe}"
        model.save_pretrained(folder, safe_serialization=safe)
        for file in sorted(folder.iterdir()):
            if file.suffix == ".safetensors":
                out.add(file, f"{name}/{file.name}", Truth().role("parameter"), "safetensors")
            elif file.suffix == ".bin":
                out.add(file, f"{name}/{file.name}", Truth().role("parameter"))
            elif file.suffix == ".json" and safe:
                out.keep(file, f"{name}/{file.name}")


@maker("peft/lora")
def lora(out: Out) -> None:
    model = get_peft_model(gpt2(), LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([item for item in model.parameters() if item.requires_grad])
    stepped(model, optimizer)
    keep_adapter(out, model, "lora")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out.scratch / "full.pt")
    truth = Truth().role("other").model(model, "model").optimizer(optimizer, model, "optimizer")
    out.add(out.scratch / "full.pt", "lora_full.pt", truth)
    adapter = {name: item for name, item in model.state_dict().items() if "lora_" in name}
    torch.save({"adapter": adapter, "optimizer": optimizer.state_dict()}, out.scratch / "adapter.pt")
    truth = Truth().role("other").role("parameter", "adapter").optimizer(optimizer, model, "optimizer")
    out.add(out.scratch / "adapter.pt", "lora_adapter.pt", truth)


@maker("peft/trainer")
def trainer_run(out: Out) -> None:
    model = get_peft_model(
        llama(), LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    )
    trainer, folder = train(model, texts(), out)
    keep_run(out, trainer, folder, "lora_run")


@maker("peft/others")
def others(out: Out) -> None:
    model = get_peft_model(
        llama(), IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"])
    )
    keep_adapter(out, model, "ia3")
    model = get_peft_model(
        gpt2(), PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3, token_dim=16, num_layers=2,
                                   num_attention_heads=2)
    )  # fmt: skip
    keep_adapter(out, model, "prefix")
    merged = get_peft_model(gpt2(), LoraConfig(r=2, target_modules=["c_attn"])).merge_and_unload()
    torch.save(merged.state_dict(), out.scratch / "merged.bin")
    out.add(out.scratch / "merged.bin", "merged.bin", Truth().model(merged))
    model = get_peft_model(
        gpt2(), LoraConfig(r=2, target_modules=["c_attn"], use_dora=True, modules_to_save=["lm_head"])
    )
    torch.save(model.state_dict(), out.scratch / "dora.pt")
    out.add(out.scratch / "dora.pt", "dora_state.pt", Truth().model(model))
