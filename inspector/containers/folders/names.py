"""The classes that files of frameworks name, and that hold nothing but data."""

from __future__ import annotations

MEGATRON_NAMES = frozenset(
    {
        "argparse.Namespace",
        "megatron.core.enums.ModelType",
        "megatron.core.transformer.enums.AttnBackend",
        "megatron.core.transformer.enums.AttnMaskType",
        "megatron.core.rerun_state_machine.RerunDiagnostic",
        "megatron.core.rerun_state_machine.RerunMode",
        "megatron.core.rerun_state_machine.RerunState",
    }
)
"""Those of Megatron-LM: its arguments, and enumerations among them."""
