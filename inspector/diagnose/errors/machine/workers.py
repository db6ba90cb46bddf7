"""Messages of data loading, of the processes of a training run, and of DistributedDataParallel."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, ErrorKind, Said, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE
from inspector.model.findings import Fix
from inspector.model.obstacles import is_damaged

_BUS_ERROR = re.compile(
    r"bus error|\bsigbus\b|signal 7\b|exit(?:ed)?(?: with)? (?:code|status):? ?(?:135|-7)\b"
)


def _worker(told: Told) -> Said:
    """Explain what ended the worker, where the message has the signal."""
    text = told.pasted.flat.lower()
    if _is_of_map(text):
        return Said(
            title="The process read what a file or the shared memory no longer has (bus error)",
            cause="A file that is mapped (torch.load(mmap=True), safetensors, numpy's mmap_mode) was cut or "
            "replaced while it was read, or its disk failed or filled up. Where workers hand batches over, "
            "it is /dev/shm that is full.",
            advice="Write checkpoints under another name and rename them when they are whole; load without "
            "mmap. In a container start with --shm-size=8g, or use num_workers=0.",
        )
    if "bus error" in text or "shared memory" in text or "shm" in text:
        return Said(
            cause="The workers hand batches over in shared memory (/dev/shm), and there is not enough: a "
            "container has 64 MB unless told otherwise.",
            advice="Start the container with --shm-size=8g (or --ipc=host), or use num_workers=0.",
        )
    if "killed by signal: killed" in text:
        return Said(
            cause="The system ended a worker because the machine ran out of memory: each worker holds its "
            "own copy of what the dataset touches.",
            advice="Use fewer workers (num_workers=0 or 2) or a smaller batch.",
        )
    return Said()


def _is_of_map(text: str) -> bool:
    """Return whether a text of small letters has a bus error, and nothing of workers or shared memory."""
    is_bus_error = _BUS_ERROR.search(text) is not None
    return is_bus_error and not ("worker" in text or "shm" in text or "shared memory" in text)


def _tie_worker(context: Context) -> Tied:
    """Report whether the file may be the one that was shorter than its map."""
    if not _is_of_map(context.pasted.flat.lower()):
        return ABOUT_CODE(context)
    if is_damaged(context.checkpoint):
        return Tied(
            fits="yes",
            here="Bytes of this file are missing: a program that maps it (mmap=True) and reads them ends so.",
            finding="truncated",
            fix=Fix(recovers=True),
        )
    return Tied(
        fits="unknown",
        here="This file is whole now; whether it was while the program ran cannot be told from it.",
    )


def _nccl(told: Told) -> Said:
    """Explain what NCCL reports, where it says more than that it failed."""
    text = told.pasted.flat.lower()
    if "out of memory" in text:
        return Said(
            cause="NCCL found no GPU memory left.",
            advice="Lower the batch size; look for other programs in nvidia-smi.",
        )
    if "timeout" in told.text.lower() or "timed out" in told.text.lower():
        return Said(
            title="A process waited in vain for the others",
            cause="Another process stopped or did something else: it raised an error of its own, ran out "
            "of memory, or only rank 0 saves or evaluates while the others wait.",
            advice="Look for the first error of any rank above. Call the same collective operations on "
            "every rank; where rank 0 works alone, let the others wait in dist.barrier(), or raise "
            "timeout= in init_process_group.",
        )
    return Said()


def _pin(told: Told) -> Said:
    """Explain that the thread lost its workers, where it ended without an error of its own."""
    if not told.groups["lost"] and not told.groups["ended"]:
        return Said()
    return Said(
        cause="With pin_memory=True a thread copies batches into memory that the GPU reads directly, and it "
        "ended early: it lost the connection to the workers (they were killed, or the program was ending), "
        "or it stopped between epochs, which torch 1.7 and 1.8 do with persistent_workers=True.",
        advice="Pass pin_memory=False to the DataLoader, which changes nothing but speed, or "
        "persistent_workers=False; or update torch. num_workers=0 shows an error that a worker hides.",
    )


WORKER_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="fork-cuda",
        title="CUDA was used before a process was forked",
        pattern=r"re-?initialize (?:CUDA|XPU|HIP) in (?:a )?forked subprocess|'spawn' start method|"
        r"(?P<start>CUDA error: initialization error|cuda runtime error \(3\))",
        cause="CUDA does not survive a fork. The main process had used CUDA, and a forked worker uses it "
        "too: the dataset (or collate_fn) makes or moves tensors on the GPU, or loads a checkpoint there "
        "without map_location='cpu'.",
        advice="Keep the dataset on the CPU and move each batch in the training loop (load what it needs "
        "with map_location='cpu'), or use num_workers=0. Where workers must use CUDA, start them with "
        "spawn: DataLoader(..., multiprocessing_context='spawn').",
        tie=ABOUT_CODE,
        # The message for other starts of CUDA is the same.
        when=lambda told: not told.groups["start"] or "_worker_loop" in told.pasted.flat,
    ),
    ErrorKind(
        id="pin-cuda",
        title="A GPU tensor cannot be pinned",
        pattern=r"cannot pin ['\"]?[\w.]{1,60}['\"]? only (?:dense )?CPU",
        cause="pin_memory is for tensors on the CPU, so that they are copied to the GPU faster. The "
        "dataset returns tensors that are on a GPU already: it moved them, or loaded them from a file "
        "without map_location='cpu'.",
        advice="Keep the data on the CPU (torch.load(path, map_location='cpu') in the dataset) and move "
        "each batch in the loop. Or pass pin_memory=False to the DataLoader.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="pin-memory",
        title="The thread that pins memory failed",
        pattern=r"(?P<ended>Pin memory thread exited unexpectedly)|(?P<lost>not enough values to unpack|"
        r"EOFError|Connection(?:Reset|Refused|Aborted)Error|BrokenPipeError)|"
        r"cannot pin (?:memory|tensor)|need to provide "
        r"pin_memory allocator|cannot access accelerator device|"
        r"Caught \w{1,40} in pin memory thread",
        cause="With pin_memory=True a thread copies batches into memory that the GPU reads directly. It "
        "failed: no GPU or driver is usable, the memory is full, or a sample cannot be pinned.",
        advice="Pass pin_memory=False to the DataLoader: it changes nothing but speed.",
        tie=ABOUT_CODE,
        when=lambda told: not told.groups["lost"] or told.scene.step == "pin",
        say=_pin,
        is_wrapper=True,
    ),
    ErrorKind(
        id="dataloader-wrapper",
        title="A worker of the DataLoader raised an error",
        pattern=r"Caught \w{1,40} in (?:DataLoader worker process|replica) \d{1,4}",
        cause="The message only says where the error happened. The error itself stands below it, after "
        "'Original Traceback'.",
        advice="Paste the whole text. num_workers=0 (or a single GPU) shows the error directly.",
        tie=ABOUT_CODE,
        is_wrapper=True,
    ),
    ErrorKind(
        id="dataloader-worker",
        title="A worker of the DataLoader died",
        pattern=r"DataLoader worker \(pid(?:\(s\))? [\d, ]{1,60}\) (?:is killed|exited unexpectedly)|"
        r"received 0 items of ancdata|unable to (?:open|allocate|write to file|resize file|"
        r"mmap).{0,40}(?:shared memory|/torch_)|"
        r"Too many open files|insufficient shared memory|DataLoader timed out|"
        r"Couldn'?t open shared file mapping|No space left on device.{0,40}shm|"
        rf"{_BUS_ERROR.pattern}",
        cause="A process that loads data ended without an error of Python's: too little shared memory "
        "(/dev/shm, usual in containers), too little memory, too many open files, or a crash in a library.",
        advice="Try num_workers=0: it either works or shows the real error. In a container use "
        "--shm-size=8g or --ipc=host. Against too many open files: "
        "torch.multiprocessing.set_sharing_strategy('file_system').",
        tie=_tie_worker,
        say=_worker,
    ),
    ErrorKind(
        id="spawn-main",
        title="The script starts itself again in each worker",
        pattern=r"before the current process has finished its bootstrapping phase|freeze_support\(\)",
        cause="On Windows and macOS each worker imports the script. What stands outside of a function runs "
        "again there, and starts workers again.",
        advice="Put the code that trains below if __name__ == '__main__':, or use num_workers=0.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="dataloader-attribute",
        title="A DataLoader cannot be changed after it was made",
        pattern=r"(?P<name>\w{1,40}) attribute should not be set after \w{1,60} is initialized",
        cause="A DataLoader checks this once it is made. Code sets dataset, sampler or batch_size on a "
        "finished loader; or a class of its own sets them after super().__init__(); or a pickled "
        "DataLoader is restored from a checkpoint.",
        advice="Make a new DataLoader with the new arguments. In a subclass, call super().__init__() last. "
        "Do not save DataLoaders in checkpoints: save their settings.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="nccl-duplicate-gpu",
        title="Two processes use the same GPU",
        pattern=r"Duplicate GPU detected",
        cause="Each process (rank) needs a GPU of its own, and two of them chose the same: "
        "torch.cuda.set_device(local_rank) is missing, or there are more processes than GPUs. A checkpoint "
        "that is loaded without map_location in each process also makes all of them use the GPU it was "
        "saved on.",
        advice="Begin each process with torch.cuda.set_device(int(os.environ['LOCAL_RANK'])), start as "
        "many processes as there are GPUs (torchrun --nproc_per_node), and load with map_location='cpu'.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="nccl",
        title="NCCL failed: the processes could not talk to each other",
        pattern=r"NCCL error|ncclUnhandledCudaError|ncclInvalidUsage|ncclSystemError|ncclInternalError|"
        r"ncclRemoteError|"
        r"Watchdog caught collective operation timeout|unhandled (?:cuda|system) error, NCCL|NCCL "
        r"communicator was aborted|"
        r"Timed out initializing process group|store-based barrier|DistStoreError|"
        r"client socket has timed out|Connection (?:reset|closed) by peer.{0,60}rank",
        cause="The GPUs of several processes exchange data through NCCL, and that failed: another process "
        "stopped with an error of its own, two ranks use one GPU, the network between machines is not "
        "open, or NCCL does not fit the driver.",
        advice="Look for the first error of any rank: it is usually the cause. Run with NCCL_DEBUG=INFO, "
        "check that each rank has its own GPU, and on one machine try NCCL_P2P_DISABLE=1.",
        tie=ABOUT_CODE,
        say=_nccl,
    ),
    ErrorKind(
        id="process-group",
        title="torch.distributed is not set up for this",
        pattern=r"Default process group has not been initialized|package doesn'?t have (?:NCCL|MPI|XCCL) "
        r"built in|"
        r"ProcessGroupNCCL is only supported with GPUs|No backend type associated with device type|"
        r"setting up NCCL communicator|Cannot find NCCL|mismatch between collectives|"
        r"Tensors must be CUDA and dense|init_process_group before|environment variable (?:RANK|WORLD_SIZE|"
        r"MASTER_ADDR|LOCAL_RANK) "
        r"expected|address already in use|trying to initialize the default process group twice",
        cause="The code expects several processes with a process group: init_process_group was not called, "
        "the script was not started with torchrun, the backend does not fit (nccl needs GPUs and Linux; "
        "gloo is for the CPU and Windows), or another run still holds the port.",
        advice="Start it with torchrun --nproc_per_node=N script.py, and call init_process_group('nccl') "
        "(or 'gloo' on a CPU or Windows) first. Against a port in use pass --master_port=0. To only load "
        "the file none of this is needed.",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="child-failed",
        title="A process of the launcher failed",
        pattern=r"ChildFailedError|subprocess\.CalledProcessError|Command '?\[.{1,300}returned non-zero "
        r"exit status|"
        r"torch\.multiprocessing\.spawn\.ProcessRaisedException|process \d{1,4} terminated with (?:exit "
        r"code|signal)",
        cause="The launcher only reports that a process ended. The reason is in the output of that "
        "process, further up.",
        advice="Paste the whole output, from the first 'Traceback' on.",
        tie=ABOUT_CODE,
        never="ninja",
        is_wrapper=True,
    ),
    ErrorKind(
        id="ddp-device",
        title="DistributedDataParallel got a model on another device",
        pattern=r"(?:DistributedDataParallel|DDP).{0,40}device_ids and output_device arguments only work|"
        r"input module must be on the same type of devices|module parameters \{device\(type",
        cause="DistributedDataParallel must be given a model that is on the process's own GPU already.",
        advice="model.to(local_rank) first, then DistributedDataParallel(model, device_ids=[local_rank]). "
        "Load the checkpoint in every process, with map_location='cpu', before wrapping.",
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
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
        tie=ABOUT_CODE,
    ),
)
