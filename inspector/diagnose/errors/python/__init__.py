"""Messages of Python about objects, classes, arguments and modules."""
