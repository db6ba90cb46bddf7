"""Messages of transformers, accelerate and diffusers about models that are spread over files and devices."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind, Said, Told
from inspector.diagnose.listing import plain


def _package(told: Told) -> Said:
    """Name the package that is missing, where the message does."""
    name = plain(told.groups["package"] or told.groups["package2"])
    return Said(advice=f"python -m pip install -U {name}, in the Python that runs the program.")


HUB_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="folder-without-weights",
        title="The folder does not hold a checkpoint in the form that is looked for",
        pattern=r"Can'?t find a (?:valid )?checkpoint (?:index|at)|No valid checkpoint found in output dir|"
        r"Trainer state.{0,40}not found|len\(self\.ckpt_list\) > 0|"
        r"(?:pytorch_model|model)\.(?:bin|safetensors)(?:\.index\.json)? (?:was )?not found in",
        cause="The Trainer, accelerate and DeepSpeed look for files of certain names. The folder has others: "
        "shards of FSDP or DeepSpeed (a folder pytorch_model_fsdp_0 or global_step...), an adapter alone "
        "(adapter_model.safetensors), a folder above or below; or each node of a cluster has only the shards "
        "that it wrote itself.",
        advice="List the folder and pass the one with the weights (checkpoint-...). Join shards first: "
        "zero_to_fp32.py for DeepSpeed, accelerate merge-weights for FSDP. Save to a disk that all nodes "
        "see. An adapter is loaded with PeftModel.from_pretrained.",
    ),
    ErrorKind(
        id="set-tensor-shape",
        title="A tensor of the checkpoint has another shape than the model's",
        pattern=r"Trying to set a tensor of shape .{1,60} in [^\s]{1,200} ?\(which has shape",
        cause="The model was built from a configuration that does not belong to these weights: tokens were "
        "added (another vocabulary size), it is another variant or size of the model, or the weights are "
        "quantized.",
        advice="Use the config.json that lies beside the weights. After adding tokens call "
        "model.resize_token_embeddings(len(tokenizer)) before loading, or pass "
        "ignore_mismatched_sizes=True, which leaves that tensor untrained.",
    ),
    ErrorKind(
        id="offload-folder",
        title="The model does not fit, and there is no folder to put the rest in",
        pattern=r"We need an '?offload_(?:dir|folder)'? to dispatch|please provide an '?offload_folder|"
        r"current '?device_map'? had weights offloaded to the disk",
        cause="device_map puts on disk what fits neither on the GPUs nor in memory.",
        advice="Pass offload_folder='offload'. Or take less memory: torch_dtype=torch.float16, 8 or 4 bits, "
        "a smaller model. Looking only: device_map='cpu'.",
    ),
    ErrorKind(
        id="device-map-unsupported",
        title="This model cannot be spread by device_map",
        pattern=r"does not support '?device_map='?\w{1,12}|_no_split_modules|"
        r"device_map '?\w{1,12}'? (?:is )?not (?:supported|implemented)|"
        r"does not support '?low_cpu_mem_usage",
        cause="The class of the model does not say how it can be split, or the installed version of "
        "transformers or diffusers does not know this value of device_map.",
        advice="Leave device_map out and move the model yourself (.to('cuda')), pass device_map={'': 0}, or "
        "update transformers, diffusers and accelerate.",
    ),
    ErrorKind(
        id="package-required",
        title="Loading this model needs another package",
        pattern=r"requires? (?:the )?'?(?P<package>accelerate|bitsandbytes|auto-?gptq|auto-?awq|autoawq|"
        r"optimum|peft|sentencepiece|tiktoken|protobuf|einops|timm|safetensors|flash_attn|hqq|torchao)\b|"
        r"(?:requires|need|install) [^.]{0,40}pip install (?:-U )?'?(?P<package2>[\w-]{2,30})",
        cause="The way in which the model is loaded (device_map, low_cpu_mem_usage, quantized weights, its "
        "tokenizer) is done by another package, which is not installed or too old.",
        advice="Install what the message names, and restart the program.",
        say=_package,
    ),
    ErrorKind(
        id="tokenizer-version",
        title="The tokenizer's files and the installed packages are of different versions",
        pattern=r"Tokenizer class \w{1,60} does not exist|data did not match any variant of untagged enum|"
        r"tokenizers? .{0,30}(?:is )?required.{0,40}but found|Couldn'?t instantiate the backend tokenizer",
        cause="tokenizer.json or tokenizer_config.json were written by a newer (or older) tokenizers or "
        "transformers. The weights are not concerned.",
        advice="python -m pip install -U transformers tokenizers sentencepiece. An old LLaMATokenizer in "
        "tokenizer_config.json is LlamaTokenizer now.",
    ),
    ErrorKind(
        id="lightning-newer",
        title="A newer Lightning wrote the checkpoint",
        pattern=r"checkpoint was produced with (?:PyTorch )?Lightning v?[\d.]{1,12}, which is newer",
        cause="Lightning reads checkpoints of its own and older versions.",
        advice="python -m pip install -U lightning (or pytorch-lightning). The weights alone load in any "
        "version: torch.load(path)['state_dict'].",
    ),
    ErrorKind(
        id="lora-form",
        title="The adapter (LoRA) is in a form that this program does not read",
        pattern=r"KeyError: ?'(?:[\w.]{0,80}(?:to_[qkv]|to_out|lora)[\w.]{0,80}(?:down|up|mid|alpha|A|B)"
        r"[\w.]{0,20}|lora_(?:unet|te\d?)_\w{1,200})'|lora key not loaded|"
        r"(?:should|could) (?:be|not be) empty[^.]{0,40}state_dict|lora_(?:mid|unet)[\w.]{1,200},? lora_unet",
        cause="LoRA files exist with several kinds of names (kohya, diffusers, peft, LyCORIS with lora_mid, "
        "hada, lokr), for several models (SD 1.5, SDXL, Flux). The program that loads it knows others, or "
        "is older than the form.",
        advice="Update diffusers and peft. Check that the adapter is for this base model; LyCORIS forms "
        "need the lycoris package or a program that knows them.",
        needs="(?i)lora|hada|lokr|lycoris|adapter",
    ),
    ErrorKind(
        id="serving-memory",
        title="The GPU has no room for the cache of the server",
        pattern=r"No available memory for the cache blocks|"
        r"larger than the maximum number of tokens that can be|"
        r"KV cache is (?:needed|larger)",
        cause="vLLM loads the weights and uses the rest of the GPU for the cache of keys and values; too "
        "little is left for sequences of that length.",
        advice="Lower --max-model-len, raise --gpu-memory-utilization, use quantized weights or several GPUs "
        "(--tensor-parallel-size), and end other programs on the GPU.",
    ),
    ErrorKind(
        id="server-does-not-know",
        title="The program that loads the weights does not know their form",
        pattern=r"Model architectures .{1,80} are not supported|[Qq]uantization method:? .{1,40}(?:not "
        r"supported|Must be one of)|There is no module or parameter named|Cannot find any model weights with|"
        r"Could not detect model type of|must be divisible by tensor parallel size",
        cause="vLLM, ComfyUI and similar programs have a list of architectures and forms that they know. "
        "This model is newer, quantized in another way, an adapter, or not a model at all (a VAE, a text "
        "encoder).",
        advice="Update the program. Check that the file is the kind that is asked for (checkpoint, LoRA, "
        "VAE, text encoder), and that folder and config.json are complete.",
    ),
    ErrorKind(
        id="part-missing",
        title="The checkpoint does not contain the part that is asked for",
        pattern=r"(?:VAE|clip input|model|CLIP) is invalid: None",
        cause="ComfyUI loads a model, a text encoder (CLIP) and a VAE from a checkpoint. This file has the "
        "diffusion model alone (as Flux and many quantized files), so the other outputs are None.",
        advice="Load the missing part with a loader of its own (Load VAE, DualCLIPLoader), or use a "
        "checkpoint that contains all parts.",
    ),
    ErrorKind(
        id="architectures-differ",
        title="The model that is built here is not the one of the checkpoint",
        pattern=r"please ensure that the architectures match|(?:Observation|Action) spaces do not match",
        cause="The framework built the model from the settings given here (or those of another version), "
        "and its names or shapes are not those in the checkpoint. The error above it names them.",
        advice="Use the settings of the saved run (its task, data dictionary, environment, --arch), and the "
        "version of the framework that wrote it.",
    ),
    ErrorKind(
        id="web-ui-check",
        title="The web UI's own check refuses the file",
        pattern=r"bad file inside |UnpicklingError: global '[\w./]{1,120}' is forbidden|"
        r"The file may be malicious, so the program is not going to read it",
        cause="AUTOMATIC1111's web UI and its relatives read checkpoints with a list of names and records of "
        "their own. Newer versions of torch write records that an older list does not have (byteorder, "
        ".data/serialization_id), and some files need classes that are not on it.",
        advice="Update the web UI, or use the .safetensors version of the file. See here first what the file "
        "would run; --disable-safe-unpickle turns the check off for all files.",
    ),
    ErrorKind(
        id="onnx-export",
        title="The model cannot be exported to ONNX as it is",
        pattern=r"ONNX export failed|UnsupportedOperatorError|Exporting the operator|"
        r"Expected node type '?onnx::|_jit_pass_onnx",
        cause="The exporter has no ONNX operator for something that the model does, in this opset and "
        "version of torch, or met constants on another device than the model.",
        advice="Export on the CPU (model.cpu().eval(), inputs on the CPU), with a higher opset_version and a "
        "newer torch; do_constant_folding=False where constants are the trouble.",
    ),
    ErrorKind(
        id="engine-version",
        title="The compiled model was made for another version of the runtime",
        pattern=r"stdVersionRead == serializationVersion|Lite Interpreter version number does not match|"
        r"Model version must be between|engine plan file is (?:generated|not compatible)|"
        r"Legacy model format is not supported on mobile|created by an older version of PyG",
        cause="TensorRT engines, models for PyTorch Mobile and some pickled data are read by the version "
        "that wrote them only (TensorRT also by the same kind of GPU only).",
        advice="Make it again with the version that will run it: build the engine on that machine, save the "
        "mobile model with _save_for_lite_interpreter of a torch that fits (_backport_for_mobile lowers the "
        "version).",
    ),
)
