"""From state to screen: the parts of a `Screen`, each computed from the state alone."""
