"""Make the folders of `tests/data/folders` anew: `python -m tests.frameworks.making.folders`.

They were made with diffusers 0.42.1, speechbrain 1.1.2, tensordict 0.15.3, accelerate 1.15.0, peft 0.21.2,
transformers 5.24.0 and torch 2.13.0.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from accelerate import Accelerator
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from peft import LoraConfig, get_peft_model
from speechbrain.utils.checkpoints import Checkpointer
from speechbrain.utils.epoch_loop import EpochCounter
from tensordict import TensorDict
from transformers import GPT2Config, GPT2LMHeadModel

HERE = Path(__file__).parents[2] / "data" / "folders"


def trained(*models: torch.nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam([item for model in models for item in model.parameters()])
    for model in models:
        for item in model.parameters():
            item.grad = torch.ones_like(item)
    optimizer.step()
    return optimizer


def main() -> None:
    blocks = {
        "down_block_types": ("DownBlock2D",),
        "up_block_types": ("UpBlock2D",),
        "block_out_channels": (2,),
    }
    unet = UNet2DModel(**blocks, norm_num_groups=1, layers_per_block=1, sample_size=8)
    pipeline = DDPMPipeline(unet, DDPMScheduler())
    pipeline.save_pretrained(HERE / "diffusers")
    pipeline.save_pretrained(HERE / "diffusers", safe_serialization=False)
    pipeline.save_pretrained(HERE / "diffusers_fp16", variant="fp16", max_shard_size="3KB")

    model, head = torch.nn.Linear(3, 2), torch.nn.Linear(2, 2)
    objects = {"model": model, "head": head, "optimizer": trained(model, head), "counter": EpochCounter(3)}
    saved = Checkpointer(HERE / "scratch", objects).save_checkpoint(meta={"loss": 1.5})
    shutil.move(saved.path, HERE / "speechbrain")
    shutil.rmtree(HERE / "scratch")

    inner = {"reward": torch.zeros(4, 1), "done": torch.zeros(4, 1, dtype=torch.bool)}
    tensors = {
        "obs": torch.rand(4, 3),
        "half": torch.ones(4, 2, dtype=torch.bfloat16),
        "next": inner,
        "text": "hi",
    }
    TensorDict(tensors, batch_size=[4]).memmap(HERE / "tensordict")

    accelerator = Accelerator(cpu=True)
    twins = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)) for _ in range(2)]
    accelerator.prepare(*twins, *map(trained, twins))
    accelerator.save_state(str(HERE / "accelerate"))

    config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=20, n_positions=16)
    adapted = get_peft_model(GPT2LMHeadModel(config), LoraConfig(r=2, target_modules=["c_attn"]))
    adapted.add_adapter("other", LoraConfig(r=3, target_modules=["c_attn"]))
    adapted.save_pretrained(HERE / "adapters")
    for page in HERE.glob("adapters/**/README.md"):
        page.unlink()


if __name__ == "__main__":
    main()
