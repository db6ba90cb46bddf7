"""The registration with Windows: keys below `HKEY_CURRENT_USER`, so that nobody needs to be an administrator.

Untested on real hardware: the tests play the registry.
"""
