"""Messages about damaged, truncated and foreign files: is it this one?"""

from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, storage, tensor

CUT = checkpoint(storage("0", missing=True), tensor("w", storage="0"))
WHOLE = on(("w", "cpu"))


def test_records_found_by_searching_are_of_a_cut_file() -> None:
    made = on(
        ("w", "cpu"),
        notes=(Note(NoteKind.NO_DIRECTORY, ("1 record",)),),
        refusal="RuntimeError: no central directory",
    )
    found = explained("failed finding central directory", made, id_="zip-directory")
    assert (found.fits, found.finding) == ("yes", "truncated")


def test_first_bytes() -> None:
    page = explained("invalid load key, '<'.", WHOLE, id_="load-key")
    assert (page.fits, page.finding) == ("no", "html-page")
    assert page.here.endswith("is a web page: the link led to a page, not to the file.")
    odd = explained("invalid load key, '\\xca'.", WHOLE, id_="load-key")
    assert odd.here.endswith("the error is about another file.")
    assert odd.finding == "not-a-checkpoint"
    packed = on(("w", "cpu"), notes=(Note(NoteKind.GZIP, ("gzip",)),))
    found = explained("invalid load key, '\\x1f'.", packed, id_="load-key")
    assert (found.fits, found.finding, found.advice) == ("yes", "torch-refuses", "Decompress it with gunzip.")


def test_versions() -> None:
    text = "Attempted to read a PyTorch file with version 11, but the maximum supported version is 10."
    new = on(("w", "cpu"), versions=(("version", "11"),))
    assert explained(text, new, id_="zip-version").fits == "yes"
    old = explained(text, on(("w", "cpu"), versions=((".data/version", "6"),)), id_="zip-version")
    assert (old.fits, old.here) == ("no", "This file is of version 6.")
    bare = explained("kMaxSupportedFileFormatVersion", on(("w", "cpu")), id_="zip-version")
    assert (bare.fits, bare.here) == ("unknown", "This file is without such a number.")


def test_protocols() -> None:
    assert explained("unsupported pickle protocol: 2", WHOLE, id_="pickle-protocol").fits == "yes"
    assert explained("unsupported pickle protocol: 5", WHOLE, id_="pickle-protocol").fits == "no"


LOADING = (
    '  File "a.py", line 3, in f\n    sd = torch.load(path)\n'
    "_pickle.UnpicklingError: unpickling stack underflow"
)


def test_safetensors_read_as_a_pickle() -> None:
    text = f"Loading vae/flux.safetensors\n{LOADING}"
    found = explained(text, CUT, id_="pickle-truncated")
    assert (found.fits, "safetensors.torch.load_file" in found.advice) == ("no", True)
    for other in (LOADING, f"Loading a.safetensors\nLoading b.pt\n{LOADING}"):
        assert "safetensors.torch" not in explained(other, CUT, id_="pickle-truncated").advice, other
        assert explained(other, CUT, id_="pickle-truncated").fits == "yes", other


def test_script_loader_given_a_pickle() -> None:
    text = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    frame = '  File "a.py", line 3, in f\n    net = torch.jit.load(path)\n'
    assert "Try torch.load" in explained(frame + text, WHOLE, id_="zip-directory").advice
    assert "Try torch.load" not in explained(text, WHOLE, id_="zip-directory").advice


def test_archives_for_other_loaders_have_no_object() -> None:
    text = "RuntimeError: PytorchStreamReader failed locating file data.pkl: file not found"
    for form, loader in (("pt2", "torch.export.load"), ("package", "torch.package.PackageImporter")):
        found = explained(text, on(("a", "cpu"), format=form), id_="zip-record")
        assert (found.fits, found.advice) == ("yes", f"Load it with {loader}, as the printed code does.")
        other = explained(text.replace("data.pkl", "data/0"), on(("a", "cpu"), format=form), id_="zip-record")
        assert other.fits == "no"
    assert explained(text, on(("a", "cpu")), id_="zip-record").fits == "no"


def test_a_tensor_that_a_file_does_not_have() -> None:
    text = "safetensors_rust.SafetensorError: File does not contain tensor fc.weight"
    assert explain_error(text, on(("fc.weight", "cpu"))).fits == "no"
    near = explain_error(text, on(("model.fc.weight", "cpu")))
    assert (near.fits, near.paths) == ("yes", ("model.fc.weight",))
    assert explain_error(text, on(("a", "cpu"))).here == "This file has no tensor fc.weight."
