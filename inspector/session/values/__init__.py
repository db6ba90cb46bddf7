"""The values of the selected tensor, and the scan of all: what is asked for, and what is shown."""
