"""A machine as far as loading is concerned: its profile, and the evidence of the probe."""
