"""Whether a copy is what was planned: bytes, values, checksums, and torch's own answer."""
