"""The registration with macOS, where the types of an application stand in its bundle.

Untested on real hardware: the tests read the property list, and play the tool that registers a bundle.
"""
