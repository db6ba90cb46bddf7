"""Messages of compiled code and crashes without an error of Python's, and warnings that are taken for one."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind, Said, Told
from inspector.diagnose.errors.ties import ABOUT_MACHINE


def _killed(told: Told) -> Said:
    """Explain what to do where the load itself was killed."""
    if told.scene.step in {"load", "load-weights"} or "load" in told.pasted.flat.lower():
        return Said(
            advice="Load with map_location='cpu', mmap=True and weights_only=True, which reads only what is "
            "used; build the model under torch.device('meta') and call load_state_dict(..., assign=True), "
            "so that the weights are in memory once. Leave out the optimizer state. More swap helps, too."
        )
    return Said()


KERNEL_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="kernel-needs-gpu",
        title="An operation that exists only for CUDA got a tensor on the CPU",
        pattern=r"must be (?:a )?CUDA(?: tensor)?|cannot be accessed from Triton|"
        r"implementation for device cpu|"
        r"not supported on CPUs?!|Not implemented on the CPU|CHECK_CUDA|not a CUDA tensor|"
        r"expects? (?:a )?CUDA tensors?",
        cause="The kernel (of an extension such as mmcv's operators, spconv, a rasterizer, or of Triton) "
        "runs on NVIDIA GPUs only, and one of its tensors is on the CPU: an input was not moved, the model "
        "was not, or there is no GPU at all.",
        advice="Move model and inputs: model.cuda(), x = x.cuda(); in several GPUs' code set the current one "
        "with torch.cuda.set_device. Without a GPU use the project's implementation in plain torch, if it "
        "has one.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="cuda-required",
        title="The program wants CUDA, and torch has none here",
        pattern=r"CUDA must be available|CUDA is (?:required|needed)|(?:requires?|needs?) (?:a )?(?:CUDA|"
        r"GPU)\b|"
        r"no GPU (?:found|available|detected)|GPU is (?:required|not available|not found)|"
        r"CUDA (?:is )?not available\b|torch\.cuda\.is_available\(\) (?:is|returned) False",
        cause="torch.cuda.is_available() is False: the installed torch is a CPU-only build ('+cpu' in "
        "torch.__version__; what pip installs on Windows), there is no NVIDIA driver, or no GPU.",
        advice="checkpoint-inspector target tells which of these it is. For a CPU-only build install one for "
        "CUDA: pip install torch --index-url https://download.pytorch.org/whl/cu128. Without a GPU look for "
        "an option of the program (--cpu, --device cpu).",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="compiler-missing",
        title="torch.compile cannot compile code for the GPU here",
        pattern=r"Cannot find a working triton installation|Triton Error|triton\.\w{1,30}\.\w{0,30}Error|"
        r"BackendCompilerFailed|InductorError|nvrtc: error|failed to open nvrtc-builtins|NVRTC_ERROR|"
        r"Unknown device for graph fuser|Windows not yet supported for torch\.compile|CppCompileError",
        cause="torch.compile (and TorchScript's fuser) write kernels while the program runs, with Triton, "
        "NVRTC or a C++ compiler: one of them is missing, too old for the GPU, or of another version than "
        "torch.",
        advice="Run without it: torch._dynamo.config.suppress_errors = True, or leave torch.compile out "
        "(for TorchScript torch.jit.fuser('fuser0')). Install the triton that belongs to this torch (on "
        "Windows triton-windows), or a newer torch for a newer GPU.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="attention-kernel",
        title="There is no attention kernel for this GPU, dtype or shape",
        pattern=r"no kernel found to launch|No available kernel|Expected is_sm\d{2}\w{0,10} to be true|"
        r"requires device with capability",
        cause="scaled_dot_product_attention and flash attention have fast kernels for some GPUs, dtypes and "
        "head sizes only; all of them were ruled out here, or the one that was asked for.",
        advice="Allow the plain one: torch.backends.cuda.enable_math_sdp(True) (or "
        "attn_implementation='eager' in from_pretrained). Use float16 or bfloat16 for the fast ones; update "
        "torch for a newer GPU.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="rocm-libraries",
        title="ROCm's libraries have no code for this AMD GPU",
        pattern=r"rocBLAS error|TensileLibrary|MIOpen\(HIP\)|miopenStatus\w{1,40}|hipErrorNoBinary|"
        r"HIPBLAS_STATUS_\w{1,30}|hiprtc",
        cause="rocBLAS and MIOpen come with kernels for some architectures of GPUs, and this one is not "
        "among them, or their files are missing.",
        advice="For a GPU beside a supported one set HSA_OVERRIDE_GFX_VERSION before Python starts (10.3.0 "
        "for other RDNA 2 GPUs, 11.0.0 for other RDNA 3). Install torch for the ROCm that supports the GPU.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="directml",
        title="DirectML (privateuseone) does not take part in this operation",
        pattern=r"device privateuseone:\d is invalid|storage on different device '?\"?privateuseone|"
        r"There is not enough GPU video memory available|DirectML|DmlTensor",
        cause="torch-directml registers its GPU under the name privateuseone. Other libraries (safetensors) "
        "do not know that device, and tensors cannot be loaded onto it directly.",
        advice="Load to the CPU (map_location='cpu', load_file(path, device='cpu')) and move the model "
        "afterwards with .to(torch_directml.device()). Against too little memory lower the resolution, or "
        "use float16.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="gpu-too-old",
        title="The GPU is too old for this dtype or way of quantization",
        pattern=r"only supported on GPUs with compute capability|not supported for the current GPU|"
        r"Current CUDA Device does not support bfloat16|does not support bfloat16 compilation",
        cause="bfloat16 and some quantized kernels need newer GPUs: bfloat16 Ampere (compute capability "
        "8.0), AWQ and Marlin 7.5 or 8.0, FP8 8.9.",
        advice="Choose float16 (--dtype half, torch_dtype=torch.float16), or weights that are quantized in "
        "another way.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="xpu-driver",
        title="Intel's GPU driver refused the work",
        pattern=r"Native API failed|UR_RESULT_ERROR_\w{1,40}|PI_ERROR_\w{1,40}|Level-Zero error|"
        r"ZE_RESULT_ERROR_\w{1,40}",
        cause="The driver or runtime of the Intel GPU failed: it ran out of memory, a kernel uses float64 "
        "(which Arc GPUs lack), or its version does not fit torch's.",
        advice="Lower the batch size, keep everything in float32 or lower, and update the driver and "
        "torch's build for XPU together.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="quantized-engine",
        title="This build of torch has no engine for quantized layers",
        pattern=r"Didn'?t find engine for operation quantized|Unknown qengine|NoQEngine|"
        r"Unknown qscheme|Unsupported qscheme|quantized engine \w{1,20} is not supported",
        cause="Quantized layers need an engine: fbgemm (or x86, onednn) on Intel and AMD, qnnpack on Arm. "
        "None is set, or the file was made for the other.",
        advice="torch.backends.quantized.engine = 'qnnpack' (Arm, Apple) or 'fbgemm' (x86) before the model "
        "is loaded; torch.backends.quantized.supported_engines shows which there are.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="no-storage",
        title="An operation that needs plain memory got a tensor without it",
        pattern=r"Cannot access (?:storage|data pointer) of|sparse tensors do not have strides|"
        r"Cannot set version_counter for inference tensor|Tensor that doesn'?t have storage",
        cause="Sparse, functional, fake and wrapper tensors have no memory of their own that could be "
        "shared, pinned, copied or saved as it is.",
        advice="Convert it first: tensor.to_dense(), or take the tensor inside (DTensor: "
        "tensor.full_tensor()). Tensors made in inference_mode: clone them outside of it.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="cuda-refused",
        title="CUDA refused an operation",
        pattern=r"CUDA (?:driver )?error: (?:operation not (?:supported|permitted)|invalid argument|"
        r"invalid resource handle|invalid value|peer access|peer mapping|an attempt|context is destroyed|"
        r"the remote|mapping of buffer|exception occurred|OS call failed|API call is not supported)|"
        r"peer access is (?:already enabled|not supported)",
        cause="The driver does not do what was asked here: peer access between GPUs, sharing memory between "
        "processes (in WSL, in a virtual machine with a part of a GPU), or a call after the GPU was lost. It "
        "may be reported late, for an earlier operation.",
        advice="Run with CUDA_LAUNCH_BLOCKING=1 to see the true line. For several GPUs try "
        "NCCL_P2P_DISABLE=1; for DataLoader keep GPU tensors out of the workers. Update the driver.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="openmp-twice",
        title="Two copies of the OpenMP library were loaded",
        pattern=r"OMP: Error #15|lib(?:iomp5md|omp)\w{0,6}\.(?:dll|dylib|so)[^.]{0,20}already initialized|"
        r"cannot load libmkl|MKL_THREADING_LAYER=",
        cause="torch and another package (NumPy with MKL, scikit-learn, OpenCV, often mixed from conda and "
        "pip) each bring the OpenMP runtime, and it refuses to run twice in one process.",
        advice="Install the packages from one source: all with pip, or all with conda, in a new environment. "
        "KMP_DUPLICATE_LIB_OK=TRUE silences the check; results may then be wrong.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="illegal-instruction",
        title="The CPU does not have an instruction that a package was compiled for",
        pattern=r"illegal (?:hardware )?instruction(?! was encountered)|\bSIGILL\b|signal 4\b|"
        r"exit code:? ?(?:132|-4)\b",
        cause="A package has compiled code for another CPU: for AVX on an old processor or in a virtual "
        "machine that hides it, or for Intel under Rosetta on a Mac with Apple silicon.",
        advice="On a Mac install Python for arm64 (python3 -c 'import platform; print(platform.machine())' "
        "shows which it is) and torch again. Elsewhere look for avx in /proc/cpuinfo and install another "
        "build or version of the package; python -X faulthandler shows which one crashes. On Arm boards "
        "(Jetson, Raspberry Pi) it is usually NumPy's OpenBLAS: export OPENBLAS_CORETYPE=ARMV8, or another "
        "numpy.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="process-killed",
        title="The system ended the process, most probably because memory ran out",
        pattern=r"(?:^|[:.] ?)Killed\b(?! by| the| all| when| in| it)|\bKilled python|oom-?kill|"
        r"Out of memory: Kill|"
        r"SIGKILL|signal 9\b|exit(?:ed|s)? (?:with )?(?:code|status):? ?(?:137|-9)\b|"
        r"exitcode ?:? ?-9\b|return code = -9",
        cause="Python raised nothing: the system killed the process (SIGKILL). That is what Linux does when "
        "memory runs out, and what a container or a cluster does above its limit; dmesg shows it.",
        advice="Watch the memory while it runs (free -h). Use a smaller batch and fewer DataLoader workers, "
        "or raise the limit of the container or job. Large checkpoints: torch.load(path, "
        "map_location='cpu', mmap=True).",
        tie=ABOUT_MACHINE,
        say=_killed,
    ),
    ErrorKind(
        id="compiled-crash",
        title="Compiled code crashed",
        pattern=r"segmentation fault|\bSIGSEGV\b|signal 11\b|exit code:? ?(?:139|-11|3221225477)\b|"
        r"0xC0000005|Fatal Python error|free\(\): invalid|double free or corruption|munmap_chunk\(\)|"
        r"malloc\(\): \w|corrupted (?:size|double-linked)|access violation",
        cause="A library of compiled code wrote where it must not: an extension that was built for another "
        "torch, two copies of a library (OpenMP, CUDA, protobuf), or packages of conda and pip mixed.",
        advice="python -X faulthandler script.py shows the line. Try python -c 'import torch' alone, then "
        "each import of the script. Install torch and its extensions again, in a new environment; import "
        "torch before the other libraries.",
        tie=ABOUT_MACHINE,
    ),
    ErrorKind(
        id="cpp-terminate",
        title="An error of C++ ended the program",
        pattern=r"terminate called (?:after throwing an instance of|without an active exception|recursively)|"
        r"libc\+\+abi: terminating",
        cause="The message itself stands behind what(): an error that a thread of compiled code raised and "
        "nobody caught.",
        advice="Paste the lines behind what(). Often another process of the same run failed first: look for "
        "the first error above.",
        tie=ABOUT_MACHINE,
        is_wrapper=True,
    ),
    ErrorKind(
        id="weights-not-used",
        title="Some weights of the file were not used, or some of the model were not in it",
        pattern=r"Some weights of (?:the model checkpoint|\w{1,60}) .{0,200}(?:were not (?:used|initialized)|"
        r"newly initialized)|The following keys are missing from the checkpoint",
        cause="A warning. Not used is harmless where the model has no such part (the head of the "
        "pretraining). Newly initialized means random: normal for a new classifier, and wrong if the names "
        "are those of the whole model.",
        advice="Read the names. If they are the head alone, go on (and train it). If they are nearly all, "
        "the class of the model or a prefix does not fit the file.",
        is_wrapper=True,
    ),
    ErrorKind(
        id="scheduler-before-optimizer",
        title="The learning rate is one step ahead of the optimizer",
        pattern=r"call of '?lr_scheduler\.step\(\)'? before",
        cause="The first value of the schedule is skipped, and each later one comes a step early. After a "
        "resume it also comes where the scheduler was made anew and stepped before the first optimizer "
        "step, or where a GradScaler skipped that step.",
        advice="Call optimizer.step() first, then scheduler.step(). To resume, load the scheduler's state "
        "instead of stepping it to where it was.",
        is_wrapper=True,
    ),
    ErrorKind(
        id="load-warning",
        title="A warning that can be ignored: the file is loaded all the same",
        pattern=r"Model was trained with .{1,60} yours is|Bad things (?:might|may) happen unless|"
        r"automatically upgraded your loaded checkpoint|TypedStorage is deprecated|"
        r"You are using '?torch\.load'? with '?weights_only=False|"
        r"Torch was not compiled with flash attention|"
        r"Trying to unpickle estimator|'?torch\.cuda\.amp\.\w{1,20}\(args|"
        r"NumPy array is not writ",
        cause="It announces a change in a later version, or says that another version wrote the file. It is "
        "no error: what stops the program, if anything does, stands elsewhere in the output.",
        advice="Go on. If the results are wrong, install the versions that the message names. For a file "
        "that you do not trust pass weights_only=True.",
        is_wrapper=True,
    ),
)
