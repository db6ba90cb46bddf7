"""Warnings that stand beside an error, or are taken for one: most change nothing."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import ErrorKind

NOTICE_ERRORS: tuple[ErrorKind, ...] = (
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
