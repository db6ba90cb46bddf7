"""Messages about the machine: its GPU, driver, builds and processes."""
