"""The model as plain rows: JSON, text, tree rows, bars and facts, ready for whoever shows them."""
