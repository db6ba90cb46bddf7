"""The architecture of a model as far as names and shapes tell: its family, its blocks and their width.

Numbers that are steps of a name are written `#`, so that 12 blocks give the names of one. A family is told by
names that its source gives; who copied the names may have changed the rest, so it is "GPT-2-like" at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Weight(NamedTuple):
    """A tensor of a model.

    Attributes:
        elements: How many numbers it has; one that is tied to another has none of its own.
        is_plain: Whether it is a parameter whose shape in the file is that of the matrix it stands for.
    """

    name: str
    shape: tuple[int, ...]
    elements: int
    is_plain: bool


class Family(NamedTuple):
    """A row of the table: the first whose signs are all there, and none of the others, is the family.

    Attributes:
        has: Parts of names, from the beginning of a step on.
        hasnt: Parts that stand in the names of its relatives.
        source: Where the names come from.
        sample: Names of a small one, which the tests read.
        is_kind: Whether it is a kind of file rather than an architecture to be alike.
    """

    name: str
    has: tuple[str, ...]
    hasnt: tuple[str, ...]
    source: str
    sample: tuple[str, ...]
    is_kind: bool = False


def _row(name: str, has: str, source: str, sample: str, hasnt: str = "", *, is_kind: bool = False) -> Family:
    return Family(name, tuple(has.split()), tuple(hasnt.split()), source, tuple(sample.split()), is_kind)


FAMILIES = (
    # What is put on top of a model, before the model that it is put on.
    _row(
        "LoRA adapter in the form of kohya",
        ".lora_down. .lora_up.",
        "kohya-ss/sd-scripts networks/lora.py",
        "lora_unet_down_blocks_0_attentions_0_proj_in.lora_down.weight "
        "lora_unet_down_blocks_0_attentions_0_proj_in.lora_up.weight",
        is_kind=True,
    ),
    # Images from noise.
    _row(
        "Stable Diffusion",
        ".model.diffusion_model.input_blocks. .first_stage_model.",
        "CompVis/stable-diffusion ldm/models/diffusion/ddpm.py",
        "model.diffusion_model.input_blocks.0.0.weight first_stage_model.encoder.conv_in.weight",
    ),
    _row(
        "Latent-diffusion UNet",
        ".input_blocks.#.# .middle_block.# .output_blocks.#",
        "CompVis/stable-diffusion ldm/modules/diffusionmodules/openaimodel.py",
        "input_blocks.1.0.in_layers.0.weight middle_block.0.in_layers.0.weight "
        "output_blocks.0.0.out_layers.0.weight",
        ".first_stage_model.",
        is_kind=True,
    ),
    _row(
        "Diffusion UNet",
        ".down_blocks.#.resnets.#.time_emb_proj. .up_blocks.#.resnets.#",
        "diffusers models/unets/unet_2d_condition.py",
        "down_blocks.0.resnets.0.time_emb_proj.weight up_blocks.0.resnets.0.conv1.weight",
        is_kind=True,
    ),
    _row(
        "Autoencoder of latent diffusion",
        ".encoder.down_blocks.#.resnets.# .decoder.up_blocks.#.resnets.#",
        "diffusers models/autoencoders/autoencoder_kl.py",
        "encoder.down_blocks.0.resnets.0.conv1.weight decoder.up_blocks.0.resnets.0.conv1.weight",
        is_kind=True,
    ),
    _row(
        "Flux",
        ".double_blocks.#.img_attn.qkv. .single_blocks.#",
        "black-forest-labs/flux src/flux/model.py",
        "double_blocks.0.img_attn.qkv.weight single_blocks.0.linear1.weight",
    ),
    _row(
        "Stable Diffusion 3",
        ".joint_blocks.#.x_block. .joint_blocks.#.context_block.",
        "Stability-AI/sd3.5 mmditx.py",
        "joint_blocks.0.x_block.attn.qkv.weight joint_blocks.0.context_block.attn.qkv.weight",
    ),
    _row(
        "DiT",
        ".x_embedder.proj. .blocks.#.adaLN_modulation.#",
        "facebookresearch/DiT models.py",
        "x_embedder.proj.weight blocks.0.adaLN_modulation.1.weight blocks.0.attn.qkv.weight",
    ),
    # Images and texts.
    _row(
        "CLIP",
        ".visual. .transformer.resblocks.# .token_embedding. .logit_scale",
        "openai/CLIP clip/model.py",
        "visual.conv1.weight transformer.resblocks.0.attn.in_proj_weight token_embedding.weight logit_scale",
    ),
    _row(
        "CLIP",
        ".text_model. .vision_model. .logit_scale",
        "transformers models/clip/modeling_clip.py",
        "text_model.encoder.layers.0.self_attn.q_proj.weight "
        "vision_model.encoder.layers.0.self_attn.q_proj.weight "
        "logit_scale",
    ),
    _row(
        "Segment Anything",
        ".image_encoder. .prompt_encoder. .mask_decoder.",
        "facebookresearch/segment-anything modeling/sam.py",
        "image_encoder.patch_embed.proj.weight prompt_encoder.no_mask_embed.weight "
        "mask_decoder.iou_token.weight",
    ),
    _row(
        "Whisper",
        ".encoder.conv1. .decoder.layers.#.encoder_attn.",
        "transformers models/whisper/modeling_whisper.py",
        "model.encoder.conv1.weight model.decoder.layers.0.encoder_attn.q_proj.weight",
    ),
    _row(
        "Whisper",
        ".encoder.conv1. .decoder.blocks.#.cross_attn.",
        "openai/whisper whisper/model.py",
        "encoder.conv1.weight decoder.blocks.0.cross_attn.query.weight",
    ),
    _row(
        "wav2vec 2.0",
        ".feature_extractor.conv_layers.# .encoder.pos_conv_embed. .encoder.layers.#",
        "transformers models/wav2vec2/modeling_wav2vec2.py",
        "wav2vec2.feature_extractor.conv_layers.0.conv.weight wav2vec2.encoder.pos_conv_embed.conv.weight_g "
        "wav2vec2.encoder.layers.0.attention.q_proj.weight",
    ),
    # Texts.
    _row(
        "Mixtral",
        ".layers.#.block_sparse_moe.experts.#.w1.",
        "transformers models/mixtral/modeling_mixtral.py",
        "model.layers.0.block_sparse_moe.experts.0.w1.weight model.layers.0.self_attn.q_proj.weight",
    ),
    _row(
        "DeepSeek",
        ".layers.#.self_attn.kv_a_proj_with_mqa.",
        "transformers models/deepseek_v3/modeling_deepseek_v3.py",
        "model.layers.0.self_attn.kv_a_proj_with_mqa.weight model.layers.0.mlp.gate_proj.weight",
    ),
    _row(
        "Phi-3",
        ".layers.#.self_attn.qkv_proj. .layers.#.mlp.gate_up_proj.",
        "transformers models/phi3/modeling_phi3.py",
        "model.layers.0.self_attn.qkv_proj.weight model.layers.0.mlp.gate_up_proj.weight",
    ),
    _row(
        "Gemma 3",
        ".layers.#.mlp.gate_proj. .layers.#.pre_feedforward_layernorm. .layers.#.self_attn.q_norm.",
        "transformers models/gemma3/modeling_gemma3.py",
        "model.layers.0.mlp.gate_proj.weight model.layers.0.pre_feedforward_layernorm.weight "
        "model.layers.0.self_attn.q_norm.weight",
    ),
    _row(
        "Gemma 2",
        ".layers.#.mlp.gate_proj. .layers.#.pre_feedforward_layernorm.",
        "transformers models/gemma2/modeling_gemma2.py",
        "model.layers.0.mlp.gate_proj.weight model.layers.0.pre_feedforward_layernorm.weight",
        ".q_norm.",
    ),
    _row(
        "Qwen 3",
        ".layers.#.self_attn.q_norm. .layers.#.self_attn.q_proj. .layers.#.mlp.",
        "transformers models/qwen3/modeling_qwen3.py",
        "model.layers.0.self_attn.q_norm.weight model.layers.0.self_attn.q_proj.weight "
        "model.layers.0.mlp.gate_proj.weight",
        ".pre_feedforward_layernorm. .post_feedforward_layernorm.",
    ),
    _row(
        "Qwen 2",
        ".layers.#.self_attn.q_proj.bias .layers.#.mlp.gate_proj. .input_layernorm.",
        "transformers models/qwen2/modeling_qwen2.py",
        "model.layers.0.self_attn.q_proj.bias model.layers.0.mlp.gate_proj.weight "
        "model.layers.0.input_layernorm.weight",
        ".q_norm.",
    ),
    _row(
        "Llama",
        ".layers.#.self_attn.q_proj. .layers.#.mlp.gate_proj. .layers.#.input_layernorm.",
        "transformers models/llama/modeling_llama.py; Mistral has the same names",
        "model.layers.0.self_attn.q_proj.weight model.layers.0.mlp.gate_proj.weight "
        "model.layers.0.input_layernorm.weight",
        ".q_proj.bias .q_norm. .pre_feedforward_layernorm. .kv_a_proj_with_mqa. .vision_tower. .visual.",
    ),
    _row(
        "Llama",
        ".layers.#.attention.wq. .layers.#.feed_forward.w1. .tok_embeddings.",
        "meta-llama/llama llama/model.py",
        "layers.0.attention.wq.weight layers.0.feed_forward.w1.weight tok_embeddings.weight",
    ),
    _row(
        "GPT-NeoX",
        ".gpt_neox.layers.#.attention.query_key_value.",
        "transformers models/gpt_neox/modeling_gpt_neox.py; Pythia is one",
        "gpt_neox.layers.0.attention.query_key_value.weight",
    ),
    _row(
        "BLOOM",
        ".h.#.self_attention.query_key_value. .word_embeddings_layernorm.",
        "transformers models/bloom/modeling_bloom.py",
        "transformer.h.0.self_attention.query_key_value.weight transformer.word_embeddings_layernorm.weight",
    ),
    _row(
        "Falcon",
        ".h.#.self_attention.query_key_value.",
        "transformers models/falcon/modeling_falcon.py",
        "transformer.h.0.self_attention.query_key_value.weight",
        ".word_embeddings_layernorm.",
    ),
    _row(
        "GPT-J",
        ".h.#.attn.q_proj. .h.#.mlp.fc_in.",
        "transformers models/gptj/modeling_gptj.py",
        "transformer.h.0.attn.q_proj.weight transformer.h.0.mlp.fc_in.weight",
    ),
    _row(
        "GPT-2",
        ".h.#.attn.c_attn. .h.#.mlp.c_fc.",
        "transformers models/gpt2/modeling_gpt2.py; nanoGPT has the same names",
        "transformer.h.0.attn.c_attn.weight transformer.h.0.mlp.c_fc.weight transformer.wte.weight",
    ),
    _row(
        "OPT",
        ".decoder.layers.#.self_attn.q_proj. .decoder.layers.#.fc1. .decoder.embed_positions.",
        "transformers models/opt/modeling_opt.py",
        "model.decoder.layers.0.self_attn.q_proj.weight model.decoder.layers.0.fc1.weight "
        "model.decoder.embed_positions.weight",
        ".encoder_attn.",
    ),
    _row(
        "T5",
        ".encoder.block.#.layer.#.SelfAttention. .decoder.block.#.layer.#.EncDecAttention.",
        "transformers models/t5/modeling_t5.py",
        "encoder.block.0.layer.0.SelfAttention.q.weight decoder.block.0.layer.1.EncDecAttention.q.weight",
    ),
    _row(
        "BART",
        ".encoder.layers.#.self_attn.q_proj. .decoder.layers.#.encoder_attn. .encoder.layers.#.fc1.",
        "transformers models/bart/modeling_bart.py; Marian and Pegasus have the same names",
        "model.encoder.layers.0.self_attn.q_proj.weight model.decoder.layers.0.encoder_attn.q_proj.weight "
        "model.encoder.layers.0.fc1.weight",
        ".encoder.conv1.",
    ),
    _row(
        "DistilBERT",
        ".transformer.layer.#.attention.q_lin.",
        "transformers models/distilbert/modeling_distilbert.py",
        "distilbert.transformer.layer.0.attention.q_lin.weight distilbert.embeddings.word_embeddings.weight",
    ),
    _row(
        "RoBERTa",
        ".roberta.encoder.layer.#.attention.self.query.",
        "transformers models/roberta/modeling_roberta.py",
        "roberta.encoder.layer.0.attention.self.query.weight roberta.embeddings.word_embeddings.weight",
    ),
    _row(
        "BERT",
        ".encoder.layer.#.attention.self.query. .embeddings.word_embeddings.",
        "transformers models/bert/modeling_bert.py",
        "bert.encoder.layer.0.attention.self.query.weight bert.embeddings.word_embeddings.weight",
        ".roberta. .electra. .patch_embeddings.",
    ),
    _row(
        "Mamba",
        ".layers.#.mixer.A_log .layers.#.mixer.in_proj.",
        "state-spaces/mamba mamba_ssm/modules/mamba_simple.py",
        "backbone.layers.0.mixer.A_log backbone.layers.0.mixer.in_proj.weight",
    ),
    _row(
        "RWKV",
        ".blocks.#.att.time_decay .blocks.#.ffn.",
        "BlinkDL/RWKV-LM src/model.py",
        "blocks.0.att.time_decay blocks.0.ffn.key.weight",
    ),
    # Images.
    _row(
        "Vision Transformer",
        ".patch_embeddings.projection. .attention.attention.query.",
        "transformers models/vit/modeling_vit.py until 4",
        "vit.embeddings.patch_embeddings.projection.weight "
        "vit.encoder.layer.0.attention.attention.query.weight",
    ),
    _row(
        "Vision Transformer",
        ".vit. .patch_embeddings.projection. .layers.#.attention.q_proj.",
        "transformers models/vit/modeling_vit.py since 5",
        "vit.embeddings.patch_embeddings.projection.weight vit.layers.0.attention.q_proj.weight",
    ),
    _row(
        "Swin Transformer",
        ".layers.#.blocks.#.attn.relative_position_bias_table",
        "timm models/swin_transformer.py",
        "patch_embed.proj.weight layers.0.blocks.0.attn.relative_position_bias_table",
    ),
    _row(
        "Vision Transformer",
        ".patch_embed.proj. .blocks.#.attn.qkv. .pos_embed",
        "timm models/vision_transformer.py",
        "patch_embed.proj.weight blocks.0.attn.qkv.weight pos_embed",
        ".decoder_blocks. .image_encoder. .relative_position_bias_table .x_embedder.",
    ),
    _row(
        "Vision Transformer",
        ".conv_proj. .encoder.layers.encoder_layer_0.self_attention.",
        "torchvision models/vision_transformer.py",
        "conv_proj.weight encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
    ),
    _row(
        "MAE",
        ".patch_embed.proj. .blocks.#.attn.qkv. .decoder_blocks.#.attn.qkv.",
        "facebookresearch/mae models_mae.py",
        "patch_embed.proj.weight blocks.0.attn.qkv.weight decoder_blocks.0.attn.qkv.weight",
    ),
    _row(
        "DETR",
        ".class_embed. .bbox_embed. .query_embed. .transformer.encoder.layers.#",
        "facebookresearch/detr models/detr.py",
        "class_embed.weight bbox_embed.layers.0.weight query_embed.weight "
        "transformer.encoder.layers.0.self_attn.in_proj_weight",
    ),
    _row(
        "R-CNN detector",
        ".backbone. .rpn.head. .roi_heads.",
        "torchvision models/detection/faster_rcnn.py",
        "backbone.body.conv1.weight rpn.head.conv.0.0.weight roi_heads.box_predictor.cls_score.weight",
        is_kind=True,
    ),
    _row(
        "YOLO detector",
        ".model.#.dfl.conv. .model.#.conv.",
        "ultralytics nn/modules/head.py (v8, v9, 11)",
        "model.0.conv.weight model.22.dfl.conv.weight",
        is_kind=True,
    ),
    _row(
        "YOLOv5",
        ".model.#.anchors .model.#.conv. .model.#.m.#",
        "ultralytics/yolov5 models/yolo.py",
        "model.24.anchors model.0.conv.weight model.24.m.0.weight",
        ".dfl.",
    ),
    _row(
        "YOLO classifier",
        ".model.#.conv. .model.#.m.#.cv1.conv. .model.#.linear.",
        "ultralytics nn/modules/head.py Classify",
        "model.0.conv.weight model.2.m.0.cv1.conv.weight model.9.linear.weight",
        is_kind=True,
    ),
    _row(
        "ConvNeXt",
        ".stages.#.blocks.#.conv_dw. .stages.#.blocks.#.mlp.fc1.",
        "timm models/convnext.py",
        "stem.0.weight stages.0.blocks.0.conv_dw.weight stages.0.blocks.0.mlp.fc1.weight",
    ),
    _row(
        "ConvNeXt",
        ".features.#.#.layer_scale .features.#.#.block.#",
        "torchvision models/convnext.py",
        "features.1.0.layer_scale features.1.0.block.0.weight classifier.2.weight",
    ),
    _row(
        "EfficientNet",
        ".conv_stem. .blocks.#.#.conv_pw. .conv_head.",
        "timm models/efficientnet.py; MobileNetV3 has the same names",
        "conv_stem.weight blocks.1.0.conv_pw.weight conv_head.weight",
    ),
    _row(
        "EfficientNet",
        ".features.#.#.block.#.fc1. .features.#.#.block.#",
        "torchvision models/efficientnet.py",
        "features.1.0.block.1.fc1.weight features.1.0.block.0.0.weight classifier.1.weight",
        ".layer_scale",
    ),
    _row(
        "MobileNetV2",
        ".features.#.conv.#.#. .features.#.#. .classifier.#.",
        "torchvision models/mobilenetv2.py",
        "features.0.0.weight features.1.conv.0.0.weight classifier.1.weight",
    ),
    _row(
        "DenseNet",
        ".features.denseblock1.denselayer1.conv1.",
        "torchvision models/densenet.py",
        "features.conv0.weight features.denseblock1.denselayer1.conv1.weight",
    ),
    _row(
        "Inception v3",
        ".Mixed_5b.branch1x1.",
        "torchvision models/inception.py",
        "Conv2d_1a_3x3.conv.weight Mixed_5b.branch1x1.conv.weight",
    ),
    _row(
        "VGG",
        ".features.#.weight .classifier.0. .classifier.3. .classifier.6.",
        "torchvision models/vgg.py",
        "features.0.weight features.2.weight classifier.0.weight classifier.3.weight classifier.6.weight",
    ),
    _row(
        "AlexNet",
        ".features.#.weight .classifier.1. .classifier.4. .classifier.6.",
        "torchvision models/alexnet.py",
        "features.0.weight classifier.1.weight classifier.4.weight classifier.6.weight",
    ),
    _row(
        "ResNet",
        ".layer1.#.conv1. .layer1.#.bn1. .layer2.#.downsample.#",
        "torchvision models/resnet.py; timm has the same names",
        "conv1.weight layer1.0.conv1.weight layer1.0.bn1.weight layer2.0.downsample.0.weight",
        ".rpn.head. .class_embed.",
    ),
    _row(
        "U-Net",
        ".inc.double_conv.# .down1.maxpool_conv.# .up1.",
        "milesial/Pytorch-UNet unet/unet_model.py",
        "inc.double_conv.0.weight down1.maxpool_conv.1.double_conv.0.weight up1.conv.double_conv.0.weight",
    ),
    # Policies, graphs, and torch's own.
    _row(
        "Stable-Baselines3 actor and critic",
        ".mlp_extractor.policy_net.# .action_net. .value_net.",
        "DLR-RM/stable-baselines3 common/policies.py",
        "mlp_extractor.policy_net.0.weight action_net.weight value_net.weight",
        is_kind=True,
    ),
    _row(
        "Stable-Baselines3 Q-network",
        ".q_net.q_net.# .q_net_target.q_net.#",
        "DLR-RM/stable-baselines3 dqn/policies.py",
        "q_net.q_net.0.weight q_net_target.q_net.0.weight",
        is_kind=True,
    ),
    _row(
        "Stable-Baselines3 actor and critics (SAC or TD3)",
        ".actor. .critic.qf0.# .critic_target.qf0.#",
        "DLR-RM/stable-baselines3 sac/policies.py",
        "actor.mu.weight critic.qf0.0.weight critic_target.qf0.0.weight",
        is_kind=True,
    ),
    _row(
        "torch.nn transformer",
        ".layers.#.self_attn.in_proj_weight .layers.#.linear1. .layers.#.linear2.",
        "torch nn/modules/transformer.py",
        "encoder.layers.0.self_attn.in_proj_weight encoder.layers.0.linear1.weight "
        "encoder.layers.0.linear2.weight",
        ".class_embed.",
        is_kind=True,
    ),
)

_MOST_NAME = 300
_MOST_PATTERNS = 4_000
_MOST_STEPS = 4
_EMBEDDING = re.compile(r"emb|(^|\.)(wte|wpe|lm_head)\.")
_NUMBER = re.compile(r"(?<![^.])[0-9]{1,6}(?![^.])")


def pattern_of(name: str) -> str:
    """Return a name with its numbers as `#`."""
    return _NUMBER.sub("#", name[:_MOST_NAME])


def find_family(names: Iterable[str]) -> Family | None:
    """Return the first row whose signs the names have; None where they have too many forms to tell."""
    named = dict.fromkeys(name[:_MOST_NAME] for name in names)
    patterns = dict.fromkeys(map(pattern_of, named))
    if len(patterns) > _MOST_PATTERNS:
        return None
    # Steps with their numbers too: `classifier.6` of a VGG is not that of an AlexNet.
    text = "".join(f".{line}\n" for line in (*patterns, *(name for name in named if "classifier." in name)))
    return next((row for row in FAMILIES if _fits(row, text)), None)


def _fits(row: Family, text: str) -> bool:
    return all(sign in text for sign in row.has) and not any(sign in text for sign in row.hasnt)


# --- ResNets and VGGs, which are called by their number of layers ------------------------------------------

_RESNETS: dict[tuple[tuple[int, ...], bool], str] = {
    ((2, 2, 2, 2), False): "ResNet-18",
    ((3, 4, 6, 3), False): "ResNet-34",
    ((3, 4, 6, 3), True): "ResNet-50",
    ((3, 4, 23, 3), True): "ResNet-101",
    ((3, 8, 36, 3), True): "ResNet-152",
}
_VGGS = {8: "VGG-11", 10: "VGG-13", 13: "VGG-16", 16: "VGG-19"}
_STAGE = re.compile(r"(?:^|\.)layer([0-9])\.([0-9]{1,3})\.conv1\.weight$")
_MATRIX, _KERNEL = 2, 4


def exact_name(family: Family, weights: Sequence[Weight]) -> str:
    """Return the name of a family's member, where its layers are those of one that has a name."""
    if family.name == "VGG":
        kernels = sum(len(shape) == _KERNEL for name, shape, _, _ in weights if "features." in name)
        return _VGGS.get(kernels, family.name)
    if family.name != "ResNet":
        return family.name
    stages: dict[str, int] = {}
    for name, *_ in weights:
        found = _STAGE.search(name)
        if found is not None:
            stages[found[1]] = stages.get(found[1], 0) + 1
    deep = any(name.endswith("layer1.0.conv3.weight") for name, *_ in weights)
    grouped = any(
        name.endswith("layer1.0.conv2.weight") and len(shape) == _KERNEL and shape[0] != shape[1]
        for name, shape, *_ in weights
    )
    counts = tuple(stages[stage] for stage in sorted(stages))
    return "ResNeXt" if grouped else _RESNETS.get((counts, deep), family.name)


# --- recurrent layers, which have the same names and tell themselves by their gates ------------------------

_GATES = {4: "LSTM", 3: "GRU", 1: "RNN"}


def recurrent_kind(weights: Sequence[Weight]) -> str:
    """Return `LSTM`, `GRU` or `RNN` for a model whose parameters are mostly such a layer's; else nothing."""
    kinds, inside, total = set(), 0, 0
    for name, shape, size, _ in weights:
        total += size
        last = name.rpartition(".")[2]
        if last.startswith(("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l")):
            inside += size
            if last.startswith("weight_hh_l") and len(shape) == _MATRIX and shape[1]:
                kinds.add(_GATES.get(shape[0] // shape[1] if shape[0] % shape[1] == 0 else 0, ""))
    return next(iter(kinds)) if len(kinds) == 1 and 2 * inside > total else ""


# --- blocks: modules of one kind in a numbered row ----------------------------------------------------------


class Blocks(NamedTuple):
    """Rows of alike modules, such as `transformer.h.0` to `transformer.h.11`.

    Attributes:
        where: Their names, with N for the number.
        counts: How many stand in each row.
        numbers: The first and the last number, where there is one row.
        width: The size that their matrices share, or None.
        experts: How many experts stand in each, 0 without such.
    """

    where: str
    counts: tuple[int, ...]
    numbers: tuple[int, int]
    width: int | None
    experts: int = 0


class _Row:
    """The modules that stand under one name, by their numbers: the dimensions of what is in each."""

    __slots__ = ("elements", "modules", "shapes")

    def __init__(self) -> None:
        self.modules: dict[int, dict[str, int]] = {}
        self.shapes: dict[str, set[int]] = {}
        self.elements = 0

    @property
    def is_of_blocks(self) -> bool:
        """Whether they are alike, and have two layers at least: single layers in a row are no blocks."""
        parts = [set(module) for module in self.modules.values()]
        if len(parts) < 2:
            return False
        core, first = set.intersection(*parts), next(iter(self.modules.values()))
        layers = {name.rpartition(".")[0] for name in core if first[name] >= _MATRIX}
        return 2 * len(core) >= max(map(len, parts)) and len(layers) > 1

    def inner(self, before: str, rows: dict[str, _Row]) -> dict[str, _Row]:
        """Return the rows that the modules consist of, as the stages of a ConvNeXt do; else nothing."""
        words = {name.partition(".")[0] for module in self.modules.values() for name in module}
        for word in words - {"experts"}:
            inside = {name: rows[name] for at in self.modules if (name := f"{before}{at}.{word}.") in rows}
            is_most = 2 * sum(row.elements for row in inside.values()) > self.elements
            if is_most and all(row.is_of_blocks or len(row.modules) == 1 for row in inside.values()):
                return inside
        return {}


def find_blocks(weights: Sequence[Weight]) -> tuple[Blocks, ...]:
    """Return the blocks that hold most of a model, those of one kind together; nothing where none do."""
    rows: dict[str, _Row] = {}
    known: dict[str, tuple[_Step, ...]] = {}
    total = 0
    for name, shape, size, is_plain in weights:
        total += 0 if _EMBEDDING.search(name) else size
        for before, number, after in _steps(name, known):
            row = rows.get(before)
            if row is None:
                row = rows[before] = _Row()
            row.elements += size
            row.modules.setdefault(number, {})[after] = len(shape)
            if is_plain and len(shape) == _MATRIX and "lora_" not in after:
                sizes = row.shapes.setdefault(after, set(shape))
                sizes &= set(shape)
    found = {before: row for before, row in rows.items() if row.is_of_blocks}
    outer = {
        name: row for name, row in found.items() if not any(at in found for at, _, _ in _steps(name, {}))
    }
    if 2 * sum(row.elements for row in outer.values()) <= total:
        return ()
    outer = {
        at: one for name, row in outer.items() for at, one in (row.inner(name, rows) or {name: row}).items()
    }
    kinds: dict[str, list[str]] = {}
    for before in outer:
        kinds.setdefault(pattern_of(before), []).append(before)
    experts = max((len(row.modules) for name, row in rows.items() if name.endswith(".experts.")), default=0)
    return tuple(_blocks_of(kind, [outer[name] for name in names], experts) for kind, names in kinds.items())


def _blocks_of(kind: str, rows: list[_Row], experts: int) -> Blocks:
    numbers = sorted(rows[0].modules)
    widths = {_width(row.shapes) for row in rows}
    return Blocks(
        where=f"{kind.replace('#', 'N')}N",
        counts=tuple(len(row.modules) for row in rows),
        numbers=(numbers[0], numbers[-1]),
        width=widths.pop() if len(widths) == 1 else None,
        experts=experts,
    )


def _width(shapes: dict[str, set[int]]) -> int | None:
    """Return the size that three quarters of the matrices of a block share, if it is one."""
    counts: dict[int, int] = {}
    for sizes in shapes.values():
        for size in sizes:
            counts[size] = counts.get(size, 0) + 1
    ranked = sorted(((count, size) for size, count in counts.items()), reverse=True)
    if len(shapes) < 2 or not ranked or 4 * ranked[0][0] < 3 * len(shapes):
        return None
    is_tie = len(ranked) > 1 and ranked[1][0] == ranked[0][0]
    return None if is_tie or ranked[0][1] < 2 else ranked[0][1]


_Step = tuple[str, int, str]
"""What stands before a number in a name, the number, and what stands behind it as a pattern."""


def _steps(name: str, known: dict[str, tuple[_Step, ...]], left: int = _MOST_STEPS) -> Iterator[_Step]:
    """Yield the numbers in a name; `known` has those of endings, which blocks have in common."""
    found = _NUMBER.search(name, 0, _MOST_NAME) if left else None
    if found is None:
        return
    ending = name[found.end() + 1 : _MOST_NAME]
    inner = known.get(ending)
    if inner is None:
        inner = known[ending] = tuple(_steps(ending, known, left - 1))
    yield name[: found.start()], int(found[0]), pattern_of(ending) if inner else ending
    for before, number, after in inner:
        yield name[: found.end() + 1] + before, number, after
