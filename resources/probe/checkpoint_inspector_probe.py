#!/usr/bin/env python3
"""Describe this machine's GPUs, drivers and PyTorch as one JSON document, for Checkpoint Inspector.

    python3 checkpoint_inspector_probe.py > profile.json
    ssh HOST python3 - < checkpoint_inspector_probe.py > host.json

It needs nothing but Python 3.8 or newer, no privilege and no network, and changes nothing; PyTorch is asked
where it is installed. It never fails: what cannot be found out is null, or the error's text. Left out on
purpose are the names of host and user, folders, serial numbers, UUIDs and addresses.
"""

# It runs alone, on Python 3.8 too, and people read it before they run it: short lines, few imports.
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, D103, PLC0415, S603, UP031
# ruff: noqa: PTH100, PTH110, PTH111, PTH112, PTH113, PTH118, PTH119, PTH123, PTH207

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", sys.flags.isolated):
    del sys.path[0]  # the script's own folder or the working one: what else lies there must not run

import ctypes
import ctypes.util
import glob
import json
import os
import platform
import re
import struct
import subprocess
import warnings

VERSION = 1
TORCH_SECONDS = 75
SMI_SECONDS = 10
NVCC_SECONDS = 5
MOST_CHARS = 2000
TORCH_ONLY = "--torch-only"
ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
)
PACKAGES = re.compile(
    r"torch|torchvision|torchaudio|pytorch|pytorch-cuda|pytorch-mutex|pytorch-triton.*|triton|torch[-_]xla"
    r"|torch[-_]npu|intel[-_]extension[-_]for[-_]pytorch|nvidia[-_]cuda[-_]runtime.*|cudatoolkit|cuda-version"
    r"|habana[-_]torch[-_]plugin"
)
SMI_OF_WSL = "/usr/lib/wsl/lib/nvidia-smi"  # Windows puts it there, and not every shell has it on its path
WINDOWS_CARDS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}\%04d"
WINDOWS_VENDORS = {"nvidia": "nvidia", "advanced micro devices": "amd", "amd": "amd", "intel": "intel"}
CONTAINERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "singularity"}
VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F][0-9A-Za-z/-]*")
# A folder is what stands between slashes, unless a scheme, a word or a dot goes before (URLs, and/or, ../).
FOLDER = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[\\/](?:[^\\/:*?\"'<>|\n]{1,100}[\\/])+")


def clean(text):
    """Take folders and UUIDs out of a text, and cut it."""
    home = os.path.expanduser("~")
    text = str(text).replace(home, "~") if len(home) > 1 else str(text)
    return UUID.sub(r"\1-(uuid)", FOLDER.sub(".../", text)).strip()[:MOST_CHARS]


def attempt(question, *arguments):
    """Return what a question answers, or None.

    Drivers and plug-ins raise whatever they like, and one that fails must not take the other answers with it.
    """
    try:
        return question(*arguments)
    except Exception:  # noqa: BLE001 - see above
        return None


def run(command, seconds):
    """Run a command: its state, exit code, output and errors."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        return "missing", None, "", ""
    except subprocess.TimeoutExpired:
        return "timeout", None, "", ""
    except OSError as error:
        return "failed", None, "", str(error)
    state = "ok" if done.returncode == 0 else "failed"
    return (state, done.returncode, *(text.decode("utf-8", "replace") for text in (done.stdout, done.stderr)))


# --- PyTorch, in a child process of its own: a broken build ends the whole process --------------------------


def torch_answers():
    """Import torch and ask it; whatever it prints meanwhile goes to stderr."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            import torch
    except Exception as error:  # noqa: BLE001 - a broken installation raises anything
        missing = isinstance(error, ImportError) and error.name == "torch"
        return {"state": "missing" if missing else "failed", "error": clean(error) or type(error).__name__}
    version = torch.version
    answers = {
        "state": "imported",
        "version": str(torch.__version__),
        "cuda": getattr(version, "cuda", None),
        "hip": getattr(version, "hip", None),
        "xpu": getattr(version, "xpu", None),
        "messages": [clean(warning.message) for warning in said],
    }
    answers.update(cuda_answers(torch))
    answers.update(other_answers(torch))
    return answers


def listen(question):
    """Ask, and return the answer with what was said and raised meanwhile."""
    answer, messages = None, []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            answer = question()
        except Exception as error:  # noqa: BLE001 - see attempt
            messages.append(clean(error) or type(error).__name__)
    # What was said before it failed comes first, as on a terminal.
    return answer, [clean(warning.message) for warning in said] + messages


def cuda_answers(torch):
    """CUDA, or ROCm, which torch calls by the same name."""
    available, messages = listen(torch.cuda.is_available)
    # NVML may count GPUs that cannot be used, so the count is asked in any case.
    count, more = listen(torch.cuda.device_count)
    messages += [text for text in more if text not in messages]
    devices = []
    if available:
        _, more = listen(torch.cuda.init)
        messages += [text for text in more if text not in messages]
        devices = [cuda_device(torch, index) for index in range(count or 0)]
    elif getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None):
        _, more = listen(torch.cuda.init)
        messages += [text for text in more if text not in messages]
    return {
        "cuda_available": available,
        "cuda_count": count,
        "cuda_messages": messages,
        "cuda_devices": devices,
        "arch_list": attempt(lambda: [str(arch) for arch in torch.cuda.get_arch_list()]) or [],
    }


def cuda_device(torch, index):
    """One device: what torch says of it."""
    found = attempt(torch.cuda.get_device_properties, index)
    major, minor = getattr(found, "major", None), getattr(found, "minor", None)
    return {
        "name": str(getattr(found, "name", "")),
        "memory_nbytes": getattr(found, "total_memory", None),
        "capability": None if major is None or minor is None else [major, minor],
        "architecture": getattr(found, "gcnArchName", None),  # AMD's: gfx1030
    }


def other_answers(torch):
    """Apple's, Intel's and Habana's devices."""
    mps, xpu = getattr(torch.backends, "mps", None), getattr(torch, "xpu", None)
    xpu_available, messages = listen(xpu.is_available) if xpu is not None else (False, [])
    count = (attempt(xpu.device_count) or 0) if xpu_available else 0
    return {
        "mps_built": None if mps is None else attempt(mps.is_built),
        "mps_available": None if mps is None else attempt(mps.is_available),
        "xpu_available": xpu_available,
        "xpu_messages": messages,
        "xpu_devices": [xpu_device(xpu, index) for index in range(count)],
        "hpu": bool(attempt(hpu_available, torch)),
    }


def hpu_available(torch):
    return torch.hpu.is_available()


def xpu_device(xpu, index):
    found = attempt(xpu.get_device_properties, index)
    return {"name": str(getattr(found, "name", "")), "memory_nbytes": getattr(found, "total_memory", None)}


def ask_torch(script):
    """Ask torch in a child where this script is a file; read from a pipe it has to ask by itself."""
    if script is None:
        return attempt(quietly, torch_answers) or {"state": "failed", "error": "no answer"}
    state, code, text, said = run([sys.executable, script, TORCH_ONLY], TORCH_SECONDS)
    answers = attempt(lambda: json.loads(text.splitlines()[-1]))
    if isinstance(answers, dict):
        return answers
    if state == "timeout":
        return {"state": "timeout", "error": "no answer within %d s" % TORCH_SECONDS}
    return {"state": "crashed", "error": clean("exit code %s %s" % (code, (text + said)[-500:]))}


def quietly(question):
    """Ask while everything that is printed to stdout, by C++ too, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        return question()
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


# --- drivers, device files, toolkits ------------------------------------------------------------------------


def nvidia():
    """The driver as nvidia-smi, the kernel and the library know it."""
    smi, uuids = nvidia_smi()
    return {
        "smi": smi,
        "kernel_module": attempt(kernel_module),
        "libcuda": attempt(libcuda) or {"found": False, "cuda": None},
        "nodes": nodes("/dev/nvidia*") + nodes("/dev/nvmap"),  # the latter on Jetson boards
    }, uuids


def nvidia_smi():
    """What nvidia-smi says, and the UUIDs that only serve to check CUDA_VISIBLE_DEVICES."""
    program = SMI_OF_WSL if os.path.exists(SMI_OF_WSL) else "nvidia-smi"
    state, code, text, said = run([program], SMI_SECONDS)
    answer = {"state": state, "exit_code": code, "error": None, "driver": None, "cuda": None, "gpus": []}
    if state != "ok":
        answer["error"] = clean((text + said)[:MOST_CHARS]) or None
        return answer, []
    found = re.search(r"CUDA(?: UMD)? Version\s*:\s*([\d.]+)", text)
    answer["cuda"] = found.group(1) if found else None
    uuids = []
    for row in smi_rows(program):
        cells = [cell.strip() for cell in row.split(",")] + [""] * 6
        answer["driver"] = cells[0] or None
        uuids.append(cells[4])
        gpu = {"name": cells[1], "memory_nbytes": mebibytes(cells[2]), "mig": cells[3]}
        gpu["capability"] = pair(cells[5])
        answer["gpus"].append(gpu)
    return answer, [uuid for uuid in uuids if uuid]


def smi_rows(program):
    """Rows of the GPUs; drivers before 510 do not know compute_cap."""
    fields = "driver_version,name,memory.total,mig.mode.current,uuid"
    for more in (",compute_cap", ""):
        query = "--query-gpu=" + fields + more
        state, _, text, _ = run([program, query, "--format=csv,noheader,nounits"], SMI_SECONDS)
        if state == "ok":
            return [row for row in text.splitlines() if row.count(",") >= 4]
        if state == "timeout":
            break
    return []


def mebibytes(text):
    return int(text) << 20 if text.isdigit() else None


def pair(text):
    found = re.match(r"(\d+)\.(\d+)$", text)
    return [int(found.group(1)), int(found.group(2))] if found else None


def kernel_module():
    with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
        found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", file.read(4096))
    return found.group(1) if found else "unknown"


def libcuda():
    """Whether the driver's library is there, and the CUDA version it speaks; it is not initialized."""
    name = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    library, number = ctypes.CDLL(name), ctypes.c_int(0)
    known = library.cuDriverGetVersion(ctypes.byref(number)) == 0 and number.value > 0
    cuda = "%d.%d" % (number.value // 1000, number.value % 1000 // 10) if known else None
    return {"found": True, "cuda": cuda}


def nodes(pattern):
    """Device files, with whether this user may use them."""
    return [
        {"path": path, "usable": os.access(path, os.R_OK | os.W_OK)}
        for path in sorted(glob.glob(pattern))[:64]
        if not os.path.isdir(path)
    ]


def toolkits():
    """Versions of CUDA's toolkits that are installed beside torch; torch brings its own libraries."""
    folders = glob.glob("/usr/local/cuda-*") + glob.glob("/opt/cuda-*")
    programs = os.environ.get("PROGRAMFILES", "?")  # on Windows
    folders += glob.glob(os.path.join(programs, "NVIDIA GPU Computing Toolkit", "CUDA", "v*"))
    found = [re.search(r"(\d+\.\d+)$", folder) for folder in folders]
    return sorted({match.group(1) for match in found if match})


def nvcc():
    found = re.search(r"release (\d+\.\d+)", run(["nvcc", "--version"], NVCC_SECONDS)[2])
    return found.group(1) if found else None


def display_cards():
    """Makers of the graphics cards on the bus, whether or not a driver knows them."""
    if os.name == "nt":
        return attempt(windows_cards) or []
    found = []
    for folder in sorted(glob.glob("/sys/bus/pci/devices/*")):
        kind = attempt(first_line, os.path.join(folder, "class")) or ""
        vendor = VENDORS.get(attempt(first_line, os.path.join(folder, "vendor")) or "")
        if vendor and kind.startswith(("0x03", "0x12")):  # displays, processing accelerators
            found.append(vendor)
    return found


def windows_cards():
    import winreg

    found = []
    for number in range(16):
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, WINDOWS_CARDS % number) as key:
                maker = str(winreg.QueryValueEx(key, "ProviderName")[0]).lower()
        except OSError:
            continue
        found += [vendor for word, vendor in WINDOWS_VENDORS.items() if maker.startswith(word)]
    return found


def first_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline(512).strip()


# --- the machine, Python, packages, environment -------------------------------------------------------------


def system():
    release = platform.release()
    return {
        "os": platform.system(),
        "release": release,
        "machine": platform.machine(),
        "macos": platform.mac_ver()[0] or None,
        "rosetta": attempt(rosetta),
        "wsl": "microsoft" in release.lower(),
        "container": attempt(container),
        "memory_nbytes": attempt(memory),
    }


def rosetta():
    """Whether this Intel Python is translated on an Apple chip; None where there is no such thing."""
    if platform.system() != "Darwin":
        return None
    return run(["sysctl", "-n", "sysctl.proc_translated"], NVCC_SECONDS)[2].strip() == "1"


def container():
    """The kind of container, or None."""
    for path, kind in CONTAINERS.items():
        if os.path.exists(path):
            return kind
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    with open("/proc/1/cgroup", encoding="utf-8", errors="replace") as file:
        found = re.search(r"docker|kubepods|containerd|libpod|lxc", file.read(65536))
    return found.group(0) if found else None


def memory():
    if os.name == "nt":
        status = (ctypes.c_ulonglong * 8)(64)  # MEMORYSTATUSEX: length and load share the first eight bytes
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status[1])
    nbytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = attempt(first_line, "/sys/fs/cgroup/memory.max") or ""  # a container may have less
    return min(nbytes, int(limit)) if limit.isdigit() else nbytes


def python():
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "bits": struct.calcsize("P") * 8,
    }


def packages():
    """Versions of what belongs to torch, by name; a name with several versions is installed several times."""
    from importlib import metadata

    found = {}
    for distribution in metadata.distributions():
        name = str(attempt(distribution.metadata.get, "Name")).lower()
        if PACKAGES.fullmatch(name):
            found.setdefault(name, set()).add(str(distribution.version)[:100])
    for path in glob.glob(os.path.join(sys.prefix, "conda-meta", "*.json")):
        parts = os.path.basename(path)[:-5].rsplit("-", 2)  # name-version-build
        if len(parts) == 3 and PACKAGES.fullmatch(parts[0]):
            found.setdefault("conda:" + parts[0], set()).add(" ".join(parts[1:])[:100])
    return {name: sorted(versions) for name, versions in sorted(found.items())[:64]}


def environment(uuids):
    """The variables that choose devices; a UUID only says whether it is one of this machine's."""

    def checked(match):
        text = match.group(0)
        if not uuids or match.group(1) == "MIG":
            return match.group(1) + "-(uuid)"
        return "GPU-(found)" if any(uuid.startswith(text) for uuid in uuids) else "GPU-(not found)"

    return {name: UUID.sub(checked, os.environ[name])[:200] for name in ENVIRONMENT if name in os.environ}


def probe(script=None):
    """Return the whole document."""
    card, uuids = attempt(nvidia) or (None, [])
    return {
        "checkpoint_inspector_profile": VERSION,
        "system": attempt(system),
        "python": attempt(python),
        "torch": ask_torch(script),
        "nvidia": card,
        "cards": attempt(display_cards) or [],
        "dri": attempt(nodes, "/dev/dri/render*") or [],
        "kfd": attempt(nodes, "/dev/kfd") or [],
        "dxg": os.path.exists("/dev/dxg"),
        "toolkits": attempt(toolkits) or [],
        "nvcc": attempt(nvcc),
        "packages": attempt(packages) or {},
        "environment": attempt(environment, uuids) or {},
    }


def main():
    script = globals().get("__file__")
    script = os.path.abspath(script) if script and os.path.isfile(script) else None
    attempt(os.chdir, sys.prefix)  # so that no relative entry of PATH means the folder where this was started
    answer = quietly(torch_answers) if TORCH_ONLY in sys.argv[1:] else probe(script)
    # ASCII, so that no terminal and no pipe can spoil it.
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
