"""What needs torch itself. Runs in child processes only, so that no window waits for an import."""
