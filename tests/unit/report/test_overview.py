from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.records import replace
from inspector.report.overview import OPTIMIZERS, Overview, name_of, overview_of, with_memory, with_scores
from inspector.report.query import parse_query, searchable
from inspector.resources import demo_path
from inspector.target.profile import CPU_ONLY, Gpu, Profile
from tests.frameworks.cases import FILES
from tests.unit.report import models
from tests.unit.report.models import state
from tests.unit.report.rows import checkpoint, is_harmless, optimizer, storage, tensor, value
from tests.work import growth

CARD = Profile(
    id="this",
    label="this machine",
    accelerators=(("cuda", 1),),
    gpus=(Gpu(device="cuda:0", memory_nbytes=24_000_000_000),),
    memory_nbytes=64_000_000_000,
)
LINEAR = list(models.linear("fc.0", 3, 4))


def seen(rows: Checkpoint, target: Profile = CPU_ONLY, loading: tuple[tuple[str, str], ...] = ()) -> Overview:
    return with_memory(overview_of(rows), rows, target, loading)


def lines(found: Overview | Checkpoint) -> dict[str, str]:
    found = seen(found) if isinstance(found, Checkpoint) else found
    return {line.caption: line.text for group in found.groups for line in group.lines}


def whys(found: Overview) -> dict[str, str]:
    return {line.caption: line.why for group in found.groups for line in group.lines}


def test_the_demo():
    found = seen(open_checkpoint(str(demo_path())), loading=(("CPU memory", "1.4 MB"),))
    assert found.title == "ResNet-like, 44.4K parameters"
    assert [group.title for group in found.groups] == ["Model", "Training", "Memory needed on cpu", "File"]
    assert lines(found) == {
        "Called": "resnet14-tiny, by config/model",
        "Family": "ResNet-like",
        "Layers": "2 + 2 + 2 blocks in layer1, layer2, layer3",
        "Parameters": "44.4K (44,370) in float32, 177 KB",
        "Averages": "ema, 177 KB more",
        "Optimizer": "Adam, learning rate 0.0001",
        "Its state": "step, exp_avg, exp_avg_sq: 355 KB, 49.5 % of all bytes",
        "Scheduler": "MultiStepLR, at its step 50",
        "Reached": "epoch 50, best_accuracy 0.9137",
        "Besides": "GradScaler at 32768, random states of torch",
        "Loading": "1.4 MB",
        "Inference": "180 KB in float32, 90.0 KB in bfloat16",
        "Training": "712 KB in float32 with Adam",
        "Saved by": "torch 2.7 or later",
        "Holds": "parameters 177 KB, buffers 2.4 KB, optimizer state 355 KB, random states 5.1 KB, "
        "averages 177 KB",
        "Saved on": "cuda:0 176 KB, cuda:1 536 KB, cpu 5.3 KB",
    }


def test_what_a_line_speaks_of_is_found_by_its_search():
    """Each search finds something, and that of the parameters as many as were counted."""
    rows = open_checkpoint(str(demo_path()))
    found = searchable(rows)
    queries = {
        line.caption: parse_query(line.query).find(found)
        for group in seen(rows).groups
        for line in group.lines
        if line.query
    }
    assert len(queries) > 5
    for caption, (tensors, values) in queries.items():
        assert list(tensors) or list(values), caption
    assert len(list(queries["Parameters"][0])) == 47


def test_memory_is_that_of_the_models_alone_and_is_held_against_the_card():
    named = list(models.llama())
    rows = checkpoint(*state(named, "model", dtype="bfloat16"), *models.slots(named, "optimizer"))
    found = seen(rows, CARD)
    assert found.groups[-2].title == "Memory needed on cuda:0, of 24.0 GB"
    assert lines(found)["Inference"] == "29.0 GB in float32 (5.0 GB too much), 14.5 GB in bfloat16"
    assert lines(found)["Training"] == "116 GB in float32 with Adam (91.9 GB too much)"
    assert "without activations" in whys(found)["Training"]


def test_a_cast_leaves_counters_as_they_are():
    rows = checkpoint(*state(models.batch_norm("bn", 1000)))
    assert lines(rows)["Inference"] == "16.0 KB in float32, 8.0 KB in bfloat16"
    assert lines(rows)["Training"] == "40.0 KB in float32 with Adam"


def test_two_models_are_needed_both_and_copies_once():
    two = checkpoint(*state(LINEAR, "netG"), *state(LINEAR, "netD"))
    assert seen(two).title == "2 models, 30 parameters"
    assert lines(two)["netG"] == "15 in float32, 60 B"
    assert lines(two)["Inference"] == "120 B in float32, 60 B in bfloat16"
    copied = checkpoint(
        *state(LINEAR, "model"), *state(LINEAR, "best_model"), *state(LINEAR, "ema", role="ema")
    )
    assert lines(copied)["Inference"] == "60 B in float32, 30 B in bfloat16"
    assert lines(copied)["Copies"] == "best_model, 60 B more"


def test_quantized_weights_are_not_trained_and_packed_ones_not_cast():
    quantized = checkpoint(tensor("fc.weight", dtype="qint8", nbytes=4, storage="0"), storage("0"))
    assert lines(quantized)["Inference"] == "4 B as saved, 16 B in float32, 8 B in bfloat16"
    assert "Training" not in lines(quantized)
    packed = tensor("fc.qweight", shape=(8, 16), dtype="int32", nbytes=512, storage="0", role="buffer")
    rows = checkpoint(packed, tensor("fc.bias", nbytes=16, storage="1"), storage("0"), storage("1"))
    assert lines(rows)["Inference"] == "528 B as saved"
    assert lines(rows)["Parameters"] == "4 and 1 packed matrix in float32, 528 B"


def test_an_adapter_says_that_its_model_is_not_there():
    found = seen(checkpoint(*state(models.lora())))
    assert found.title == "LoRA adapter, rank 8, 295K parameters"
    assert lines(found)["Layers"].startswith("12 blocks in base_model.model.transformer.h")
    assert "its model comes on top" in whys(found)["Inference"]
    assert "Training" not in lines(found)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("model-00002-of-00005.safetensors", "15 parameters in this part"),
        ("model-00001-of-00001.safetensors", "15 parameters"),
        ("epoch-00002-of-00005.d/best.pth", "15 parameters"),
    ],
)
def test_a_file_is_a_part_by_its_name_too(name: str, size: str):
    """Its other files, and their index, may have stayed behind."""
    assert seen(replace(checkpoint(*state(LINEAR)), path=name)).title == f"Model, {size}"


def test_a_file_of_several_says_that_it_is_one():
    part = checkpoint(
        *state(models.llama(range(16, 32), is_whole=False)), notes=(Note(NoteKind.PART_OF, ("model.json",)),)
    )
    found = seen(part)
    assert found.title == "Llama-like, 3.49B parameters in this part"
    assert lines(found)["Layers"] == "16 blocks (numbers 16 to 31) of 4,096 in model.layers"
    assert lines(found)["Part of"] == "several files; what is said here is of this one alone"
    assert whys(found)["Inference"].startswith("what is in this file alone")


def test_what_no_optimizer_has_is_frozen_and_takes_no_gradient():
    named = [*models.linear("body.0", 3, 4), *models.linear("head.0", 2, 3)]
    sure = optimizer("opt", parameters=2, with_state=2, models=("model",))
    rows = (*state(named, "model"), *models.slots(named[2:], "opt"))
    found = seen(checkpoint(*rows, sure))
    assert lines(found)["Frozen"] == "2 tensors, 15 parameters"
    assert whys(found)["Frozen"] == "body.0: no optimizer of this file has them"
    assert lines(found)["Training"] == f"{4 * 23 + 12 * 8} B in float32 with Adam"
    for unsure in (replace(sure, naming="unknown"), replace(sure, with_state=1), replace(sure, models=())):
        assert "Frozen" not in lines(checkpoint(*rows, unsure))


def test_what_asks_for_no_gradient_is_frozen_if_anything_asks_for_one():
    rows = [row for row in state(LINEAR) if hasattr(row, "requires_grad")]
    some = [rows[0]._replace(requires_grad=True), rows[1]]
    assert "Frozen" not in lines(checkpoint(*rows))
    assert lines(checkpoint(*some))["Frozen"] == "1 tensor, 3 parameters"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"betas": "", "amsgrad": "", "decoupled_weight_decay": "True"}, "AdamW"),
        ({"betas": "", "amsgrad": "", "weight_decay": "0.01"}, "Adam or AdamW"),
        ({"betas": "", "amsgrad": "", "rectify": "True"}, ""),
        ({"dampening": "0", "nesterov": "False"}, "SGD"),
        ({"dampening": "0", "nesterov": "False", "trust_coeff": "0.001"}, ""),
        ({"rho": "0.05", "adaptive": "False", "eps": "1e-6"}, ""),
        ({"lr": "0.1"}, ""),
        ({"exp_avg": "", "exp_avg_sq": ""}, "one of Adam's kind"),
    ],
)
def test_an_optimizer_is_named_where_its_options_are_its_own(words, name):
    assert name_of(words, OPTIMIZERS) == name


def test_an_optimizer_that_was_pickled_is_named_by_its_class():
    rows = checkpoint(
        optimizer(is_object=True),
        *models.slots(LINEAR),
        globals=(GlobalUse(name="torch.optim.radam.RAdam", count=1),),
    )
    assert lines(rows)["Optimizer"] == "RAdam"
    assert seen(rows).title == "State of an optimizer, without a model"


def test_scores_have_six_digits_and_settings_are_none():
    rows = checkpoint(
        value("epoch", text="12"),
        value("lossG", type="float", text="0.69314718"),
        value("val_loss", type="float", text="5.813959432e-06"),
        value("metrics", "f1", type="float", text="0.9137"),
        value("lr", type="float", text="0.1"),
        value("config", "epochs", text="90"),
        value("loss_name", type="str", text="mse"),
    )
    assert lines(rows)["Reached"] == "epoch 12, lossG 0.693147, val_loss 5.81396e-06, f1 0.9137"


def test_scores_that_are_tensors_are_named_before_they_are_read():
    score = {"role": "other", "shape": (), "nbytes": 4}
    about = overview_of(
        checkpoint(
            *state(LINEAR, "model"),
            tensor("best_val_loss", **score),
            tensor("callbacks", "ModelCheckpoint", "best_model_score", **score),
            tensor("loss_weights", **{**score, "shape": (3,)}),
            tensor("lr", **score),
        )
    )
    assert about.scores == ((2, "best_val_loss"), (3, "best_model_score"))
    found = with_scores(about, [("best_val_loss", "2.8999998569488525"), ("best_model_score", "1e-07")])
    assert [group.title for group in found.groups] == ["Model", "Training", "File"]
    assert lines(found)["Scores"] == "best_val_loss 2.9, best_model_score 1e-07"


def test_files_without_a_model_say_what_they_are():
    state_ = tensor("cuda_rng_state", role="rng", dtype="uint8")
    assert seen(checkpoint(state_)).title == "States of random number generators"
    assert seen(checkpoint(tensor("x"), tensor("y"))).title == "Data: 2 tensors"
    assert seen(checkpoint(value("a"))).title == "No tensors: 1 value"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("timm/resnet_ema.pth.tar", "ResNet-like, 11.8K parameters"),
        ("timm/ema_only.pt", "ResNet-like, 11.8K parameters"),
        ("timm/vit_decay.pth.tar", "Vision Transformer-like, 3,397 parameters"),
        ("transformers/gpt2_whole.pt", "GPT-2-like, 7,488 parameters"),
        ("transformers/bert_run/pytorch_model.bin", "BERT-like, 5,714 parameters"),
        ("transformers/sharded", "Llama-like, 5,200 parameters"),
        ("transformers/t5_run", "T5-like, 5,488 parameters"),
        ("peft/lora", "LoRA adapter, rank 2, 256 parameters"),
        ("peft/ia3", "IA\u00b3 adapter, 64 parameters"),
        ("ultralytics/detect_last.pt", "YOLO detector, 48.4K parameters"),
        ("sb3/dqn.zip", "Stable-Baselines3 Q-network, 260 parameters"),
        ("torch/optimizer_alone_cuda.pt", "State of an optimizer, without a model"),
        ("transformers/gpt2_run/rng_state.pth", "States of random number generators"),
        ("lightning/gan.ckpt", "Model, 152 parameters"),
    ],
)
def test_genuine_files(name, title):
    assert seen(open_checkpoint(str(FILES / name))).title == title


def of_blocks(number: int) -> str:
    return f"model.layers.{number // 8}.part{number % 8}.weight"


def of_numbers(number: int) -> str:
    return f"{number}.{'1.2.' * 60}weight"


def alone(number: int) -> str:
    return f"odd{number}.weight"


@pytest.mark.parametrize("name", [of_blocks, of_numbers, alone])
def test_the_work_grows_with_the_tensors_whatever_their_names(name):
    def prepare(tensors: int) -> Callable[[], object]:
        slots = [tensor("optimizer", "state", row, "exp_avg", role="optimizer") for row in range(tensors)]
        named = state(((name(row), (2, 2)) for row in range(tensors)), "model")
        rows = checkpoint(
            *named, *slots, *(value("meta", str(row)) for row in range(tensors)), optimizer("optimizer")
        )
        return lambda: seen(rows)

    assert growth(prepare, 300, 1_200) < 1.2


def test_what_stands_beside_a_model_in_its_folder_names_it():
    rows = open_checkpoint(str(FILES / "transformers/vit_frozen"))
    assert lines(rows)["Called"] == "vit, by config.json/model_type"
    run = lines(open_checkpoint(str(FILES / "transformers/gpt2_run")))
    assert run["Saved by"] == "torch 2.1 or later, transformers 5.23.0"
    assert run["Reached"].startswith("epoch ")
    assert lines(rows)["Frozen"] == "4 tensors, 880 parameters"


def test_what_comes_from_a_file_is_plain_and_of_bounded_length():
    evil = "\u202e<b>\x1b[31m" * 200
    rows = checkpoint(
        *state([(f"{evil}.a", (2, 2)), (f"{evil}.b", (2, 2))], evil),
        value("arch", type="str", text=evil),
        value(f"{evil}loss", type="float", text="1.0"),
        value("scaler", "scale", type="float", text="1.0"),
        value("scaler/x", "scale", type="float", text="1.0"),
        value("scaler/x", "_growth_tracker"),
        optimizer(evil),
    )
    found = seen(rows, loading=(("cpu", evil),))
    for text in (found.title, *(text for group in found.groups for line in group.lines for text in line)):
        assert is_harmless(text)
        assert len(text) < 2_000
