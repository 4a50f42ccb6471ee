"""TensorFlowVariables: graphs, eager variables, and TensorFlow 1 programs in workers.

`make test-tf` runs these in an environment that has TensorFlow.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from test_alias import installed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

from oxiray.experimental import TensorFlowVariables  # noqa: E402

tf1 = tf.compat.v1
# A worker imports TensorFlow itself: seconds, and more where several do at once.
pytestmark = pytest.mark.timeout(300)
TWO_NETWORKS = (
    "No variables in the input matched those in the network. Possible cause: Two networks were "
    "defined in the same TensorFlow graph. To fix this, place each network definition in its own "
    "tf.Graph."
)


class Line:
    """y = w x + b in the graph that is the default."""

    def __init__(self, *, use_resource=True, session=True):
        with tf1.variable_scope(None, default_name="line", use_resource=use_resource):
            self.w = tf1.Variable([[1.0, 2.0], [3.0, 4.0]], name="w", use_resource=use_resource)
            self.b = tf1.Variable([5.0, 6.0], name="b", use_resource=use_resource)
            self.unused = tf1.Variable([7.0], name="unused", use_resource=use_resource)
        x = tf1.placeholder(tf.float32, [None, 2])
        self.loss = tf1.reduce_sum(tf1.matmul(x, self.w) + self.b)
        self.train = tf1.train.GradientDescentOptimizer(1.0).minimize(
            tf1.reduce_sum(self.w) + tf1.reduce_sum(self.b)
        )
        self.sess = tf1.Session() if session else None
        self.variables = TensorFlowVariables(self.loss, self.sess)
        if session:
            self.sess.run(tf1.global_variables_initializer())


@pytest.fixture(params=[True, False], ids=["resource", "ref"])
def line(request):
    with tf.Graph().as_default():
        line = Line(use_resource=request.param)
        yield line
        line.sess.close()


def test_variables_are_those_the_output_depends_on(line):
    assert list(line.variables.variables) == ["line/w", "line/b"]
    assert list(line.variables.placeholders) == ["line/w", "line/b"]
    assert list(line.variables.assignment_nodes) == ["line/w", "line/b"]
    assert line.variables.variables["line/w"] is line.w


def test_weights_by_name(line):
    weights = line.variables.get_weights()
    assert {name: value.tolist() for name, value in weights.items()} == {
        "line/w": [[1, 2], [3, 4]],
        "line/b": [5, 6],
    }
    line.variables.set_weights({name: 2 * value for name, value in weights.items()})
    assert line.sess.run(line.w).tolist() == [[2, 4], [6, 8]]
    assert line.sess.run(line.b).tolist() == [10, 12]


def test_some_of_the_weights(line):
    line.variables.set_weights({"line/b": np.zeros(2)})
    assert line.variables.get_flat().tolist() == [1, 2, 3, 4, 0, 0]


def test_flat(line):
    assert line.variables.get_flat_size() == 6
    assert line.variables.get_flat().tolist() == [1, 2, 3, 4, 5, 6]
    line.variables.set_flat(np.arange(6))
    assert line.variables.get_weights()["line/w"].tolist() == [[0, 1], [2, 3]]
    assert line.variables.get_flat().dtype == np.float32


@pytest.mark.parametrize("length", [0, 5, 7])
def test_flat_of_another_length(line, length):
    with pytest.raises(AssertionError, match="does not have the correct shape") as caught:
        line.variables.set_flat(np.zeros(length))
    assert f"{length} elements" in caught.value.__notes__[0]
    assert line.variables.get_flat().tolist() == [1, 2, 3, 4, 5, 6]


def test_setting_weights_does_not_grow_the_graph(line):
    before = len(line.w.graph.get_operations())
    for _ in range(3):
        line.variables.set_weights(line.variables.get_weights())
        line.variables.set_flat(line.variables.get_flat())
    assert len(line.w.graph.get_operations()) == before


def test_weights_and_the_network_do_not_share_memory(line):
    mine = np.zeros(2, dtype=np.float32)
    line.variables.set_weights({"line/b": mine})
    mine[:] = 99
    read = line.variables.get_weights()
    assert read["line/b"].tolist() == [0, 0]
    line.sess.run(line.train)
    assert read["line/b"].tolist() == [0, 0]
    assert line.sess.run(line.b).tolist() == [-1, -1]


def test_read_only_weights_can_be_trained(line):
    frozen = np.zeros(2, dtype=np.float32)
    frozen.flags.writeable = False
    line.variables.set_weights({"line/b": frozen})
    line.sess.run(line.train)
    assert line.sess.run(line.b).tolist() == [-1, -1]
    assert frozen.tolist() == [0, 0]


def test_two_networks_in_one_graph():
    with tf.Graph().as_default():
        a, b = Line(), Line()
        with pytest.raises(AssertionError) as caught:
            b.variables.set_weights(a.variables.get_weights())
        assert str(caught.value) == TWO_NETWORKS
        assert "'line/w'" in caught.value.__notes__[0] and "'line_1/w'" in caught.value.__notes__[0]
        b.variables.set_flat(a.variables.get_flat() * 2)
        assert b.variables.get_flat().tolist() == [2, 4, 6, 8, 10, 12]


def test_two_networks_in_a_graph_each():
    with tf.Graph().as_default():
        a = Line()
    with tf.Graph().as_default():
        b = Line()
    a.variables.set_flat(np.arange(6))
    b.variables.set_weights(a.variables.get_weights())  # outside of both graphs
    assert b.variables.get_flat().tolist() == [0, 1, 2, 3, 4, 5]


def test_names_beside_known_ones_are_left_out_and_named(line):
    with pytest.warns(UserWarning, match="left out 'line/c'"):
        line.variables.set_weights({"line/b": [0, 0], "line/c": [1]})
    assert line.variables.get_flat().tolist() == [1, 2, 3, 4, 0, 0]


def test_no_names_at_all(line):
    with pytest.raises(AssertionError, match="No variables in the input matched"):
        line.variables.set_weights({})


def test_without_a_session():
    with tf.Graph().as_default():
        line = Line(session=False)
        for use in (
            line.variables.get_weights,
            line.variables.get_flat,
            lambda: line.variables.set_flat(np.zeros(6)),
            lambda: line.variables.set_weights({"line/b": [0, 0]}),
        ):
            with pytest.raises(AssertionError, match=r"session is not set.*set_session\(sess\)"):
                use()
        assert line.variables.get_flat_size() == 6
        with tf1.Session() as sess:
            sess.run(tf1.global_variables_initializer())
            line.variables.set_session(sess)
            assert line.variables.sess is sess
            assert line.variables.get_flat().tolist() == [1, 2, 3, 4, 5, 6]


def test_input_variables():
    with tf.Graph().as_default(), tf1.Session() as sess:
        line = Line(session=False)
        variables = TensorFlowVariables(line.loss, sess, input_variables=[line.unused, line.b])
        assert list(variables.variables) == ["line/w", "line/b", "line/unused"]
        only = TensorFlowVariables([], sess, [line.unused])
        sess.run(tf1.global_variables_initializer())
        assert only.get_flat().tolist() == [7]


def test_several_outputs_operations_and_none():
    with tf.Graph().as_default(), tf1.Session() as sess:
        a, b, c = (tf1.Variable(float(i), name="abc"[i]) for i in range(3))
        with pytest.raises(TypeError, match="NoneType"):
            TensorFlowVariables(None)
        variables = TensorFlowVariables([(a + 1).op, None, b * 2], sess)
        sess.run(tf1.global_variables_initializer())
        assert list(variables.variables) == ["a", "b"]
        assert variables.get_flat().tolist() == [0, 1]
        assert variables.get_flat_size() == 2
        assert c.op.name == "c"


def test_control_dependencies_and_loops():
    with tf.Graph().as_default(), tf1.Session() as sess:
        before, inside = tf1.Variable(1.0, name="before"), tf1.Variable(2.0, name="inside")
        with tf1.control_dependencies([before.assign_add(1.0)]):
            start = tf1.constant(0.0)
        result = tf1.while_loop(lambda x: x < 10, lambda x: x + inside, [start])
        variables = TensorFlowVariables(result, sess)
        assert list(variables.variables) == ["before", "inside"]


def test_scopes_that_are_open_do_not_matter():
    with tf.Graph().as_default(), tf1.Session() as sess:
        a = tf1.Variable(1.0, name="a")
        fed = tf1.placeholder(tf.float32, [])
        with tf1.name_scope("open"), tf1.control_dependencies([fed]):
            variables = TensorFlowVariables(a * 2, sess)
        sess.run(tf1.global_variables_initializer())
        variables.set_weights({"a": 3.0})  # would ask for `fed`, did it depend on it
        assert variables.get_weights()["a"] == 3.0


def test_types_are_kept():
    with tf.Graph().as_default(), tf1.Session() as sess:
        count = tf1.Variable(3, name="count")
        share = tf1.Variable([0.5], name="share", dtype=tf.float64)
        variables = TensorFlowVariables(tf1.cast(count, tf.float64) * share, sess)
        sess.run(tf1.global_variables_initializer())
        variables.set_flat(variables.get_flat() + 1)
        weights = variables.get_weights()
        assert weights["count"].dtype == np.int32 and weights["count"] == 4
        assert weights["share"].dtype == np.float64 and weights["share"].tolist() == [1.5]


def test_a_finished_graph():
    with tf.Graph().as_default() as graph:
        a = tf1.Variable(1.0)
        graph.finalize()
        with pytest.raises(RuntimeError, match="finalized"):
            TensorFlowVariables(a)


def test_without_variables():
    with tf.Graph().as_default(), tf1.Session() as sess:
        variables = TensorFlowVariables(tf1.constant(1.0) + 1, sess)
        assert variables.get_weights() == {} and variables.get_flat_size() == 0
        assert variables.get_flat().tolist() == []


def make_model(units=2):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((3,)),
            tf.keras.layers.Dense(units, name="hidden"),
            tf.keras.layers.Dropout(0.5),
            tf.keras.layers.Dense(1, name="out"),
        ],
        name="net",
    )
    model.set_weights([np.full(w.shape, i, np.float32) for i, w in enumerate(model.weights)])
    return model


def test_keras():
    variables = TensorFlowVariables(make_model())
    names = list(variables.variables)
    assert [name.split("/", 1)[-1].rsplit("/")[-1] for name in names] == ["kernel", "bias"] * 2
    assert variables.get_flat_size() == 6 + 2 + 2 + 1
    assert variables.get_flat().tolist() == [0] * 6 + [1] * 2 + [2] * 2 + [3]
    variables.set_weights({names[-1]: np.array([9.0])})
    assert variables.get_flat()[-1] == 9
    other = TensorFlowVariables(make_model())
    assert list(other.variables) == names
    other.set_weights(variables.get_weights())
    assert other.get_flat().tolist() == variables.get_flat().tolist()


def test_keras_after_training():
    model = make_model()
    model.compile(optimizer="sgd", loss="mse")
    variables = TensorFlowVariables(model)
    before = variables.get_weights()
    copy = {name: value.copy() for name, value in before.items()}
    model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    np.testing.assert_equal(before, copy)
    assert not np.array_equal(
        variables.get_flat(), np.concatenate([v.ravel() for v in copy.values()])
    )


def test_keras_without_weights_yet():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="no weights yet"):
        TensorFlowVariables(model)


def test_eager_variables_of_one_name():
    variables = TensorFlowVariables([tf.Variable(1.0), tf.Variable([2.0, 3.0])])
    assert list(variables.variables) == ["Variable", "Variable_1"]
    variables.set_flat([4.0, 5.0, 6.0])
    assert variables.get_weights()["Variable_1"].tolist() == [5, 6]


def test_module():
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = tf.Variable([1.0], name="mine")  # a name that Keras uses, too
            self.bias = tf.Variable(2.0, name="bias")

    assert sorted(TensorFlowVariables(Module()).get_weights()) == ["bias", "mine"]


def test_eager_names_that_do_not_fit():
    with pytest.raises(AssertionError) as caught:
        TensorFlowVariables(tf.Variable(1.0, name="a")).set_weights({"b": 1.0})
    assert str(caught.value) == TWO_NETWORKS


def test_an_eager_tensor_does_not_know_its_variables():
    with pytest.raises(TypeError, match="pass the model"):
        TensorFlowVariables(tf.Variable(1.0) * 2)


TF1_PROGRAM = """
import numpy as np
import oxiray as ray
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()

class Line(object):
    def __init__(self, x, y):
        tf.set_random_seed(0)
        assert not tf.executing_eagerly() and not tf.resource_variables_enabled()
        x, y = tf.constant(x, dtype=tf.float32), tf.constant(y, dtype=tf.float32)
        w = tf.Variable(tf.random_uniform([1], -1.0, 1.0))
        b = tf.Variable(tf.zeros([1]))
        loss = tf.reduce_mean(tf.square(w * x + b - y))
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        self.gradients = optimizer.compute_gradients(loss)
        self.train = optimizer.apply_gradients(self.gradients)
        self.sess = tf.Session()
        self.variables = ray.experimental.TensorFlowVariables(loss, self.sess)
        self.sess.run(tf.global_variables_initializer())

    def get_weights(self):
        return self.variables.get_weights()

    def step(self, weights):
        self.variables.set_weights(weights)
        self.sess.run(self.train)
        return self.variables.get_weights()

    def slope(self, weights):
        self.variables.set_weights(weights)
        return self.sess.run([gradient for gradient, _ in self.gradients])

@ray.remote
def has_imported(name):
    import sys
    return name in sys.modules

@ray.remote(num_return_vals=2)
def data(seed):
    x = np.random.RandomState(seed).rand(100)
    return x, 0.1 * x + 0.3

def near(weights):
    return abs(weights["Variable"][0] - 0.1) < 0.02 and abs(weights["Variable_1"][0] - 0.3) < 0.02

ray.init(num_cpus=2, logging_level="error")
assert not ray.get(has_imported.remote("tensorflow"))
"""


def test_weights_averaged_between_actors(driver):
    result = driver(
        TF1_PROGRAM
        + """
actors = [ray.remote(Line).remote(*data.remote(seed)) for seed in range(2)]
weights = ray.get(actors[0].get_weights.remote())
assert sorted(weights) == ["Variable", "Variable_1"]
for _ in range(120):
    ref = ray.put(weights)
    both = ray.get([actor.step.remote(ref) for actor in actors])
    weights = {name: sum(each[name] for each in both) / 2 for name in both[0]}
assert near(weights), weights
""",
        timeout=200,
    )
    assert "non-resource" not in result.stdout, "a worker repeats the driver's warning"


def test_gradients_of_actors_applied_here(driver):
    """As users wrote it: `import ray`."""
    if not installed():
        pytest.skip("the alias is not installed")
    driver(
        TF1_PROGRAM.replace("import oxiray as ray", "import ray")
        + """
actors = [ray.remote(Line).remote(*data.remote(seed)) for seed in range(2)]
here = Line(*ray.get(list(data.remote(2))))
weights = here.get_weights()
for _ in range(120):
    ref = ray.put(weights)
    slopes = ray.get([actor.slope.remote(ref) for actor in actors])
    feeds = {pair[0]: sum(s[i] for s in slopes) / 2 for i, pair in enumerate(here.gradients)}
    here.sess.run(here.train, feed_dict=feeds)
    weights = here.get_weights()
assert near(weights), weights
""",
        timeout=200,
    )


def test_a_net_for_digits_as_an_actor(driver):
    """A graph and a session in an actor; the data go there by value, as instances of a class."""
    pytest.importorskip("sklearn")
    driver(
        """
import numpy as np
import oxiray as ray
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits
tf.disable_v2_behavior()

class Digits:
    def __init__(self, images, labels):
        self.images, self.labels, self.at = images, labels, 0

    def next_batch(self, n):
        rows = np.arange(self.at, self.at + n) % len(self.images)
        self.at += n
        return self.images[rows], self.labels[rows]

def build():
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.float32, [None, 10])
    start = tf.glorot_uniform_initializer(seed=0)
    filters = tf.get_variable("filters", (3, 3, 1, 8), initializer=start)
    w = tf.get_variable("w", (8 * 4 * 4, 10), initializer=start)
    b = tf.get_variable("b", 10, initializer=tf.zeros_initializer())
    out = tf.nn.conv2d(tf.reshape(x, [-1, 8, 8, 1]), filters, strides=[1, 1, 1, 1], padding="SAME")
    out = tf.nn.avg_pool(tf.nn.relu(out), [1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    out = tf.matmul(tf.reshape(out, [-1, 8 * 4 * 4]), w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=out))
    right = tf.equal(tf.argmax(out, 1), tf.argmax(y, 1))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return x, y, train, tf.reduce_mean(tf.cast(right, tf.float32)), loss

@ray.remote
class Model(object):
    def __init__(self, train, test):
        self.train_data, self.test_data = train, test
        with tf.Graph().as_default():
            self.x, self.y, self.step, self.share, loss = build()
            self.sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
            self.variables = ray.experimental.TensorFlowVariables(loss, self.sess)
            self.sess.run(tf.global_variables_initializer())

    def train(self, steps):
        for _ in range(steps):
            images, labels = self.train_data.next_batch(100)
            self.sess.run(self.step, feed_dict={self.x: images, self.y: labels})

    def accuracy(self):
        data = {self.x: self.test_data.images, self.y: self.test_data.labels}
        return self.sess.run(self.share, feed_dict=data), sorted(self.variables.variables)

ray.init(num_cpus=2, num_gpus=1, logging_level="error")
digits = load_digits()
order = np.random.RandomState(0).permutation(len(digits.data))
images, labels = digits.data[order] / 16, np.eye(10)[digits.target[order]]
model = Model.remote(Digits(images[:1500], labels[:1500]), Digits(images[1500:], labels[1500:]))
model.train.remote(200)
share, names = ray.get(model.accuracy.remote())
assert share > 0.8, share
assert names == ["b", "filters", "w"]
""",
        timeout=200,
    )


def test_large_weights_from_the_object_store(driver):
    """What set_weights() gets is a read-only view of shared memory; training must not write it."""
    driver(
        """
import numpy as np
import oxiray as ray

@ray.remote
class Net:
    def __init__(self):
        import tensorflow as tf
        self.tf = tf
        self.v = tf.Variable(np.zeros((1000, 1000), np.float32), name="v")
        self.variables = ray.experimental.TensorFlowVariables(self.v)
        with tf.Graph().as_default():
            w = tf.compat.v1.Variable(np.zeros((1000, 1000), np.float32), name="w")
            self.step = w.assign_sub(np.ones((1000, 1000), np.float32))
            self.sess = tf.compat.v1.Session()
            self.graph_variables = ray.experimental.TensorFlowVariables(w, self.sess)

    def train(self, weights):
        assert not weights["v"].flags.writeable
        self.variables.set_weights({"v": weights["v"]})
        self.graph_variables.set_weights({"w": weights["v"]})
        self.v.assign_sub(np.ones((1000, 1000), np.float32))
        self.sess.run(self.step.op)
        return self.variables.get_weights()["v"], self.graph_variables.get_weights()["w"]

ray.init(num_cpus=2, logging_level="error")
ref = ray.put({"v": np.full((1000, 1000), 3, np.float32)})
v, w = ray.get(Net.remote().train.remote(ref))
assert (v == 2).all() and (w == 2).all() and (ray.get(ref)["v"] == 3).all()
""",
        timeout=200,
    )


def test_graph_mode_with_the_rest_of_tensorflow_2(driver):
    driver(
        """
import oxiray as ray
import tensorflow as tf
tf.compat.v1.disable_eager_execution()

@ray.remote
def mode():
    v1 = tf.compat.v1
    return tf.executing_eagerly(), v1.control_flow_v2_enabled(), v1.resource_variables_enabled()

ray.init(num_cpus=2, logging_level="error")
assert ray.get(mode.remote()) == (False, True, True)
""",
        timeout=200,
    )


def test_eager_stays_eager_within_a_graph(driver):
    driver(
        """
import oxiray as ray
import tensorflow as tf

@ray.remote
def mode():
    return tf.executing_eagerly()

ray.init(num_cpus=2, logging_level="error")
with tf.Graph().as_default():
    assert not tf.executing_eagerly()
    assert ray.get(mode.remote())
""",
        timeout=200,
    )
