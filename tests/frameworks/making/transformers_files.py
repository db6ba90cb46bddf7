"""Files of transformers' models and Trainer, and of accelerate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on


def gpt2() -> Any:
    return GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2))


def bert() -> Any:
    config = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    return BertForSequenceClassification(config)


def llama() -> Any:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=40,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=16,
        )
    )


def t5() -> Any:
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0
        )
    )


def vit() -> Any:
    return ViTForImageClassification(
        ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=8,
            patch_size=4,
        )
    )


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> dict[str, Any]:
        return self.rows[place]


def texts(labels: str = "ids") -> Rows:
    ids = torch.arange(8)
    return Rows([{"input_ids": ids, "labels": ids if labels == "ids" else torch.tensor(1)} for _ in range(8)])


def images() -> Rows:
    return Rows([{"pixel_values": torch.randn(3, 8, 8), "labels": torch.tensor(1)} for _ in range(8)])


def train(model: nn.Module, rows: Rows, out: Out, **options: Any) -> tuple[Trainer, Path]:
    kind = options.pop("trainer", Trainer)
    arguments = TrainingArguments(
        output_dir=str(out.scratch / "run"),
        max_steps=2,
        save_steps=2,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    trainer = kind(model=model, args=arguments, train_dataset=rows)
    trainer.train()
    return trainer, out.scratch / "run" / "checkpoint-2"


_REPEATED = {
    "scheduler.pt",
    "rng_state.pth",
    "training_args.bin",
    "trainer_state.json",
    "generation_config.json",
}


def keep_run(out: Out, trainer: Trainer, folder: Path, name: str) -> None:
    """Keep what a Trainer saved: the optimizer and its like with oracles, and what stands beside them."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    optimizer = Truth().optimizer(_bare(trainer.optimizer), model)
    optimizer.slots = {key: _name_in_file(name) for key, name in optimizer.slots.items()}
    truths = {
        "optimizer.pt": optimizer,
        "scheduler.pt": Truth().role("scheduler"),
        "rng_state.pth": Truth().role("rng", "cpu").role("other", "numpy").role("other", "python"),
        "training_args.bin": Truth().role("other"),
    }
    for file in sorted(folder.iterdir()):
        kept = f"{name}/{file.name}"
        if name not in {"gpt2_run", "bert_run"} and file.name in _REPEATED:
            continue  # the same in every run
        if file.name in truths:
            out.add(file, kept, truths[file.name])
        elif file.suffix in {".safetensors", ".bin"}:
            is_plain = file.suffix == ".safetensors"
            out.add(file, kept, Truth().model(model), "safetensors" if is_plain else "zip")
        elif file.suffix == ".json":
            out.keep(file, kept)


def _name_in_file(name: str) -> str:
    """Return a parameter's name as it is saved: without that of an adapter, ViT's as of old."""
    name = name.replace(".default.", ".")
    if not name.startswith("vit."):
        return name
    for part in "query", "key", "value":
        name = name.replace(f"attention.{part[0]}_proj", f"attention.attention.{part}")
    for new, old in (
        ("attention.o_proj", "attention.output.dense"),
        ("mlp.fc1", "intermediate.dense"),
        ("mlp.fc2", "output.dense"),
        ("vit.layers.", "vit.encoder.layer."),
    ):
        name = name.replace(new, old)
    return name


def _bare(optimizer: Any) -> Any:
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


@maker("transformers/gpt2_trainer")
def gpt2_trainer(out: Out) -> None:
    trainer, folder = train(gpt2(), texts(), out)
    keep_run(out, trainer, folder, "gpt2_run")


@maker("transformers/bert_trainer")
def bert_trainer(out: Out) -> None:
    with saved_as_if_on("cuda:0"):
        trainer, folder = train(bert(), texts("one"), out)
    (folder / "model.safetensors").unlink()
    torch.save(trainer.model.state_dict(), folder / "pytorch_model.bin")
    keep_run(out, trainer, folder, "bert_run")


@maker("transformers/llama_trainer")
def llama_trainer(out: Out) -> None:
    trainer, folder = train(llama(), texts(), out, optim="adafactor", gradient_checkpointing=True)
    keep_run(out, trainer, folder, "llama_adafactor")


@maker("transformers/t5_trainer")
def t5_trainer(out: Out) -> None:
    trainer, folder = train(t5(), texts(), out, lr_scheduler_type="cosine", weight_decay=0.1)
    keep_run(out, trainer, folder, "t5_run")


@maker("transformers/vit_trainer")
def vit_trainer(out: Out) -> None:
    model = vit()
    for parameter in model.vit.embeddings.parameters():
        parameter.requires_grad_(False)
    trainer, folder = train(model, images(), out)
    keep_run(out, trainer, folder, "vit_frozen")


@maker("transformers/only_model")
def only_model(out: Out) -> None:
    trainer, folder = train(gpt2(), texts(), out, save_only_model=True)
    keep_run(out, trainer, folder, "only_model")


@maker("transformers/sharded")
def sharded(out: Out) -> None:
    model = llama()
    model.save_pretrained(out.scratch / "shards", max_shard_size="12KB")
    for file in sorted((out.scratch / "shards").iterdir()):
        if file.suffix == ".safetensors":
            out.add(file, f"sharded/{file.name}", Truth().model(model), "safetensors")
        else:
            out.keep(file, f"sharded/{file.name}")


@maker("transformers/bin_shards")
def bin_shards(out: Out) -> None:
    model = bert()
    state = dict(model.state_dict())
    names = list(state)
    folder = out.scratch / "bin"
    folder.mkdir()
    parts = [names[:20], names[20:]]
    where = {}
    for number, part in enumerate(parts, 1):
        file = folder / f"pytorch_model-{number:05}-of-00002.bin"
        torch.save({name: state[name] for name in part}, file)
        where |= dict.fromkeys(part, file.name)
        out.add(file, f"bin_shards/{file.name}", Truth().model(model))
    index = {"metadata": {"total_size": sum(item.nbytes for item in state.values())}, "weight_map": where}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    out.keep(folder / "pytorch_model.bin.index.json", "bin_shards/pytorch_model.bin.index.json")


@maker("transformers/whole")
def whole(out: Out) -> None:
    model = gpt2()
    torch.save(model, out.scratch / "whole.pt")
    out.add(out.scratch / "whole.pt", "gpt2_whole.pt", Truth())
    torch.save(
        {"model": model.state_dict(), "config": model.config, "tokenizer": None}, out.scratch / "config.pt"
    )
    out.add(out.scratch / "config.pt", "gpt2_with_config.pt", Truth().role("other").model(model, "model"))


@maker("transformers/accelerate")
def accelerate_state(out: Out) -> None:
    for name, options in (("accelerate_state", {}), ("accelerate_bin", {"safe_serialization": False})):
        accelerator = Accelerator(cpu=True)
        net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))
        optimizer = torch.optim.AdamW(net.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        model, wrapped, plan = accelerator.prepare(net, optimizer, scheduler)
        accelerator.backward(model(torch.randn(3, 4)).square().mean())
        wrapped.step()
        plan.step()
        accelerator.save_state(out.scratch / name, **options)
        for file in sorted((out.scratch / name).iterdir()):
            kept = f"{name}/{file.name}"
            if file.suffix == ".safetensors":
                out.add(file, kept, Truth().model(net), "safetensors")
            elif file.name.startswith("optimizer"):
                out.add(file, kept, Truth().optimizer(optimizer, net))
            elif file.name.startswith("pytorch_model"):
                out.add(file, kept, Truth().model(net))
            elif file.name.startswith("random_states"):
                roles = (
                    Truth()
                    .role("other")
                    .role("rng", "torch_manual_seed")
                    .role("rng", "torch_cuda_manual_seed")
                )
                out.add(file, kept, roles)
            elif file.name.startswith("scheduler"):
                out.add(file, kept, Truth().role("scheduler"))
            else:
                out.keep(file, kept)
