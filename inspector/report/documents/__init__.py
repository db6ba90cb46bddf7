"""Documents of `--json` about what was done with a file, as the command line's contract fixes them."""
