"""Values of options that are mistyped: each names the word, and the one that was meant."""

from __future__ import annotations

from inspector.resources import demo_path

DEMO = demo_path()
REMAP = ("remap", DEMO, "-o", "never.pth")
MEANT = {
    (*REMAP, "--target", "cdua"): "unknown target 'cdua' (did you mean cuda? this, cpu,",
    (*REMAP, "--target", "2cuda"): "unknown target '2cuda' (did you mean 2xcuda? this,",
    (*REMAP, "--target", "2xcdua"): "unknown target '2xcdua' (did you mean 2xcuda? this,",
    (*REMAP, "--target", "cuda@24gx"): "unknown target 'cuda@24gx' (this,",
    (*REMAP, "--target", "2xcuda@24gx"): "unknown target '2xcuda@24gx' (this,",
    (*REMAP, "--target", "@"): "unknown target '@' (this,",
    (*REMAP, "--target", "moon"): "unknown target 'moon' (this,",
    (*REMAP, "--map", "cuda:1=cup"): "'cup' is not a device to map to (did you mean cpu? use",
    (*REMAP, "--map", "cuda:1=cdua:0"): "'cdua:0' is not a device to map to (did you mean cuda:0? use",
    (*REMAP, "--map", "cuda:1=meta"): "'meta' is not a device to map to (use",
    (*REMAP, "--map", "cudo=cpu"): "nothing in the file is on 'cudo': cudo=cpu (did you mean cuda:*=cpu?",
    (*REMAP, "--map", "cpx=cuda:0"): "(did you mean cpu=cuda:0?",
    (*REMAP, "--map", "moon=cpu"): "moon=cpu (the file has cuda:0, cuda:1, cpu;",
    (*REMAP, "--map", "role:paramter@cpu"): "there is no role 'paramter' (did you mean parameter? name",
    (*REMAP, "--map", "dtype:flaot32@cpu"): "there is no dtype 'flaot32' (did you mean float32? name",
    (*REMAP, "--map", "dtype:int64x@cpu"): "(did you mean int64? name",
    (*REMAP, "--map", "path:modle/**@cpu"): "path:modle/**@cpu (did you mean path:model/**@cpu? see",
    (*REMAP, "--map", "path:model/nothing@cpu"): "path:model/nothing@cpu (see what",
    (*REMAP, "--map", "role:scheduler@cpu"): "no tensor of the file has this role: role:scheduler@cpu (see",
    (*REMAP, "--exclude", "optimzer"): "matches the pattern: optimzer (did you mean optimizer? list",
    (*REMAP, "--exclude", "modle/head.*"): "modle/head.* (did you mean model/head.*? list",
    (*REMAP, "--exclude", "model/hed.*"): "matches the pattern: model/hed.* (list",
    (*REMAP, "--only", "weight"): "argument --only: there is no 'weight' (did you mean weights? it can be",
    (*REMAP, "--format", "safetensor"): "there is no 'safetensor' (did you mean safetensors? it can be same,",
    ("show", DEMO, "--filter", "role:paramter"): "There is no role paramter; roles are parameter, buffer,",
    ("show", DEMO, "--filter", "role:xyz"): "There is no role xyz; roles are parameter, buffer, optimizer,",
    ("snippet", DEMO, "--style", "resme"): "there is no style 'resme' (did you mean resume? styles are",
    ("target", "--target", "mos"): "(did you mean mps? this, cpu,",
    ("run", "--map", "*=cup", "--", "true"): "'cup' is not a device to map to (did you mean cpu?",
    ("remap", DEMO, "-o", "x.pt", "--format", "safetensors"): "for safetensors: x.pt (name it x.safetensors)",
    ("remap", DEMO, "-o", "x.safetensors", "--format", "same"): "x.safetensors (name it x.pth)",
    ("recover", DEMO, "-o", "x.safetensors"): "for torch.load: x.safetensors (name it x.pth)",
}  # fmt: skip


def test_each_mistyped_value_is_wrong_usage_and_names_the_nearest(cli) -> None:
    wrong = []
    for words, said in MEANT.items():
        answer = cli(*words)
        if (answer.code, answer.out, answer.err.count("\n")) != (2, "", 1) or said not in answer.err:
            wrong.append((words, answer))
    assert wrong == []
