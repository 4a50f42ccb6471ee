"""The small names of `ray.util`, and those that packages reach for beside it."""

from __future__ import annotations

import pickle
import socket
import warnings

import oxiray as ray
import pytest
from oxiray.util import as_completed, helpers, map_unordered
from oxiray.util.annotations import Deprecated, DeveloperAPI, PublicAPI, RayDeprecationWarning


@ray.remote
def same(x):
    return x


@ray.remote
def held(gate, x):
    gate.wait()
    return x


def test_as_completed(cluster, gate):
    late = held.remote(gate, "late")
    results = as_completed([late, *(same.remote(i) for i in range(5))], chunk_size=1)
    assert sorted(next(results) for _ in range(5)) == [0, 1, 2, 3, 4]
    gate.open()
    assert list(results) == ["late"]
    refs = [same.remote(i) for i in range(3)]
    assert set(as_completed(refs, yield_obj_refs=True)) == set(refs)
    assert list(as_completed([])) == []


def test_map_unordered_has_few_under_way(cluster):
    taken = []

    def items():
        for i in range(40):
            taken.append(i)
            yield i

    results = map_unordered(same, items(), backpressure_size=4, chunk_size=1)
    next(results)
    assert len(taken) <= 5
    assert len(list(results)) == 39
    assert sorted(map_unordered(same, range(25), backpressure_size=None)) == list(range(25))


@pytest.mark.parametrize("options", [{"chunk_size": 0}, {"num_returns": 2}])
def test_chunks_that_make_no_sense(cluster, options):
    with pytest.raises(ValueError):
        next(helpers.as_completed([same.remote(1)], **options))
    with pytest.raises(ValueError):
        next(helpers.map_unordered(same, [1], **options))
    with pytest.raises(ValueError, match="backpressure_size"):
        next(helpers.map_unordered(same, [1], backpressure_size=0))


class Lock:
    """Cannot be pickled by itself."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket()

    def __del__(self):
        self.socket.close()


def test_serializers_for_classes_of_others(cluster):
    with pytest.raises(TypeError):
        ray.put(Lock("a"))
    ray.util.register_serializer(Lock, serializer=lambda lock: lock.name, deserializer=Lock)
    assert ray.get(ray.put(Lock("a"))).name == "a"
    ray.util.deregister_serializer(Lock)
    ray.util.deregister_serializer(Lock)
    with pytest.raises(TypeError):
        ray.put(Lock("a"))
    with pytest.raises(TypeError, match="cls"):
        ray.util.register_serializer("Lock", serializer=str, deserializer=str)
    with pytest.raises(TypeError, match="deserializer"):
        ray.util.register_serializer(Lock, serializer=str, deserializer=None)


def test_log_once():
    from oxiray.util import debug

    assert ray.util.log_once("here") and not ray.util.log_once("here")
    debug.reset_log_once("here")
    assert ray.util.log_once("here")
    debug.reset_log_once()
    assert ray.util.log_once("here")


def test_the_address_of_this_node(cluster):
    assert ray.util.get_node_ip_address() == ray.nodes()[0]["NodeManagerAddress"]


def test_the_address_without_a_session(fresh):
    assert not ray.is_initialized()
    socket.inet_aton(ray.util.get_node_ip_address())
    socket.inet_aton(ray.util.get_node_ip_address("127.0.0.1:80"))


def test_cloudpickle_under_rays_name():
    import oxiray.cloudpickle as pickler

    double = pickle.loads(pickler.dumps(lambda x: 2 * x))
    assert double(4) == 8
    assert pickler.Pickler is pickler.CloudPickler and ray.cloudpickle is pickler
    assert ray.types.ObjectRef is ray.ObjectRef


def test_annotations():
    @PublicAPI
    def plain():
        """Says."""

    @PublicAPI(stability="alpha")
    class Early:
        pass

    @DeveloperAPI
    def inside():
        pass

    @Deprecated(message="Use plain.", warning=True)
    def old():
        return 1

    @Deprecated(warning=True)
    class Old:
        def __init__(self, x):
            self.x = x

    assert plain.__doc__ == "Says." and "alpha" in Early.__doc__ and inside._annotated == "inside"
    with pytest.warns(RayDeprecationWarning, match=r"old is deprecated. Use plain\."):
        assert old() == 1
    with pytest.warns(RayDeprecationWarning):
        assert Old(3).x == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain()
    with pytest.raises(ValueError, match="stability"):
        PublicAPI(stability="perhaps")
    with pytest.raises(TypeError, match="stabilty"):
        PublicAPI(stabilty="beta")
