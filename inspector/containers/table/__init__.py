"""The table of formats: what a row of it says."""
