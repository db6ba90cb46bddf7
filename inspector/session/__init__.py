"""The controller: documents, target, map and selection in, one frozen `Screen` out. Knows no widget."""
