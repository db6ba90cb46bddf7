"""The model as plain rows: JSON, text, tree rows, charts and facts, ready to be shown."""
