"""Messages of frameworks and about memory, tied to what the file holds."""

from __future__ import annotations

from pathlib import Path

from inspector.model.build import open_checkpoint
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.target.profile import Gpu, Profile
from tests.corpus import CORPUS
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, optimizer, storage, tensor, value

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 MiB"
LIGHTNING = "KeyError: 'pytorch-lightning_version'"
ALONE = "Trying to restore training state but checkpoint contains only the model."
WRAPPER = "OSError: Unable to load weights from pytorch checkpoint file for 'a' at 'a'."


def test_memory_of_the_gpu() -> None:
    found = explained(OOM, on(("a", "cuda:0"), ("b", "cpu")), id_="gpu-memory")
    assert (found.fits, found.paths) == ("yes", ("a",))
    assert "takes 16 B on cuda:0" in found.here
    assert found.fix == Fix(option=("map_location", "'cpu'"))
    many = explained(OOM, on(("a", "cuda:0")), "4xcuda", id_="gpu-memory")
    assert (many.finding, many.fix) == ("all-ranks-on-one-device", Fix(style="distributed"))
    small = Profile(
        id="this", label="this", accelerators=(("cuda", 1),), gpus=(Gpu(device="cuda:0", memory_nbytes=1000),)
    )
    big = checkpoint(storage("0", "cuda:0", 9000), tensor("a", device="cuda:0", storage="0"))
    assert explained(OOM, big, small, id_="gpu-memory").finding == "does-not-fit"
    assert explained(OOM, on(("a", "cpu")), id_="gpu-memory").fits == "no"


def test_memory_of_the_computer() -> None:
    text = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 67108864 bytes."
    large = checkpoint(storage("0", nbytes=2_000_000_000), tensor("a", storage="0"))
    found = explained(text, large, id_="host-memory")
    assert (found.fits, found.fix) == ("yes", Fix(option=("mmap", "True")))
    small = explained(text, on(("a", "cpu")), id_="host-memory")
    assert (small.fits, small.fix, "not what filled" in small.here) == ("no", None, True)
    assert explained(text, on(), id_="host-memory").fits == "no"


def test_safetensors() -> None:
    text = "SafetensorError: Error while deserializing header: HeaderTooLarge"
    assert explained(text, on(("a", "cpu")), id_="safetensors-header").fits == "no"
    named = explained(text, on(("a", "cpu"), path="model.safetensors"), id_="safetensors-header")
    assert (named.fits, "rename it" in named.here) == ("yes", True)
    text = "Some tensors share memory, this will lead to duplicate memory on disk"
    tied = checkpoint(storage("0", tensors=2), tensor("a", storage="0"), tensor("b", storage="0"))
    assert explained(text, tied, id_="safetensors-shared").paths == ("a", "b")
    assert explained(text, on(("a", "cpu")), id_="safetensors-shared").fits == "no"


def test_lightning() -> None:
    version = value("pytorch-lightning_version", type="str", text="2.4.0")
    whole = checkpoint(version, tensor("state_dict", "w"), optimizer("optimizer_states", 0))
    assert explained(LIGHTNING, whole, id_="lightning-version").fits == "no"
    weights = checkpoint(version, tensor("state_dict", "w"))
    found = explained(ALONE, weights, id_="lightning-weights-alone")
    assert (found.fits, "without optimizer state" in found.here) == ("yes", True)
    other = explained(LIGHTNING, on(("model/w", "cpu")), id_="lightning-version")
    assert other.here.endswith("its top-level keys are model.")
    assert "it has no keys" in explained(LIGHTNING, checkpoint(), id_="lightning-version").here


def test_an_error_about_another_error() -> None:
    found = explained(WRAPPER, on(("a", "cuda:0")), "cpu", id_="transformers-wrapper")
    assert (found.fits, found.finding) == ("yes", "cuda-unavailable")
    assert explained(WRAPPER, on(("a", "cpu")), "cpu", id_="transformers-wrapper").fits == "unknown"


def test_arguments_that_lightning_did_not_store() -> None:
    text = "A.load_from_checkpoint(x)\nTypeError: __init__() missing 1 required positional argument: 'width'"
    version = value("pytorch-lightning_version")
    found = explained(text, checkpoint(version), id_="lightning-hparams")
    assert (found.fits, found.here) == ("yes", "This file has no width in hyper_parameters.")
    held = checkpoint(version, value("hyper_parameters", "width"))
    assert explained(text, held, id_="lightning-hparams").fits == "no"
    assert explained(text, checkpoint(), id_="lightning-hparams").fits == "no"


def test_a_safetensors_file_is_not_called_another_kind(tmp_path: Path) -> None:
    whole = CORPUS / "safetensors" / "all.safetensors"
    made = open_checkpoint(str(whole))
    found = explained("Error while deserializing header: HeaderTooLarge", made, id_="safetensors-header")
    assert (found.fits, "This is a safetensors file" in found.here) == ("no", True)
    text = "metadata.get('format')\nAttributeError: 'NoneType' object has no attribute 'get'"
    assert explained(text, made, id_="safetensors-metadata").fits == "no"
    bare = replace(made, values=())
    assert explained(text, bare, id_="safetensors-metadata").here.endswith("has no entry format.")
    assert explained(text, on(("a", "cpu")), id_="safetensors-metadata").fits == "no"
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(whole.read_bytes()[:-8])
    found = explained(
        "incomplete metadata, file not fully covered", open_checkpoint(str(cut)), id_="safetensors-cut"
    )
    assert found.fits == "yes"
