"""Messages about code for the GPU that is compiled or chosen while a program runs."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind
from inspector.diagnose.errors.ties import ABOUT_MACHINE

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
)
