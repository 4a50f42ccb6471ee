"""Packages from the index that use Ray, unmodified, give what they give without it.

`make test-packages` installs them into an environment of their own.
"""

from __future__ import annotations

import importlib.util
import textwrap

import pytest

PREAMBLE = """
import ray
ray.init(num_cpus=2, logging_level="error", log_to_driver=False)
"""


def needs(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture
def program(driver):
    return lambda source: driver(PREAMBLE + textwrap.dedent(source), timeout=110)


@needs("dask", "pandas", "pyarrow", "ray")
def test_dask(program):
    program(
        """
        import dask, dask.array, dask.dataframe, numpy, pandas
        from ray.util.dask import RayDaskCallback, enable_dask_on_ray, ray_dask_get

        numbers = dask.array.random.RandomState(0).normal(size=(600, 200), chunks=(200, 100))
        result = (numbers @ numbers.T).sum(axis=0).mean()
        plain = result.compute(scheduler="sync")
        assert numpy.isclose(result.compute(scheduler=ray_dask_get), plain)

        frame = pandas.DataFrame({"a": numpy.arange(5000) % 7, "b": numpy.arange(5000) * 0.5})
        parts = dask.dataframe.from_pandas(frame, npartitions=4)
        with enable_dask_on_ray():
            means = parts.groupby("a").b.mean().compute()
            largest = parts.sort_values("b").b.compute().iloc[-1]
        pandas.testing.assert_series_equal(means.sort_index(), frame.groupby("a").b.mean())
        assert largest == frame.b.max()

        submitted = []
        total = dask.delayed(sum)([dask.delayed(abs)(-n) for n in range(5)])
        note = lambda task, key, deps: submitted.append(key)
        with RayDaskCallback(ray_presubmit=note):
            assert total.compute(scheduler=ray_dask_get) == 10
        assert len(submitted) >= 2
        """
    )


@needs("modin", "ray")
def test_modin(program):
    program(
        """
        import os
        os.environ["MODIN_ENGINE"] = "ray"
        import modin.pandas, numpy, pandas

        plain = pandas.DataFrame({"a": numpy.arange(4000) % 11, "b": numpy.arange(4000) * 0.25})
        plain["c"] = ["s%d" % (n % 5) for n in range(4000)]
        frame = modin.pandas.DataFrame(plain)
        same = pandas.testing.assert_frame_equal
        same(frame.groupby("a").sum(numeric_only=True)._to_pandas(),
             plain.groupby("a").sum(numeric_only=True))
        same(frame.sort_values("b", ascending=False)._to_pandas(),
             plain.sort_values("b", ascending=False))
        means = plain.groupby("c").b.mean().reset_index()
        same(frame.merge(modin.pandas.DataFrame(means), on="c")._to_pandas(),
             plain.merge(means, on="c"))
        same(frame[["a", "b"]].apply(lambda column: column * 2)._to_pandas(),
             plain[["a", "b"]].apply(lambda column: column * 2))
        """
    )


@needs("joblib", "sklearn", "ray")
def test_joblib_and_scikit_learn(program):
    program(
        """
        import joblib
        from sklearn.datasets import load_iris
        from sklearn.model_selection import GridSearchCV
        from sklearn.tree import DecisionTreeClassifier
        from ray.util.joblib import register_ray

        register_ray()
        x, y = load_iris(return_X_y=True)

        def scores():
            tree = DecisionTreeClassifier(random_state=0)
            search = GridSearchCV(tree, {"max_depth": [1, 2, 3]}, n_jobs=2)
            return search.fit(x, y).cv_results_["mean_test_score"].tolist()

        plain = scores()
        with joblib.parallel_backend("ray"):
            assert scores() == plain
        """
    )


@needs("sktime", "ray")
def test_sktime(program):
    program(
        """
        from sktime.utils.parallel import parallelize

        def square(x, meta):
            return x * x + meta["add"]

        options = {"ray_remote_args": {"num_cpus": 1}, "shutdown_ray": False}
        given = dict(fun=square, iter=range(8), meta={"add": 1})
        result = parallelize(backend="ray", backend_params=options, **given)
        assert result == parallelize(backend="None", **given)
        """
    )


@needs("pymoo", "ray")
def test_pymoo(program):
    program(
        """
        import numpy
        from pymoo.algorithms.soo.nonconvex.ga import GA
        from pymoo.core.problem import ElementwiseProblem
        from pymoo.optimize import minimize
        from pymoo.parallelization.ray import RayParallelization

        class Sphere(ElementwiseProblem):
            def __init__(self, **options):
                super().__init__(n_var=3, n_obj=1, xl=-1.0, xu=1.0, **options)

            def _evaluate(self, x, out, *args, **kwargs):
                out["F"] = (x**2).sum()

        def best(**options):
            return minimize(Sphere(**options), GA(pop_size=8), ("n_gen", 3), seed=1).F

        parallel = best(elementwise_runner=RayParallelization())
        assert numpy.array_equal(parallel, best())
        """
    )


@needs("deephyper", "ray")
def test_deephyper(program):
    program(
        """
        from deephyper.evaluator import Evaluator

        def run(job):
            return job.parameters["x"] ** 2

        options = {"num_cpus": 2, "ray_kwargs": {"ignore_reinit_error": True}}
        evaluator = Evaluator.create(run, method="ray", method_kwargs=options)
        evaluator.submit([{"x": n} for n in range(4)])
        jobs = evaluator.gather("ALL")
        assert sorted(job.output for job in jobs) == [0, 1, 4, 9]
        """
    )
