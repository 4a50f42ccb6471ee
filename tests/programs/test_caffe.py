"""Caffe's description of nets and Caffe2's named blobs, from the distribution `oxiray-caffe`."""

from __future__ import annotations

import os
import sys

import numpy as np
import oxiray as ray
import pytest

caffe = pytest.importorskip("caffe", reason="needs python/oxiray-caffe: see make test-tf")
from caffe import layers as L  # noqa: E402
from caffe import params as P  # noqa: E402
from caffe.proto import caffe_pb2  # noqa: E402
from caffe2.python import model_helper, workspace  # noqa: E402


def small_net(size=16):
    """A net with layers of most kinds, in the form that is read to run it."""
    n = caffe.NetSpec()
    n.data = L.Input(input_param={"shape": {"dim": [1, 3, size, size]}})
    n.conv = L.Convolution(
        n.data, kernel_size=3, num_output=4, pad=1, weight_filler={"type": "xavier"}
    )
    n.relu = L.ReLU(n.conv, in_place=True)
    n.pool = L.Pooling(n.relu, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.norm = L.LRN(n.pool, local_size=5, alpha=1e-4, beta=0.75)
    n.fc = L.InnerProduct(n.norm, num_output=5)
    n.drop = L.Dropout(n.fc, in_place=True)
    n.prob = L.Softmax(n.drop)
    return n.to_proto()


def weights_of(net, size=16):
    """The same net with numbers in it, as Caffe keeps trained ones."""
    trained = caffe_pb2.NetParameter()
    trained.CopyFrom(net)
    random = np.random.default_rng(7)
    shapes = {"conv": [(4, 3, 3, 3), (4,)], "fc": [(5, 4 * (size // 2) ** 2), (5,)]}
    for layer in trained.layer:
        for shape in shapes.get(layer.name, []):
            values = random.normal(size=shape).astype(np.float32)
            layer.blobs.add(shape={"dim": shape}, data=values.ravel())
    return trained


def test_names_and_order():
    net = small_net()
    assert [layer.name for layer in net.layer] == "data conv relu pool norm fc drop prob".split()
    relu = net.layer[2]
    assert list(relu.bottom) == list(relu.top) == ["conv"], "in place it writes where it reads"
    assert list(net.layer[3].bottom) == ["conv"]
    data, label = L.Data(source="lmdb", backend=P.Data.LMDB, batch_size=4, ntop=2)
    fc = L.InnerProduct(data, num_output=2)
    net = caffe.to_proto(L.SoftmaxWithLoss(fc, label), L.Accuracy(fc, label))
    names = [(layer.name, list(layer.top)) for layer in net.layer]
    assert names == [
        ("Data1", ["Data1", "Data2"]),
        ("InnerProduct1", ["InnerProduct1"]),
        ("SoftmaxWithLoss1", ["SoftmaxWithLoss1"]),
        ("Accuracy1", ["Accuracy1"]),
    ]
    assert net.layer[0].data_param.backend == caffe_pb2.DataParameter.LMDB


def test_fields_have_the_numbers_that_others_read():
    net = caffe_pb2.NetParameter(layer=[{"name": "a", "type": "ReLU"}])
    assert net.SerializeToString() == b"\xa2\x06\x09\x0a\x01a\x12\x04ReLU"
    assert caffe_pb2.NetParameter.FromString(net.SerializeToString()) == net
    assert caffe_pb2.TEST == caffe_pb2.Phase.Value("TEST") == 1
    assert caffe_pb2.ConvolutionParameter().group == 1


def test_a_deep_net():
    top = L.Input()
    for _ in range(5000):
        top = L.ReLU(top)
    assert len(caffe.to_proto(top).layer) == 5001


@pytest.mark.parametrize(
    ("describe", "said"),
    [
        (lambda: L.Convolutoin(), r"no layer 'Convolutoin' \(did you mean 'Convolution'\?\)"),
        (lambda: L.Pooling(L.Input(), kernal_size=3), r"no parameter 'kernal_size' .*kernel_size"),
        (lambda: L.Pooling(L.Input(), pool="BEST"), "Pooling: pool"),
        (lambda: L.Pooling(L.Input(), kernel_size="three"), "Pooling: kernel_size"),
        (lambda: L.Data(transform_param={"crop": 3}), "no part 'crop'.*crop_size"),
        (lambda: L.Data(transform_param=3), "must be a dictionary"),
        (lambda: L.ReLU(L.Data(ntop=2)), "take them apart"),
        (lambda: L.ReLU("data"), "input 0 must be the output of a layer"),
        (lambda: L.Data(ntop=-1), "ntop"),
        (lambda: L.Concat(L.Input(), L.Input(), in_place=True), "in_place"),
        (lambda: P.Pooling.BEST, "no choice 'BEST': it has MAX, AVE"),
        (lambda: P.Swimming.MAX, "no parameters called 'Swimming': there are .*Pooling"),
        (lambda: P.Poling.MAX, "did you mean 'Pooling'"),
        (lambda: caffe.NetSpec().fc, "no output 'fc'"),
        (lambda: caffe.NetSpec().__delattr__("fc"), "no output 'fc': it has none"),
        (lambda: caffe.Net("net.prototxt"), "does not run"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(describe, said):
    kinds = (AttributeError, ValueError, TypeError, NotImplementedError)
    with pytest.raises(kinds, match=said):
        describe()


@ray.remote
class Reader:
    """Runs a net with a reader of Caffe's files that is not ours."""

    def __init__(self, text, trained):
        import cv2

        self.net = cv2.dnn.readNetFromCaffe(
            np.frombuffer(text, np.uint8), np.frombuffer(trained, np.uint8)
        )

    def forward(self, picture):
        self.net.setInput(picture)
        return self.net.forward()


def expected(trained, picture):
    """The same by plain numpy."""
    (kernel, bias), (matrix, offset) = (
        [np.array(blob.data, np.float32).reshape(blob.shape.dim) for blob in layer.blobs]
        for layer in trained.layer
        if layer.blobs
    )
    padded = np.pad(picture[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    x = np.maximum(np.einsum("cyxij,ocij->oyx", windows, kernel) + bias[:, None, None], 0)
    x = x.reshape(4, 8, 2, 8, 2).max(axis=(2, 4))
    squares = np.stack([(x[max(0, c - 2) : c + 3] ** 2).sum(axis=0) for c in range(4)])
    x = x / (1 + 1e-4 / 5 * squares) ** 0.75
    x = matrix @ x.ravel() + offset
    x = np.exp(x - x.max())
    return x / x.sum()


def test_another_reader_of_caffes_files_runs_the_net_in_an_actor(cluster):
    if not os.environ.get("CI"):
        pytest.importorskip("cv2")
    net = small_net()
    trained = weights_of(net)
    picture = np.random.default_rng(1).random((1, 3, 16, 16), np.float32)
    reader = Reader.remote(str(net).encode(), trained.SerializeToString())
    result = ray.get(reader.forward.remote(picture), timeout=60)
    np.testing.assert_allclose(result.ravel(), expected(trained, picture), rtol=1e-3, atol=1e-6)


@ray.remote
def twice(name):
    workspace.FeedBlob(f"{name}2", workspace.FetchBlob(name) * 2)


def test_blobs_are_seen_by_all_and_read_without_copying(fresh):
    fresh()
    large = np.arange(1 << 20, dtype=np.float64)
    assert workspace.FeedBlob("x", large)
    ray.get(twice.remote("x"))
    np.testing.assert_array_equal(workspace.FetchBlob("x2"), large * 2)
    one, other = workspace.FetchBlobs(["x", "x"])
    assert np.shares_memory(one, other) and not one.flags.writeable
    workspace.FeedBlob("word", "hello")
    assert workspace.FetchBlob("word") == "hello"
    assert workspace.Blobs() == ["word", "x", "x2"] and workspace.HasBlob("x")
    workspace.SwitchWorkspace("other", create_if_missing=True)
    try:
        assert workspace.CurrentWorkspace() == "other" and workspace.Blobs() == []
        assert workspace.Workspaces() == ["default", "other"]
    finally:
        workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()
    assert workspace.Blobs() == []
    ray.shutdown()
    fresh()
    assert workspace.Blobs() == [], "they went with their session"


def test_what_is_not_there_is_said(fresh):
    fresh()
    workspace.FeedBlob("x", [1, 2])
    with pytest.raises(KeyError, match=r"no blob 'y' .*: it has x"):
        workspace.FetchBlob("y")
    with pytest.raises(KeyError, match="no workspace 'z'"):
        workspace.SwitchWorkspace("z")
    with pytest.raises(TypeError, match="string"):
        workspace.FeedBlob(5, [1])
    workspace.CreateBlob("empty")
    with pytest.raises(ValueError, match="nothing was fed"):
        workspace.FetchBlob("empty")
    with pytest.raises(NotImplementedError, match="does not run"):
        workspace.RunNet("net")


def test_models_hold_names_parameters_and_operators():
    model = model_helper.ModelHelper(name="net")
    weight = model.AddParameter("w")
    out = model.net.FC(["x", weight, "b"], "y")
    assert str(out) == "y" and model.name == "net" and model.GetParams() == [weight]
    assert [(op.type, op.input, op.output) for op in model.Proto().op] == [
        ("FC", ["x", "w", "b"], ["y"])
    ]
    assert model_helper.ModelHelper().name != model_helper.ModelHelper().name
    with pytest.raises(AttributeError, match=r"it has name, .*params"):
        model.weights  # noqa: B018
    for run in (lambda: model.run(), lambda: model.net.Run(), lambda: model.net.RunAllOnGPU()):
        with pytest.raises(NotImplementedError, match="does not run them"):
            run()
    assert len(model.net.op) == 1, "nothing was added by asking"


def test_a_real_one_goes_first(tmp_path, driver):
    (tmp_path / "caffe.py").write_text("real = True")
    done = driver("import caffe; print(caffe.real)", env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout.strip() == "True"
    assert sys.path.index(os.path.dirname(os.path.dirname(caffe.__file__))) > 0
