"""Other devices in the same pickle: a patched copy, or the file changed in place."""
