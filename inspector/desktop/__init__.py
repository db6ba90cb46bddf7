"""The desktop around the program: file types, launcher and default application; and the hand-over of files.

Nothing here imports Qt. A second launch hands its files to the running program through `handover` and ends
before anything heavy is imported; `registration` writes what a Linux desktop wants to know.
"""
