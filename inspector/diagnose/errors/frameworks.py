"""Messages of frameworks around torch, of safetensors, and about models spread over files and devices."""

from __future__ import annotations

import re

from inspector.containers.formats import format_of
from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import by_finding, of_finding, top_keys
from inspector.diagnose.listing import listed, plain
from inspector.model.findings import Fix

_OWN_LOADER = "safetensors."
_WRAPPED = (
    "This message only says that loading failed. The reason is in the error before it: paste the whole "
    "text, from the first 'Traceback' on."
)


def _is_of_file(told: Told) -> bool:
    """Return whether a shape that does not fit is that of a tensor in a safetensors file."""
    if not told.groups["shape"]:
        return True
    return any(frame.place.startswith("safetensors/") for frame in told.pasted.frames[-1:])


def _safetensors(context: Context) -> Tied:
    """Report whether this is a safetensors file, and if not, whether its name says so."""
    form = format_of(context.checkpoint.format)
    if form.loader.startswith(_OWN_LOADER):
        if "truncated" in context.findings:
            return of_finding(context.findings["truncated"])
        here = "This is a safetensors file, and it was read to its end: the error is about another file."
        return Tied(fits="no", here=here)
    here = f"This file is in the {plain(form.name)} format, not a safetensors file."
    if context.checkpoint.path.endswith(".safetensors"):
        return Tied(fits="yes", here=f"{here} Its name wrongly ends in .safetensors: rename it.")
    return Tied(fits="no", here=f"{here} The error is about another file.")


def _header(told: Told) -> Said:
    """Explain a header that was found and not understood: the file may be newer than the reader."""
    if "invalidheaderdeserialization" not in told.text.lower().replace(" ", ""):
        return Said()
    return Said(
        title="safetensors could not read the header of the file",
        cause="There is a header, and the installed safetensors does not understand it: the file is newer "
        "(dtypes such as float8, float4 and complex came one by one), or its beginning is damaged.",
        advice="Update it first: python -m pip install -U safetensors. If that does not help, compare the "
        "file's size and checksum with the original, and fetch it again.",
    )


def _metadata(context: Context) -> Tied:
    """Return whether this file says which framework wrote it."""
    if not format_of(context.checkpoint.format).loader.startswith(_OWN_LOADER):
        return _safetensors(context)
    if any(row.keys == (".__metadata__", "format") for row in context.checkpoint.values):
        return Tied(fits="no", here="This file has that entry: the error is about another file.")
    return Tied(fits="yes", here="The metadata of this file has no entry format.")


def _parallel_parts(told: Told) -> Said:
    """Explain weights that are in as many files as processes are to be started."""
    match = re.search(r"for MP=(\d{1,4}) but world size", told.text)
    if match is None:
        return Said()
    return Said(
        title="The weights are in parts for another number of processes",
        cause=f"The folder holds {match[1]} consolidated parts (model parallel), one for each process, and "
        "another number of processes was started.",
        advice=f"Start as many processes as there are parts: torchrun --nproc_per_node {match[1]} script.py. "
        "Or use the same weights in the form of transformers, which are loaded by one process.",
    )


def _lightning(context: Context) -> Tied:
    """Return whether this file is a whole checkpoint of Lightning."""
    tops = top_keys(context)
    if "pytorch-lightning_version" in tops:
        optimizers = "with" if context.checkpoint.optimizers else "without"
        here = f"This file is a Lightning checkpoint, {optimizers} optimizer state."
        return Tied(fits="no" if context.checkpoint.optimizers else "yes", here=here)
    held = f"its top-level keys are {listed(tops)}" if tops else "it has no keys"
    here = f"This file is not a Lightning checkpoint: {held}."
    return Tied(fits="yes", here=here, fix=Fix(style="plain"))


def _hyper_parameters(context: Context) -> Tied:
    """Return whether this file stores the argument that is missing."""
    name = context.groups["name"]
    held = [row for row in context.checkpoint.values if row.keys[:1] == ("hyper_parameters",)]
    if any(row.keys[-1:] == (name,) for row in held):
        return Tied(
            fits="no",
            here=f"This file has {plain(name)} in hyper_parameters: the error comes from another file.",
        )
    if "pytorch-lightning_version" not in top_keys(context):
        return Tied(
            fits="no", here="This file is not a Lightning checkpoint: the error comes from another file."
        )
    return Tied(fits="yes", here=f"This file has no {plain(name)} in hyper_parameters.")


def _loads_at_all(context: Context) -> Tied:
    """Return whether something in this file would stop any load."""
    worst = next((found for found in context.findings.values() if found.severity == "error"), None)
    if worst is not None:
        return of_finding(worst, in_full=True)
    return Tied(fits="unknown", here="Nothing in this file keeps torch from loading it.")


def _package(told: Told) -> Said:
    """Name the package that is missing, where the message does."""
    name = plain(told.groups["package"] or told.groups["package2"])
    return Said(advice=f"python -m pip install -U {name}, in the Python that runs the program.")


FRAMEWORK_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="world-size",
        title="The checkpoint was saved by another number of processes",
        pattern=r"DP world size of \d{1,6} but the current world size|world size.{0,40}(?:mismatch|does not "
        r"match)|"
        r"Loading a checkpoint for MP=[1-9]\d{0,3} but world size|"
        r"checkpoint was saved with .{0,40}(?:world size|ranks)|ZeRO.{0,60}(?:world size|elastic checkpoint)",
        cause="DeepSpeed's ZeRO and FSDP split the optimizer's state over the processes (ranks), one file "
        "for each, and such files are read by the same number of processes.",
        advice="Resume with the same number of GPUs as the saved run. For another number, take only the "
        "weights (python zero_to_fp32.py FOLDER joins ZeRO's into one file), or convert it with "
        "ds_to_universal.",
        say=_parallel_parts,
    ),
    ErrorKind(
        id="zero-to-fp32",
        title="zero_to_fp32 cannot join DeepSpeed's checkpoint",
        pattern=r"consumed \d{1,15} numels out of \d{1,15}|Expected \d{1,6} of '\*_optim_states\.pt'|"
        r"can'?t find [^\s]{0,40}_(?:optim|model)_states\.pt|can'?t find model states file at|"
        r"\w{0,60}_(?:optim|model)_states\.pt does not exist|"
        r"Unable to find 'latest' file|is not a zero checkpoint",
        cause="zero_to_fp32.py joins the parts that ZeRO wrote for each process. The parts and the script "
        "do not agree: the copy of the script in the folder is of an older DeepSpeed (which did not know "
        "the padding between ranks), files of some ranks were not saved or copied, or a folder above or "
        "below the checkpoint's was given.",
        advice="Update DeepSpeed (python -m pip install -U deepspeed), and run its own zero_to_fp32.py "
        "(python -m deepspeed.utils.zero_to_fp32) on the folder that holds the file latest, with the "
        "*_optim_states.pt of all ranks.",
    ),
    ErrorKind(
        id="dcp-keys",
        title="The distributed checkpoint does not hold a key that the model has",
        pattern=r"Missing key in checkpoint state_dict: ?(?P<key>[\w.]{1,300})?|"
        r"Size mismatch between saved .{1,80} and current",
        cause="torch.distributed.checkpoint fills the state dict that it is given, and looks for each of "
        "its keys, with the same shape, in the checkpoint. The model (or its optimizer) is larger than the "
        "saved one, or the names differ, for instance by a level (app.model.) or a wrapper's prefix.",
        advice="Build the model as in the saved run, and pass the state dict under the same keys. To load "
        "only what is there: dcp.load(state_dict, checkpoint_id=FOLDER, "
        "planner=DefaultLoadPlanner(allow_partial_load=True)).",
    ),
    ErrorKind(
        id="dtensor",
        title="Sharded and ordinary tensors were mixed",
        pattern=r"got mixed torch\.Tensor and DTensor|before loading ShardedTensor|"
        r"ShardedTensor.{0,60}(?:process group|not supported)",
        cause="The model, or the file, holds tensors that are sharded over processes (DTensor, "
        "ShardedTensor), and the other side ordinary ones.",
        advice="Load with torch.distributed.checkpoint, or set_model_state_dict(..., "
        "options=StateDictOptions(full_state_dict=True)). Save a full state dict for use without torchrun.",
    ),
    ErrorKind(
        id="safetensors-header",
        title="What was read is not a safetensors file",
        pattern=r"deserializing header: ?(?:Header ?Too ?(?:Large|Small)|Invalid ?Header\w{0,20}|header too "
        r"large|invalid (?:utf-8|json) in header)|HeaderTooLarge|InvalidHeaderDeserialization|HeaderTooSmall",
        finding="not-a-checkpoint",
        cause="A safetensors file begins with the length of its header. This one begins with something "
        "else: it is a Git LFS pointer, a web page, or another kind of file under that name.",
        advice="Check its size: a pointer has about 130 bytes; fetch the real file with git lfs pull or "
        "huggingface-cli download. (A header above 100 MB is refused as well.)",
        tie=_safetensors,
        say=_header,
    ),
    ErrorKind(
        id="safetensors-cut",
        title="The safetensors file ends too early",
        pattern=r"MetadataIncompleteBuffer|incomplete metadata|file not fully covered|"
        r"(?P<shape>shape '\[[-\d, ]{1,60}\]' is invalid for input of size)",
        finding="truncated",
        cause="The header describes more bytes than there are: a download or a copy was interrupted.",
        advice="Delete the unfinished file from the cache, and fetch it again. A file of your own: save it "
        "again.",
        tie=_safetensors,
        when=_is_of_file,
    ),
    ErrorKind(
        id="safetensors-shared",
        title="safetensors cannot store tensors that share memory",
        pattern=r"Some tensors share memory",
        finding="shared-storage",
        cause="Tied weights are one tensor under two names; safetensors would have to store them twice.",
        advice="Use safetensors.torch.save_model(model, path), or drop one of the two names.",
        tie=by_finding("shared-storage", no="No tensors in this file share storage."),
    ),
    ErrorKind(
        id="transformers-torch-version",
        title="transformers requires a newer torch to read .bin files",
        pattern=r"serious vulnerability issue in '?torch\.load'?|require users to upgrade torch to at least",
        cause="Before torch 2.6, even weights_only=True could be tricked into running code "
        "(CVE-2025-32434), so transformers refuses to read pickles with such a version.",
        advice="Update torch to 2.6 or newer, or use the same model as .safetensors.",
    ),
    ErrorKind(
        id="safetensors-metadata",
        title="The safetensors file does not say which framework wrote it",
        pattern=r"'NoneType' object has no attribute 'get'|archive passed .{1,300} does not contain (?:the "
        r"valid )?metadata",
        cause="transformers reads the entry format from the file's metadata, and this file has none: it was "
        "written without metadata={'format': 'pt'}.",
        advice="Write it again: save_file(load_file(path), path, metadata={'format': 'pt'}). Or update "
        "transformers, which accepts such files.",
        tie=_metadata,
        needs="metadata",
    ),
    ErrorKind(
        id="peft-config",
        title="The adapter's configuration does not fit",
        pattern=r"Target modules? .{1,300} not found in the base model|LoraConfig\.__init__\(\) got an "
        r"unexpected keyword|"
        r"Please specify '?target_modules",
        cause="adapter_config.json names modules that this base model does not have, or settings of a "
        "newer version of peft.",
        advice="Use the base model that the file names under base_model_name_or_path. For an unknown "
        "setting update peft, or take that line out of adapter_config.json.",
    ),
    ErrorKind(
        id="transformers-adamw",
        title="transformers has no optimizer of its own any more",
        pattern=r"cannot import name 'AdamW' from 'transformers",
        cause="AdamW was taken out of transformers in 4.50; it was that of torch with other defaults. An "
        "upgrade does not bring it back.",
        advice="from torch.optim import AdamW (its weight_decay is 0.01 by default, and was 0.0). A saved "
        "state loads into it: the slots are the same.",
    ),
    ErrorKind(
        id="transformers-too-old",
        title="transformers does not know this model",
        pattern=r"Transformers does not recognize this architecture|"
        r"KeyError: ?'(?:mistral|mixtral|llama|gemma\d?|qwen\d?\w{0,10}|phi\d?|gpt_neox|gptj|falcon|mpt|"
        r"bloom|starcoder2|deepseek\w{0,6}|internlm\d?|mllama|clip_\w{1,20}|whisper|t5|opt|baichuan|chatglm|stablelm)'|"
        r"model type '?[\w-]{1,60}'? but "
        r"Transformers|"
        r"cannot import name '\w{1,80}' from 'transformers",
        cause="The model, or the code, is newer (or older) than the installed transformers.",
        advice="python -m pip install -U transformers. If the code is old, install the version that it "
        "names.",
    ),
    ErrorKind(
        id="sb3-functions",
        title="The file holds functions that another Python compiled",
        pattern=r"assert callable\(value_schedule\)|Could not deserialize object (?:lr_schedule|clip_range|"
        r"\w{1,40})\.",
        cause="stable-baselines3 pickles the schedules (learning rate, clip range) as compiled functions, "
        "which only the same version of Python reads.",
        advice="Pass them yourself: PPO.load(path, custom_objects={'learning_rate': 0.0, 'lr_schedule': "
        "lambda _: 0.0, 'clip_range': lambda _: 0.0}), or use the Python that saved the file, or a newer "
        "stable-baselines3.",
    ),
    ErrorKind(
        id="quantized-load",
        title="bitsandbytes takes 8-bit weights only once the layers are on the GPU",
        pattern=r"Loading a quantized checkpoint into non-quantized Linear8bitLt",
        cause="The file holds weights in 8 bits (with SCB), and the layers of the model are quantized only "
        "when they are moved to the GPU.",
        advice="Move the model first (model.cuda()), then load_state_dict; or load with "
        "from_pretrained(..., load_in_8bit=True), which does both.",
    ),
    ErrorKind(
        id="lightning-hparams",
        title="Lightning cannot create the model: the checkpoint lacks arguments of __init__",
        pattern=r"__init__\(\) missing \d{1,3} required (?:positional|keyword-only) arguments?: "
        r"?'(?P<name>\w{1,60})",
        cause="load_from_checkpoint creates the model with the arguments that are stored in the checkpoint "
        "under hyper_parameters, and this one is not among them: the model does not call "
        "self.save_hyperparameters() in __init__, or ignores it there.",
        advice="Pass it yourself: Model.load_from_checkpoint(path, NAME=...), with the value of the "
        "training run. For the next run call self.save_hyperparameters() in __init__.",
        tie=_hyper_parameters,
        needs=r"load_from_checkpoint|[/ ](?:pytorch_)?lightning/",
    ),
    ErrorKind(
        id="lightning-version",
        title="The file is not a Lightning checkpoint",
        pattern=r"KeyError: ?['\"]pytorch-lightning_version",
        cause="Trainer.fit(ckpt_path=...) and load_from_checkpoint expect a checkpoint that Lightning "
        "wrote, with its version, loops and optimizers. This one holds only weights, or comes from another "
        "framework.",
        advice="Load the weights yourself: model.load_state_dict(torch.load(path)['state_dict']), and "
        "start the Trainer without ckpt_path.",
        tie=_lightning,
    ),
    ErrorKind(
        id="lightning-weights-alone",
        title="Lightning cannot resume from weights only",
        pattern=r"Trying to restore (?:training state|optimizer state|hyperparameters)[\w ]{0,40}but "
        r"checkpoint contains only the model",
        cause="The file was saved with save_weights_only=True: it holds no optimizer state and no counters.",
        advice="Start a new run from the weights (load_from_checkpoint), or resume from a checkpoint that "
        "was saved without save_weights_only.",
        tie=_lightning,
    ),
    ErrorKind(
        id="transformers-wrapper",
        title="transformers could not load the weights",
        pattern=r"Unable to load weights from (?:the )?(?:pytorch )?checkpoint file|"
        r"Failed to import (?:transformers|diffusers)\.[\w.]{1,80} because of the following error|please set "
        r"'?from_tf=True",
        cause=_WRAPPED + " The hint about TensorFlow is rarely the reason: usually the file is truncated, or "
        "it is a Git LFS pointer of about 130 bytes (the repository was cloned without git lfs), or torch "
        "is too old for it.",
        advice="Look at the file's size. Delete the model's folder in ~/.cache/huggingface/hub and download "
        "it again; in a cloned repository run git lfs install and git lfs pull.",
        tie=_loads_at_all,
        is_wrapper=True,
    ),
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
