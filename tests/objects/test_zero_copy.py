"""What `get` returns without copying: read-only views on the store, of everything made of buffers.

Large values are in the store, small ones travel in messages; both must come back alike.
"""

from __future__ import annotations

import copyreg
import dataclasses
import gc
import pickle
import threading

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from oxiray import _serialization

pytestmark = pytest.mark.usefixtures("cluster")

SMALL, LARGE = 4, 400  # edges of square arrays: far below and far above what travels inline


@ray.remote
def identity(value):
    return value


@ray.remote
def facts(array):
    return array.flags.writeable, array.flags.owndata, float(array.sum())


def address(array):
    return array.__array_interface__["data"][0]


def pickled(value):
    """The length of the pickle, and of its buffers."""
    buffers = []
    data = _serialization.dumps(value, buffers)
    return len(data), [buffer.raw().nbytes for buffer in buffers]


def in_store():
    return ray._native.cluster_view()["store_used"]


def nothing_in_store():
    gc.collect()
    return in_store() == 0


def owner_of_memory(array):
    """The end of an array's chain of bases."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def assert_view(got, again, stored):
    """`got` and `again`, of one ref, are read-only views; if stored, of the same memory."""
    for array in (got, again):
        assert not array.flags.writeable and not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = array.flat[0]
        assert array.copy().flags.writeable
        # Either the native module's view on the store, or what came in the message.
        assert type(owner_of_memory(array)).__module__ == ("oxiray" if stored else "builtins")
    if stored:
        assert address(got) == address(again) and address(got) % 64 == 0


def square(n, dtype="f8"):
    return np.arange(n * n).reshape(n, n).astype(dtype)


def record(n):
    array = np.zeros((n, n), dtype=[("number", "i4"), ("time", "M8[s]"), ("inner", "f4", (2, 2))])
    array["number"] = np.arange(n)
    array["inner"][..., 1, 0] = 0.5
    return array


def void(n):
    return np.frombuffer(np.random.default_rng(0).bytes(7 * n * n), "V7").reshape(n, n)


ARRAYS = {
    "C": square,
    "Fortran": lambda n: np.asfortranarray(square(n)),
    "strided": lambda n: square(2 * n)[::2, 1::2],
    "reversed": lambda n: square(n)[::-1, ::-1],
    "column": lambda n: np.arange(8 * n * n).reshape(n * n, 8)[:, 3],
    "transposed": lambda n: square(n * 2).reshape(2, n, 2 * n).transpose(1, 0, 2),
    "strided Fortran": lambda n: square(2 * n).T[::2, ::2],
    "read-only": lambda n: np.frombuffer(square(n).tobytes()),
    "bool": lambda n: square(n, "bool"),
    "float16": lambda n: (square(n) / n**2).astype("f2"),
    "longdouble": lambda n: square(n, "g"),
    "complex": lambda n: square(n, "c16") * 1j,
    "big-endian": lambda n: square(n, ">f8"),
    "big-endian, strided": lambda n: square(n, ">i4")[:, ::2],
    "text": lambda n: square(n, "U7"),
    "bytes": lambda n: square(n, "S7"),
    "void": void,
    "datetime": lambda n: square(n, "M8[ms]"),
    "datetime, strided": lambda n: square(2 * n, "M8[ns]")[::2, ::-2],
    "datetime, Fortran": lambda n: square(n, "M8[ns]").T,
    "timedelta": lambda n: square(n, "m8[D]"),
    "record": record,
    "record, strided": lambda n: record(n)[::2],
    "field of a record": lambda n: record(n)["inner"],
    "aligned record": lambda n: np.ones((n, n), np.dtype("i1,f8", align=True)),
}


@pytest.mark.parametrize("n", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays_come_back_as_views(make, n):
    array = make(n)
    ref = ray.put(array)
    got, again = ray.get([ref, ref])
    assert got.dtype == array.dtype and got.shape == array.shape
    np.testing.assert_array_equal(got, array)
    assert_view(got, again, stored=n == LARGE)
    in_list, beside = ray.get(ray.put([array, 1]))[0], ray.get(identity.remote({"a": array}))["a"]
    np.testing.assert_array_equal(in_list, array)
    np.testing.assert_array_equal(beside, array)
    assert not in_list.flags.owndata and not beside.flags.owndata
    assert pickled(array)[0] < 500 and pickled([array])[0] < 500


@pytest.mark.parametrize("name", ["Fortran", "strided Fortran", "datetime, Fortran"])
def test_fortran_order_stays(name):
    got = ray.get(ray.put(ARRAYS[name](LARGE)))
    assert got.flags.f_contiguous and not got.flags.c_contiguous


def test_a_repeated_axis_is_sent_once():
    array = np.broadcast_to(np.arange(1000.0)[:, None], (1000, 1000))
    assert sum(pickled(array)[1]) == 8000
    got = ray.get(identity.remote(array))
    np.testing.assert_array_equal(got, array)
    assert not got.flags.writeable and got.copy().flags.owndata


@pytest.mark.parametrize(
    "array",
    [
        np.array(2.5),
        np.array("2026-11-15", "M8[D]"),
        np.empty((0, 3)),
        np.empty((3, 0), "M8[s]"),
        np.empty((5, 0))[::2],
        np.empty((2, 3), "V0"),
        np.empty(3, [("nothing", "V0")]),
        np.array(["", ""]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_with_next_to_nothing_in_them(array):
    for got in (ray.get(ray.put(array)), ray.get(ray.put([array]))[0]):
        assert got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_array_equal(got, array)


any_array = st_numpy.arrays(
    dtype=st_numpy.scalar_dtypes() | st_numpy.array_dtypes(),
    shape=st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(array=any_array, data=st.data())
def test_any_part_of_any_array(array, data):
    if array.ndim:
        array = array[data.draw(st_numpy.basic_indices(array.shape, allow_ellipsis=False))]
    array = np.asarray(array)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    for value in (array, [array]):
        buffers = []
        raw = _serialization.dumps(value, buffers)
        got = _serialization.loads(raw, [bytes(buffer.raw()) for buffer in buffers])
        got = got[0] if isinstance(value, list) else got
        assert got.dtype == array.dtype and got.shape == array.shape
        assert got.tobytes() == array.tobytes()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_of_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "file", "f8", "w+", shape=(LARGE, LARGE))
    mapped[:] = square(LARGE)
    records = record(LARGE).view(np.recarray)
    for array in (mapped, mapped[::2], np.matrix(square(LARGE)), records):
        ref = ray.put(array)
        got, again = ray.get([ref, ref])
        assert type(got) is type(array)
        np.testing.assert_array_equal(got, array)
        assert_view(np.asarray(got), np.asarray(again), stored=True)
    assert (ray.get(ray.put(records)).number == records.number).all()


def test_masked_arrays():
    array = np.ma.masked_greater(square(LARGE), 7.0)
    array.fill_value = -1
    got = ray.get(ray.put(array))
    np.testing.assert_array_equal(got.mask, array.mask)
    np.testing.assert_array_equal(got.filled(), array.filled())


class Named(np.ndarray):
    """A subclass that pickles its own attribute."""

    name = ""

    def __reduce__(self):
        rebuild, arguments, state = super().__reduce__()
        return rebuild, arguments, (*state, self.name)

    def __setstate__(self, state):
        super().__setstate__(state[:-1])
        self.name = state[-1]


def test_a_subclass_with_its_own_pickling():
    array = square(LARGE).view(Named)
    array.name = "it"
    got = ray.get(ray.put(array))
    assert got.name == "it"
    np.testing.assert_array_equal(got, array)


def test_arrays_inside_an_array_of_objects():
    array = np.empty(3, dtype=object)
    array[:] = [square(LARGE), "text", {"times": square(LARGE, "M8[s]")}]
    ref = ray.put(array)
    got, again = ray.get([ref, ref])
    assert got[1] == "text"
    assert_view(got[0], again[0], stored=True)
    assert_view(got[2]["times"], again[2]["times"], stored=True)


@dataclasses.dataclass
class Batch:
    data: np.ndarray
    labels: list
    extra: dict


def test_arrays_inside_dataclasses_lists_and_dicts():
    batch = Batch(square(LARGE), [square(SMALL, "M8[D]"), square(LARGE)[::2]], {"t": (square(3),)})
    ref = ray.put(batch)
    got, again = ray.get([ref, ref])
    assert_view(got.data, again.data, stored=True)
    assert_view(got.labels[1], again.labels[1], stored=True)
    # Small parts of a large value are in the store with it.
    assert_view(got.labels[0], again.labels[0], stored=True)
    np.testing.assert_array_equal(got.extra["t"][0], square(3))


def test_an_array_that_occurs_twice_is_sent_once():
    for array in (square(LARGE), square(LARGE)[::2]):
        assert pickled([array, array])[1] == [array.nbytes]
        first, second = ray.get(ray.put([array, array]))
        assert first is second


def test_tasks_see_views_too():
    ref = ray.put(square(LARGE)[::2])
    assert ray.get(facts.remote(ref)) == (False, False, float(square(LARGE)[::2].sum()))


def test_a_view_keeps_its_object_and_nothing_else_does():
    for value in (square(LARGE), square(LARGE)[:, ::2], square(LARGE, "M8[s]")):
        wait_until(nothing_in_store)
        got = ray.get(ray.put([value]))[0][1:]
        gc.collect()
        assert in_store() > 0
        np.testing.assert_array_equal(got, value[1:])
        del got
        wait_until(nothing_in_store)


def test_what_was_got_can_be_put_again():
    got = ray.get(ray.put(square(LARGE)))
    np.testing.assert_array_equal(ray.get(ray.put(got)), got)
    np.testing.assert_array_equal(ray.get(identity.remote([got[::-1]]))[0], got[::-1])


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_bytes_and_bytearrays_are_copies_of_their_own_type(size):
    data = bytes(range(256)) * (size // 256 + 1)
    for value in (data, bytearray(data)):
        for got in (ray.get(ray.put(value)), ray.get(ray.put([value]))[0]):
            assert type(got) is type(value) and got == value
    changed = ray.get(ray.put(bytearray(data)))
    changed[0] = 1


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_memoryviews_come_back_as_read_only_memoryviews(n):
    for view in (
        memoryview(bytes(n * n)),
        memoryview(bytearray(8 * n)).cast("d"),
        memoryview(square(n)),
        memoryview(square(n).T),
        memoryview(bytes(range(100)) * n)[::3],
        memoryview(np.array(1.5)),
        memoryview(b""),
    ):
        for got in (ray.get(ray.put(view)), ray.get(ray.put([view]))[0]):
            assert type(got) is memoryview and got.readonly
            assert (got.format, got.shape) == (view.format, view.shape) and got == view
    # What `cast` does not know comes back as bytes in order.
    got = ray.get(ray.put(memoryview(square(n, ">f8"))))
    assert type(got) is memoryview and got.tobytes() == square(n, ">f8").tobytes()


def test_a_class_with_buffers_of_its_own():
    class Holder:
        def __init__(self, data):
            self.data = data

        def __reduce_ex__(self, protocol):
            return Holder, (pickle.PickleBuffer(self.data),)

    for size in (10, 1 << 20):
        got = ray.get(ray.put(Holder(bytearray(b"x" * size))))
        assert memoryview(got.data).readonly and bytes(got.data) == b"x" * size


def test_what_a_user_registered_goes_first():
    copyreg.pickle(np.memmap, lambda array: (str, ("registered",)))
    try:
        assert ray.get(ray.put([np.zeros(3).view(np.memmap)])) == ["registered"]
    finally:
        del copyreg.dispatch_table[np.memmap]


def test_libraries_imported_later_are_known(driver):
    """Also one that is only half imported when a value is put."""
    driver("""
        import sys, types
        import oxiray as ray
        from importlib.machinery import ModuleSpec

        ray.init(num_cpus=1, logging_level="error")
        assert ray.get(ray.put({"a": 1})) == {"a": 1}
        half = sys.modules["numpy"] = types.ModuleType("numpy")
        assert ray.get(ray.put({"a": 1})) == {"a": 1}
        half.__spec__ = ModuleSpec("numpy", None)
        half.__spec__._initializing = True
        assert ray.get(ray.put({"a": 1})) == {"a": 1}
        del sys.modules["numpy"]
        import numpy

        got = ray.get(ray.put([numpy.arange(10)[::2]]))[0]
        assert not got.flags.writeable and got.tolist() == [0, 2, 4, 6, 8]
        ray.shutdown()
    """)


# Arrow


def arrow_table(pa, rows):
    return pa.table(
        {
            "number": pa.array(range(rows)),
            "text": pa.array([None, "a", "bcd"] * rows).slice(0, rows),
            "flag": pa.array([True, False, None] * rows).slice(0, rows),
            "list": pa.array([[1, 2], [], None] * rows).slice(0, rows),
            "struct": pa.array([{"x": 1, "y": "z"}] * rows),
            "category": pa.array(["p", "q"] * rows).slice(0, rows).dictionary_encode(),
            "time": pa.array(range(rows), pa.timestamp("us", tz="Europe/Berlin")),
            "nothing": pa.nulls(rows),
        },
        metadata={"of": "the table"},
    )


@pytest.mark.parametrize("rows", [5, 50_000])
def test_arrow(rows):
    pa = pytest.importorskip("pyarrow")
    table = arrow_table(pa, rows)
    chunked = pa.concat_tables([table, table.slice(1, rows // 2), table.slice(0, 0)])
    parts = [table, chunked, table.slice(2, rows // 2), table.to_batches()[0], chunked["text"]]
    parts += [batch.slice(1, 3) for batch in table.to_batches()]
    parts += [column.chunk(0).slice(1, 3) for column in table.columns]
    for value in [*parts, parts]:
        got = ray.get(ray.put(value))
        assert got == value and type(got) is type(value)
        if hasattr(got, "validate"):
            got.validate(full=True)
    assert ray.get(ray.put(table)).schema.metadata == {b"of": b"the table"}


def test_large_arrow_is_a_view():
    pa = pytest.importorskip("pyarrow")
    ref = ray.put(pa.table({"n": np.arange(100_000), "t": ["abc"] * 100_000}))
    got, again = ray.get([ref, ref])
    for name in ("n", "t"):
        ours, theirs = (table[name].chunk(0).buffers() for table in (got, again))
        assert [b and b.address for b in ours] == [b and b.address for b in theirs]
        assert not any(buffer.is_mutable for buffer in ours if buffer)
        assert ours[1].address % 64 == 0
    del ref, again, ours, theirs
    assert got["n"][-1].as_py() == 99_999
    del got
    wait_until(nothing_in_store)


def test_a_slice_of_arrow_goes_without_the_rest():
    pa = pytest.importorskip("pyarrow")
    table = arrow_table(pa, 50_000)
    batch = table.to_batches()[0]
    for value in (table.slice(70, 10), batch.slice(70, 10), {"column": table["list"].slice(7, 9)}):
        data, buffers = pickled(value)
        assert data + sum(buffers) < 5000
    pieces = [table.slice(start, 5000) for start in range(0, 50_000, 5000)]
    assert sum(pickled(pieces)[1]) < 1.5 * table.nbytes
    # Nothing is copied for the sake of a few rows less.
    most = table["number"].chunk(0).slice(1)
    assert pickled(most)[1] == [most.buffers()[1].size]


# Pandas


def frame(pd, rows):
    numbers = np.arange(rows)
    return pd.DataFrame(
        {
            "int": numbers,
            "float": numbers / 2,
            "bool": numbers % 2 == 0,
            "complex": numbers * 1j,
            "object": pd.Series([None, "x"] * rows, dtype=object)[:rows],
            "text": pd.Series(["x", None] * rows, dtype="string[python]")[:rows],
            "Int64": pd.array([1, None] * rows, dtype="Int64")[:rows],
            "boolean": pd.array([True, None] * rows, dtype="boolean")[:rows],
            "category": pd.Categorical.from_codes(numbers % 2, ["p", "q"], ordered=True),
            "time": pd.date_range("2026-11-15", periods=rows, freq="s"),
            "zoned": pd.date_range("2026-11-15", periods=rows, freq="s", tz="Asia/Tokyo"),
            "difference": pd.to_timedelta(numbers, unit="s"),
            "period": pd.period_range("2026-11", periods=rows, freq="s"),
            "interval": pd.interval_range(0, rows),
            "sparse": pd.arrays.SparseArray(numbers % 2),
        },
        index=pd.date_range("2026", periods=rows, freq="min", name="when"),
    )


@pytest.mark.parametrize("rows", [5, 2000])
def test_pandas(rows):
    pd = pytest.importorskip("pandas")
    value = frame(pd, rows)
    wide = pd.DataFrame(
        np.ones((rows, 3)),
        columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    )
    for part in (value, value[::2], value.iloc[:, 2:7], wide, wide.T, wide.iloc[1:3]):
        pd.testing.assert_frame_equal(ray.get(ray.put(part)), part)
    for name in value:
        pd.testing.assert_series_equal(ray.get(ray.put(value[name])), value[name])
    pd.testing.assert_index_equal(ray.get(ray.put(value.index)), value.index)
    assert ray.get(ray.put(value.index)).freq == value.index.freq


def test_pandas_of_arrow():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for dtype in ("string[pyarrow]", "int64[pyarrow]", "timestamp[us, UTC][pyarrow]"):
        value = pd.Series(range(20_000)).astype(dtype if "string" not in dtype else str)
        value = value.astype(dtype)
        pd.testing.assert_series_equal(ray.get(ray.put(value)), value)
        assert sum(pickled(value[5:10])[1]) < 1000


@pytest.mark.parametrize("name", ["int", "float", "time", "zoned", "difference"])
def test_large_pandas_columns_are_views(name):
    pd = pytest.importorskip("pandas")
    ref = ray.put(frame(pd, 20_000)[[name]])
    got, again = (value[name].array for value in ray.get([ref, ref]))
    got, again = (array._ndarray for array in (got, again))
    assert address(got) == address(again) and not got.flags.writeable
    value = ray.get(ref)
    # What pandas raises depends on the column's type.
    with pytest.raises((ValueError, AssertionError)):
        value.iloc[0, 0] = value.iloc[1, 0]
    copy = value.copy()
    copy.iloc[0, 0] = copy.iloc[1, 0]
    assert copy.iloc[0, 0] == value.iloc[1, 0] != value.iloc[0, 0]


# Torch


@pytest.fixture
def torch():
    return pytest.importorskip("torch", minversion="2")


def tensors(torch, n):
    whole = torch.arange(float(n * n)).reshape(n, n)
    return {
        "plain": whole,
        "transposed": whole.t(),
        "strided": whole[:, ::2],
        "a small part": whole[1:2, :2],
        "repeated": torch.arange(3.0)[:, None].expand(3, n),
        "zero-dimensional": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "bfloat16": whole.bfloat16(),
        "bool": whole > 3,
        "int8": whole.to(torch.int8),
        "complex": torch.complex(whole, whole),
        "conjugate": torch.complex(whole, whole).conj(),
        "channels last": torch.ones(2, 3, n, n).to(memory_format=torch.channels_last),
        "with gradient": torch.ones(n, requires_grad=True),
        "parameter": torch.nn.Parameter(whole.clone()),
    }


@pytest.mark.parametrize("views", [False, True], ids=["copies", "views"])
@pytest.mark.parametrize("n", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_tensors(torch, monkeypatch, n, views):
    monkeypatch.setenv("RAY_ENABLE_ZERO_COPY_TORCH_TENSORS", str(int(views)))
    values = tensors(torch, n)
    for name, got in {name: ray.get(ray.put(value)) for name, value in values.items()}.items():
        value = values[name]
        assert type(got) is type(value) and got.dtype == value.dtype, name
        assert got.requires_grad == value.requires_grad, name
        assert torch.equal(got, value), name
    for name, got in ray.get(ray.put(values)).items():
        assert torch.equal(got, values[name]), name


def test_other_tensors_go_the_way_of_torch(torch):
    # Small: torch keeps every sparse tensor that was ever unpickled.
    sparse = torch.eye(SMALL).to_sparse()
    assert torch.equal(ray.get(ray.put(sparse)).to_dense(), torch.eye(SMALL))
    marked = torch.ones(3)
    marked.mark = "kept"
    assert ray.get(ray.put(marked)).mark == "kept"
    assert ray.get(ray.put(torch.ones(3, device="meta"))).is_meta


def test_tensors_are_pickled_as_buffers(torch):
    whole = torch.ones(LARGE, LARGE)
    assert pickled(whole) == pickled(whole.t())
    assert pickled([whole, whole.t(), whole[1:]])[1] == [4 * LARGE * LARGE]
    assert pickled(whole[0])[1] == [4 * LARGE]
    assert pickled(whole)[0] < 200


def test_writing_to_a_tensor_changes_no_object(torch):
    for n in (SMALL, LARGE, 8 * LARGE):
        ref = ray.put(torch.zeros(n, n))
        assert ray.get(ref).add_(1).sum() == n * n
        assert ray.get(ref).sum() == 0
        assert ray.get(ref).clone().resize_(2 * n, n).shape == (2 * n, n)


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_large_tensors_are_not_copied(torch):
    """Only pages that are written to become this process's own."""

    def private():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    ref = ray.put(torch.ones(5_000_000))
    before = private()
    tensors = [ray.get(ref) for _ in range(5)]
    assert all(tensor.sum() == 5_000_000 for tensor in tensors)
    assert private() - before < 4_000, "kilobytes"
    tensors[0].zero_()
    assert private() - before > 15_000
    assert tensors[1].sum() == 5_000_000
    del ref
    assert tensors[2].sum() == 5_000_000


def test_tensors_are_views_where_asked_for(torch, monkeypatch):
    monkeypatch.setenv("RAY_ENABLE_ZERO_COPY_TORCH_TENSORS", "1")
    whole = torch.ones(LARGE, LARGE)
    needs_gradient = whole.clone().requires_grad_()
    ref = ray.put({"a": whole, "p": torch.nn.Parameter(whole.clone()), "g": needs_gradient})
    got, again = ray.get([ref, ref])
    assert got["a"].data_ptr() == again["a"].data_ptr() and got["a"].data_ptr() % 64 == 0
    # An optimizer writes to these.
    assert got["p"].data_ptr() != again["p"].data_ptr()
    assert got["g"].data_ptr() != again["g"].data_ptr()
    del ref, again
    part = got["a"][1]
    del got
    assert part.sum() == LARGE
    del part
    wait_until(nothing_in_store)


def test_tensors_that_share_memory_share_it_again(torch):
    model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 300))
    model[1].weight = model[0].weight
    state = ray.get(ray.put(model.state_dict()))
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()
    assert torch.equal(state["0.weight"], model[0].weight)
    model.load_state_dict(state)
    got = ray.get(ray.put(model))
    assert got[0].weight is got[1].weight and got[0].weight.requires_grad
    got(torch.ones(2, 300)).sum().backward()


def test_tensors_in_tasks(torch):
    got = ray.get(identity.remote({"t": torch.ones(LARGE, LARGE, dtype=torch.bfloat16)}))
    assert got["t"].dtype is torch.bfloat16 and got["t"].float().sum() == LARGE * LARGE


# Values that fail while they are pickled


class Refusal(Exception):
    pass


class Refuses:
    """Fails in the middle of a value, after its buffers."""

    def __init__(self, kind, *args):
        self.kind, self.args = kind, args

    def __reduce__(self):
        raise self.kind(*self.args)


def test_an_error_of_the_value_itself_stays_what_it_is():
    for kind in (Refusal, KeyError, pickle.PicklingError):
        with pytest.raises(kind) as caught:
            ray.put([square(LARGE), {"inner": Refuses(kind, "why")}])
        assert type(caught.value) is kind and caught.value.args == ("why",)
        (note,) = caught.value.__notes__
        assert "value[1]['inner']" in note and "Refuses" in note


def test_a_type_error_says_where_it_is():
    with pytest.raises(TypeError, match=r"value\[1\].*Refuses.*no way"):
        ray.put([1, Refuses(TypeError, "no way")])


def test_an_error_while_a_result_is_pickled_arrives_as_itself():
    @ray.remote(max_retries=0)
    def give():
        return [square(LARGE), Refuses(Refusal, "not me")]

    with pytest.raises(Refusal, match=r"(?s)not me.*Refuses"):
        ray.get(give.remote())


def test_nothing_is_left_of_a_value_that_failed():
    wait_until(nothing_in_store)
    for failing in (Refuses(Refusal), threading.Lock()):
        inner = ray.put(square(LARGE))
        for send in (ray.put, identity.remote):
            with pytest.raises((Refusal, TypeError)) as caught:
                send([square(LARGE), square(LARGE)[::2], inner, failing])
            del caught
        del inner
        wait_until(nothing_in_store)
