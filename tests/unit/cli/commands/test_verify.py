from __future__ import annotations

import shutil
from pathlib import Path

from inspector.cli.commands.verify import original_of
from inspector.resources import demo_path
from tests.unit.remap.samples import CUDA_0, mapping, stream, tensor, text, written, zip_of

DEMO = demo_path()


def test_devices_outside_of_tensors_are_described_changed_and_compared(cli, tmp_path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cuda:0")))), {"0": bytes(16)}))
    line = "torch.device cuda:0 stays: 1 place outside of tensors. It changes only with --hidden-devices.\n"
    assert cli("remap", path, "--dry-run").out.endswith(line)
    chosen = cli("remap", path, "--dry-run", "--hidden-devices")
    assert chosen.out.endswith("torch.device cuda:0 -> cpu: 1 place outside of tensors.\n")
    out = tmp_path / "out.pth"
    done = cli("remap", path, "-o", out, "--hidden-devices")
    assert "1 tensor relabeled; 1 device outside of tensors changed; " in done.out
    assert cli("verify", out, "--against", path, "--map", "*=cpu", "--hidden-devices").code == 0
    assert cli("verify", out, "--against", path, "--map", "*=cpu").code == 1
    assert cli("verify", out, "--against", path).code == 0


def test_one_byte_is_enough_to_fail(cli, tmp_path) -> None:
    path = Path(shutil.copy(DEMO, tmp_path / "broken.pth"))
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    answer = cli("verify", path, "--against", DEMO)
    assert answer.code == 1
    assert "differ" in answer.out


def test_the_original_is_the_file_of_the_same_name_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.pth").touch()
    for name, files in {"runs": ["a.pth"], "sharded": ["a.pth", ".metadata"]}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    corpus = Path(__file__).parents[3] / "data" / "corpus" / "dcp" / "plain"
    part = next(path.name for path in corpus.iterdir() if path.suffix == ".distcp")
    got = {
        (copy, against): original_of(copy, str(against))
        for copy, against in (
            ("out/a.pth", tmp_path / "runs"),
            ("out/b.pth", tmp_path / "runs"),  # no such file: the error names the folder
            ("out/a.pth", tmp_path / "a.pth"),
            (f"out/{part}", corpus),  # a checkpoint itself
        )
    }
    assert list(got.values()) == [
        str(tmp_path / "runs" / "a.pth"),
        str(tmp_path / "runs"),
        str(tmp_path / "a.pth"),
        str(corpus),
    ]
