"""How bytes are had: copied by the kernel, unpacked, or read whole from small files."""
