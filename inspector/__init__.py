"""Checkpoint Inspector: opens PyTorch checkpoints without executing them, and fixes the devices they name."""

__version__ = "0.1.0"
