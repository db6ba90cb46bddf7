"""The desktop around the program: file types, launcher and default application; and the hand-over of files.

Nothing here imports Qt. A second launch hands its files to the running program through `handover` and ends
before anything heavy is imported. Another desktop is a folder as `freedesktop`, and a line in `registration`.
"""

PROGRAM = "checkpoint-inspector"
"""The program's name in files and folders of the desktop."""
