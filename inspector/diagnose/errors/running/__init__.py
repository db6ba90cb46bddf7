"""Messages after the load: moving, running, training and saving a model."""
