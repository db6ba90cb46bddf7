"""torch's own containers, written byte for byte as torch lays them out."""
