"""`experimental.internal_kv`: values of any size."""

from __future__ import annotations

import os
import threading

import pytest
from oxiray.experimental import internal_kv as kv


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 100_000, 1_000_003])
def test_a_value_of_any_size(cluster, size):
    value = os.urandom(size)
    assert kv._internal_kv_put(f"sized{size}", value, namespace="n") is False
    assert kv._internal_kv_get(f"sized{size}", namespace="n") == value
    assert kv._internal_kv_exists(f"sized{size}", namespace=b"n")
    assert kv._internal_kv_get(f"sized{size}") is None
    assert kv._internal_kv_list(f"sized{size}", namespace="n") == [f"sized{size}".encode()]
    assert kv._internal_kv_del(f"sized{size}", namespace="n") == 1
    assert not kv._internal_kv_exists(f"sized{size}", namespace="n")
    assert kv._internal_kv_list("", namespace="\0parts of n") == []


def test_it_is_replaced_and_kept(cluster):
    large, larger = b"a" * 200_000, b"b" * 300_000
    kv._internal_kv_put("r", large)
    assert kv._internal_kv_put("r", larger, overwrite=False) is True
    assert kv._internal_kv_get("r") == large
    assert kv._internal_kv_put("r", larger) is True
    assert kv._internal_kv_get("r") == larger
    assert len(kv._internal_kv_list("", namespace="\0parts of default")) == 5
    kv._internal_kv_put("r2", "small")
    assert kv._internal_kv_del("r", del_by_prefix=True) == 2
    assert kv._internal_kv_list("", namespace="\0parts of default") == []


def test_a_value_that_looks_like_a_label(cluster):
    kv._internal_kv_put("label", b"\0oxiray-parts:x:3")
    assert kv._internal_kv_get("label") == b"\0oxiray-parts:x:3"
    kv._internal_kv_del("label")


def test_readers_see_one_value_or_the_other(cluster):
    values = {letter * 200_000 for letter in (b"a", b"b")}
    first, second = values
    kv._internal_kv_put("raced", first)
    seen, done = [], threading.Event()

    def read():
        while not done.is_set():
            seen.append(kv._internal_kv_get("raced"))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(10):
        kv._internal_kv_put("raced", second)
        kv._internal_kv_put("raced", first)
    done.set()
    reader.join()
    assert set(seen) <= values and seen
    kv._internal_kv_del("raced")
