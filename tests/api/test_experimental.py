"""`experimental`: its names come when they are used, under both package names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_alias import installed


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_nothing_heavy_is_imported():
    run(
        "import sys, oxiray\n"
        "from oxiray.experimental import TensorFlowVariables, TorchVariables\n"
        "heavy = {'tensorflow', 'torch', 'numpy', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )


def test_the_old_home_and_the_new():
    run(
        "import oxiray as ray\n"
        "new = ray.experimental.TensorFlowVariables\n"
        "assert ray.experimental.tf_utils.TensorFlowVariables is new\n"
        "assert {'TensorFlowVariables', 'TorchVariables', 'ui'} <= set(dir(ray.experimental))\n"
        "assert not hasattr(ray.experimental, 'no_such_name')"
    )


@pytest.mark.skipif(not installed(), reason="the alias is not installed")
def test_under_the_alias():
    run(
        "import ray.experimental.tf_utils\n"
        "from ray.experimental import TensorFlowVariables\n"
        "import oxiray.experimental.tf_utils as own\n"
        "assert ray.experimental.tf_utils is own\n"
        "assert TensorFlowVariables is own.TensorFlowVariables"
    )


class Fake:
    """As much of a torch.nn.Module as a constructor looks at."""

    def state_dict(self):
        return {}


def test_without_the_libraries(monkeypatch):
    """What needs no library works without; the rest says which one is missing."""
    import oxiray as ray

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert ray.experimental.TorchVariables(Fake()).get_flat_size() == 0
    assert ray.experimental.TensorFlowVariables([]).get_weights() == {}
    with pytest.raises(TypeError, match="pass the model"):
        ray.experimental.TensorFlowVariables(3)
