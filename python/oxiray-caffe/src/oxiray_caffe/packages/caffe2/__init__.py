"""Caffe2's Python interface, as far as it holds things: see `caffe2.python`."""
