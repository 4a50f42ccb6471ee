"""Caffe's messages."""

from __future__ import annotations

from . import caffe_pb2

__all__ = ["caffe_pb2"]
