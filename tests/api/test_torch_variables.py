"""TorchVariables: the weights of a torch.nn.Module as numpy arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from oxiray.experimental import TorchVariables  # noqa: E402

pytestmark = pytest.mark.timeout(300)  # workers import PyTorch themselves


def make_net():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    with torch.no_grad():
        for i, parameter in enumerate(net.parameters()):
            parameter.fill_(i)
    return net


@pytest.fixture
def net():
    return make_net()


def test_names_are_those_of_the_state(net):
    variables = TorchVariables(net)
    assert list(variables.variables) == list(net.state_dict())
    assert list(variables.get_weights()) == list(net.state_dict())
    assert variables.get_weights()["1.num_batches_tracked"].dtype == np.int64


def test_weights_by_name(net):
    variables = TorchVariables(net)
    variables.set_weights({"0.weight": np.arange(6.0).reshape(3, 2), "0.bias": [1, 2, 3]})
    assert net[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert net[0].bias.tolist() == [1, 2, 3]
    assert net[2].bias.tolist() == [5]
    assert net[0].weight.requires_grad and net[0].weight.is_leaf


def test_flat(net):
    variables = TorchVariables(net)
    size = variables.get_flat_size()
    assert size == 6 + 3 + 3 + 3 + 3 + 3 + 1 + 3 + 1
    flat = variables.get_flat()
    assert flat.shape == (size,)
    other = TorchVariables(make_net())
    other.set_flat(flat + 1)
    assert other.get_flat().tolist() == (flat + 1).tolist()
    assert other.get_weights()["1.num_batches_tracked"].dtype == np.int64
    with pytest.raises(AssertionError, match="correct shape"):
        variables.set_flat(flat[1:])


def test_weights_and_the_module_do_not_share_memory(net):
    variables = TorchVariables(net)
    read = variables.get_weights()
    given = {"0.bias": np.zeros(3, np.float32)}
    variables.set_weights(given)
    assert read["0.bias"].tolist() == [1, 1, 1]
    given["0.bias"][:] = 7
    assert net[0].bias.tolist() == [0, 0, 0]


def test_read_only_arrays_without_a_warning(net):
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TorchVariables(net).set_weights({"0.bias": frozen})
    with torch.no_grad():
        net[0].bias.add_(1)
    assert frozen.tolist() == [0, 0, 0]


def test_names_that_do_not_fit(net):
    variables = TorchVariables(net)
    with pytest.raises(AssertionError, match="No variables in the input matched") as caught:
        variables.set_weights({"layer.weight": np.zeros(1)})
    assert "'layer.weight'" in caught.value.__notes__[0]
    assert "'0.weight'" in caught.value.__notes__[0]
    with pytest.warns(UserWarning, match="left out 'nonsense'"):
        variables.set_weights({"0.bias": np.zeros(3), "nonsense": np.zeros(1)})
    assert net[0].bias.tolist() == [0, 0, 0]


def test_a_wrong_shape_changes_nothing(net):
    with pytest.raises(ValueError, match=r"'0.weight' have the shape \(1,\).*\(3, 2\)"):
        TorchVariables(net).set_weights({"0.bias": np.zeros(3), "0.weight": np.zeros(1)})
    assert net[0].bias.tolist() == [1, 1, 1]


def test_types_numpy_does_not_have():
    net = torch.nn.Linear(2, 1, dtype=torch.bfloat16)
    variables = TorchVariables(net)
    variables.set_flat(np.array([0.5, 1.5, 2.5]))
    assert variables.get_flat().tolist() == [0.5, 1.5, 2.5]
    assert net.weight.dtype == torch.bfloat16


def test_variables_follow_the_module(net):
    variables = TorchVariables(net)
    net.double()
    assert variables.get_weights()["0.bias"].dtype == np.float64
    variables.set_weights({"0.bias": np.zeros(3)})
    assert net[0].bias.tolist() == [0, 0, 0]


def test_not_a_module():
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        TorchVariables(torch.zeros(3))


def test_between_actors(driver):
    driver(
        """
import numpy as np
import oxiray as ray

@ray.remote
class Net:
    def __init__(self, seed):
        import torch
        torch.manual_seed(seed)
        self.net = torch.nn.Linear(400, 400)
        self.variables = ray.experimental.TorchVariables(self.net)

    def get_weights(self):
        return self.variables.get_weights()

    def set_weights(self, weights):
        assert not weights["weight"].flags.writeable  # a view of the object store
        self.variables.set_weights(weights)
        return float(self.net.weight.detach().sum())

ray.init(num_cpus=2, logging_level="error")
nets = [Net.remote(seed) for seed in range(2)]
first, second = ray.get([net.get_weights.remote() for net in nets])
assert not np.array_equal(first["weight"], second["weight"])
mean = ray.put({name: (first[name] + second[name]) / 2 for name in first})
sums = ray.get([net.set_weights.remote(mean) for net in nets])
assert sums[0] == sums[1]
np.testing.assert_equal(*ray.get([net.get_weights.remote() for net in nets]))
""",
        timeout=200,
    )
