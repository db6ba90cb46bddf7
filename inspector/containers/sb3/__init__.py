"""The zip that Stable-Baselines3 saves an agent as."""
