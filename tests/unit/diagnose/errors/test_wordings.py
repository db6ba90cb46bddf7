"""What each row says of each of its texts, on one page; and that everything that a row can say is said."""

from __future__ import annotations

import re
import tomllib

import pytest

from inspector.diagnose.errors import explain
from inspector.diagnose.errors.explain import ERROR_KINDS, explain_error
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.errors_measure import PARTS, texts
from tests.unit.diagnose.cases import at, samples, trained, whole, whole_optimizer
from tests.unit.diagnose.explaining import asking, on
from tests.unit.diagnose.messages import FOLDER, messages
from tests.unit.report.rows import checkpoint, storage, tensor, value


def wordings() -> list[str]:
    rows = tomllib.loads((FOLDER / "wordings.toml").read_text(encoding="utf-8"))["wording"]
    return [row["text"] for row in rows]


def test_what_is_said_of_each_wording(golden) -> None:
    page = []
    for text in wordings():
        found = explain_error(text, None)
        last = text.strip().splitlines()[-1][:120]
        page += [f"> {last}", f"{found.id}, {found.finding or 'no finding'}: {found.title}"]
        page += [found.cause, found.advice, ""]
    golden("errors.txt", "\n".join(page))


def test_every_saying_has_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is put into one is there: a fact that nobody finds would leave a hole in the sentence."""
    said, holes = set(), set()
    fill = explain._filled

    def filled(text: str, facts: dict[str, str], shown: dict[str, str]) -> str:
        for name in re.findall(r"<<([\w:|]+)>>", text):
            if not any(one.rpartition(":")[2] in facts for one in name.split("|")):
                holes.add((text, name))
        said.add(text)
        return fill(text, facts, shown)

    monkeypatch.setattr(explain, "_filled", filled)
    every = [*wordings(), *(message.text for message in messages())]
    every += [text.text for part in PARTS if part != "held" for text in texts(part)]
    for text in every:
        explain_error(text, None)
    sayings = {(kind.id, text) for kind in ERROR_KINDS for one in kind.say for text in (one.title, one.cause)}
    assert holes == set()
    assert {(id_, text[:60]) for id_, text in sayings if text and text not in said} == set()


def tied_files() -> dict[str, Checkpoint]:
    """One file of each sort that rows tell apart."""
    made = {name: open_checkpoint(str(CORPUS / path)) for name, path in CORPUS_FILES.items()}
    version = value("pytorch-lightning_version", type="str", text="2.4.0")
    return made | {
        "cut": samples()["truncated"].has[0],
        "step counters on another GPU": trained("cuda:1", "cuda:0"),
        "state on the CPU": trained("cpu", "cpu"),
        "pickled optimizer, apart": whole_optimizer("cpu", "cuda:1"),
        "module apart": whole(a=at("cuda:0", "0"), b=at("cuda:0", "1"), c=at("cpu", "2")),
        "loss apart": whole(a=at("cuda:0", "0", 9), pos_weight=at("cpu", "1")),
        "float64": checkpoint(storage("0"), tensor("fc.weight", dtype="float64", storage="0", nbytes=32)),
        "Lightning, weights alone": checkpoint(version, tensor("state_dict", "w")),
        "wrapped": on(("net/module.fc.weight", "cuda:0"), ("net/module.fc.bias", "cuda:0")),
        "list": on(("a", "cpu"), root="sequence"),
        "classes": asking(
            "mine.Net", "numpy._core.multiarray.scalar", "pathlib.PosixPath", "argparse.Namespace"
        ),
    }


CORPUS_FILES = {
    "weights": "zip/state_dict.pt",
    "training run": "zip/train.pt",
    "training run on a GPU": "devices/legacy_train_cuda_step_cpu.pt",
    "eight devices": "devices/zip_mixed8.pt",
    "capturable": "devices/zip_train_cuda_capturable.pt",
    "no data": "devices/zip_meta.pt",
    "module": "zip/module_custom.pt",
    "module on a GPU": "devices/legacy_module_cuda.pt",
    "dangerous": "hostile/os_system.pt",
    "safetensors": "safetensors/all.safetensors",
    "TorchScript": "torchscript/conv.pt",
    "program": "export/model.pt2",
    "package": "package/pkg.pt",
    "pickle": "plain_pickle/state_p4.pkl",
    "tar": "tar/tar_cpu.pth",
    "shared": "zip/tied.pt",
}


@pytest.mark.wide
def test_what_each_message_has_to_do_with_each_file(golden) -> None:
    files = tied_files()
    first = {message.id: message.text for message in reversed(messages())}
    page = []
    for kind in ERROR_KINDS:
        usual = explain_error(first[kind.id], None, CPU_ONLY).advice
        answers: dict[str, list[str]] = {}
        for name, made in files.items():
            found = explain_error(first[kind.id], made, CPU_ONLY)
            fix = "" if found.fix is None else f"{found.fix.rule}{found.fix.option or ''}{found.fix.style}"
            advice = "" if found.advice == usual else found.advice
            parts = (f"{found.fits}: {found.here}", ", ".join(found.paths[:2]), found.finding, fix, advice)
            answers.setdefault(" | ".join(filter(None, parts)), []).append(name)
        page.append(f"> {kind.id}")
        for said, names in answers.items():
            page += [f"{', '.join(names) if len(answers) > 1 else 'every file'}:", f"  {said}"]
        page.append("")
    golden("error_ties.txt", "\n".join(page))
