"""Holds the packages `caffe` and `caffe2`, which are found only where there are no real ones.

They are in a folder of their own that a `.pth` file puts at the end of the import path: whatever
else is installed under these names comes before it.
"""

__version__ = "0.1.0"
