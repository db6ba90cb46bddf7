"""Messages of DistributedDataParallel about the model and its gradients."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import about_code

_CODE = about_code(
    "Nothing in this file brings it about: it is about the code that trains in several processes."
)

PARALLEL_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="ddp-device",
        title="DistributedDataParallel got a model on another device",
        pattern=r"(?:DistributedDataParallel|DDP).{0,40}device_ids and output_device arguments only work|"
        r"input module must be on the same type of devices|module parameters \{device\(type",
        cause="DistributedDataParallel must be given a model that is on the process's own GPU already.",
        advice="model.to(local_rank) first, then DistributedDataParallel(model, device_ids=[local_rank]). "
        "Load the checkpoint in every process, with map_location='cpu', before wrapping.",
        tie=_CODE,
    ),
    ErrorKind(
        id="ddp-models-differ",
        title="The processes have different models",
        pattern=r"expects same model across all ranks|"
        r"appears not to match (?:sizes|strides|sizes of the same param) (?:of the same param )?in process 0|"
        r"verifying shape of model params|params? shape verification",
        cause="DistributedDataParallel compares the parameters of all processes, and they differ in number "
        "or shape: a process built the model from other settings or data (another number of classes or of "
        "tokens), froze other layers, or did not load the checkpoint.",
        advice="Build the model from the same settings in every process, and load the same checkpoint in "
        "each (map_location='cpu') before wrapping. Do what only rank 0 does after wrapping.",
        tie=_CODE,
    ),
    ErrorKind(
        id="ddp-unused",
        title="DistributedDataParallel waits for gradients of parameters that the loss does not use",
        pattern=r"Expected to have finished reduction in the prior iteration|"
        r"parameters that were not used in producing (?:the )?loss",
        cause="Every parameter that requires a gradient must take part in the loss of every step, in every "
        "process. Some did not: a branch that was not taken, an output that the loss leaves out, a layer "
        "that is never called.",
        advice="DistributedDataParallel(model, device_ids=[local_rank], find_unused_parameters=True); in "
        "Lightning strategy='ddp_find_unused_parameters_true'. Better: freeze or remove what is unused "
        "(requires_grad_(False)). TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters.",
        tie=_CODE,
    ),
    ErrorKind(
        id="ddp-twice",
        title="A parameter got its gradient twice in one step of DistributedDataParallel",
        pattern=r"Expected to mark a variable ready only once",
        cause="A parameter was used in two backward passes of one step: layers that are shared between "
        "several forward calls, gradient checkpointing that runs a layer again, or "
        "find_unused_parameters=True together with either.",
        advice="Take find_unused_parameters=True away, use checkpoint(..., use_reentrant=False) "
        "(gradient_checkpointing_kwargs={'use_reentrant': False} in transformers), or call "
        "model._set_static_graph() where the graph never changes.",
        tie=_CODE,
    ),
)
