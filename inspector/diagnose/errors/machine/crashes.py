"""Programs that ended without an error of Python's, and warnings that are taken for one."""

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


CRASH_ERRORS: tuple[ErrorKind, ...] = (
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
