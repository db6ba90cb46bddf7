"""The picture of a file that file managers show in place of its icon.

File managers ask for one for each file of a folder, one process each, without a screen and before anybody has
decided to open it. So it is drawn by plain arithmetic, within tighter bounds than a file that is opened.
"""
