"""Charts, but for the map of modules: what they show, and the one widget that shows it."""
