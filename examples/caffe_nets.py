"""Nets described in Caffe's way in tasks, and run by OpenCV in actors (oxiray-caffe, OpenCV)."""

import cv2
import numpy as np
import oxiray as ray
from caffe import NetSpec
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2

SIDE = 32


@ray.remote
def describe(width):
    """A small net with filters of this width, and the same with numbers in it."""
    n = NetSpec()
    n.data = L.Input(input_param={"shape": {"dim": [1, 1, SIDE, SIDE]}})
    n.blur = L.Convolution(n.data, kernel_size=width, num_output=1, pad=width // 2)
    n.pool = L.Pooling(n.blur, pool=P.Pooling.AVE, global_pooling=True)
    net = n.to_proto()
    trained = caffe_pb2.NetParameter()
    trained.CopyFrom(net)
    blur = trained.layer[1]
    blur.blobs.add(shape={"dim": [1, 1, width, width]}, data=[1 / width**2] * width**2)
    blur.blobs.add(shape={"dim": [1]}, data=[0])
    return str(net), trained.SerializeToString()


@ray.remote
class Reader:
    def __init__(self, described):
        text, trained = described
        as_bytes = np.frombuffer(text.encode(), np.uint8), np.frombuffer(trained, np.uint8)
        self.net = cv2.dnn.readNetFromCaffe(*as_bytes)

    def mean(self, picture):
        self.net.setInput(picture)
        return float(self.net.forward().ravel()[0])


if __name__ == "__main__":
    ray.init()
    # One bright dot in the middle: a blur spreads it and keeps its sum.
    picture = np.zeros((1, 1, SIDE, SIDE), np.float32)
    picture[0, 0, SIDE // 2, SIDE // 2] = SIDE * SIDE
    readers = [Reader.remote(describe.remote(width)) for width in (3, 5, 7)]
    means = ray.get([reader.mean.remote(ray.put(picture)) for reader in readers])
    print("means after three blurs:", " ".join(f"{mean:.3f}" for mean in means))
