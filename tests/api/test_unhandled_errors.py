"""The error of a task that nobody gets is said once, when its last reference goes."""

from __future__ import annotations

import pytest

HEAD = """
import os, sys, time
import oxiray as ray

ray.init(num_cpus=2, logging_level="error")

@ray.remote(max_retries=0)
def fail(word):
    raise ValueError(word)

@ray.remote
def done():
    return 1

@ray.remote
class Actor:
    def fail(self, word):
        raise ValueError(word)

def finished(ref):
    ray.wait([ref])
"""


def said(driver, program, **options):
    """What is said of unhandled errors by a program that ends by itself."""
    run = driver(HEAD + program, **options)
    assert run.returncode == 0, run.stderr
    return run.stderr, run.stderr.count("Unhandled error")


def test_an_error_is_said_when_the_last_reference_goes(driver):
    text, count = said(
        driver,
        """
ref = fail.remote("lost for ever")
finished(ref)
print("held", file=sys.stderr, flush=True)
del ref
""",
    )
    before, _, after = text.partition("held")
    assert "Unhandled" not in before
    assert count == 1 and "ValueError: lost for ever" in after and "fail" in after
    assert "RAY_IGNORE_UNHANDLED_ERRORS=1" in after


@pytest.mark.parametrize(
    "submit", ['fail.remote("x")', 'Actor.remote().fail.remote("x")', "crash.remote()"]
)
def test_so_it_is_if_the_reference_was_never_kept(driver, submit):
    program = f"""
from oxiray.util import state

crash = ray.remote(max_retries=0)(lambda: os._exit(3))
{submit}
while not state.list_tasks(filters=[("state", "=", "FAILED")]):
    time.sleep(0.01)
ray.get(done.remote())
"""
    assert said(driver, program)[1] == 1


@pytest.mark.parametrize(
    "look",
    [
        'ref = fail.remote("x")\ntry: ray.get(ref)\nexcept ValueError: pass\ndel ref',
        'refs = [fail.remote("x"), fail.remote("y")]\nray.wait(refs, num_returns=2)\n'
        "try: ray.get(refs)\nexcept ValueError: pass\ndel refs",
        'ref = fail.remote("x")\nassert ref.future().exception()\ndel ref',
        'ref = fail.remote("x")\n'
        "take = ray.remote(lambda value: value).remote(ref)\n"
        "try: ray.get(take)\nexcept ValueError: pass\ndel ref, take",
        "ref = done.remote()\nfinished(ref)\ndel ref",
    ],
    ids=["get", "get of several", "future", "got by way of a task", "no error"],
)
def test_what_was_looked_at_is_not_said(driver, look):
    _, count = said(driver, look)
    assert count == 0


def test_one_error_of_many_references_is_said_once(driver):
    _, count = said(
        driver,
        """
first = fail.options(num_returns=3).remote("x")
second = [ray.remote(lambda value: value).remote(ref) for ref in first]
ray.wait(second, num_returns=3)
del first, second
""",
    )
    assert count == 1


def test_what_is_held_at_the_end_is_not_said(driver):
    _, count = said(driver, 'ref = fail.remote("x")\nfinished(ref)')
    assert count == 0
    _, count = said(driver, 'ref = fail.remote("x")\nfinished(ref)\nray.shutdown()\ndel ref')
    assert count == 0


@pytest.mark.parametrize("name", ["RAY_IGNORE_UNHANDLED_ERRORS", "OXIRAY_IGNORE_UNHANDLED_ERRORS"])
def test_it_can_be_switched_off(driver, name):
    program = 'ref = fail.remote("x")\nfinished(ref)\ndel ref'
    assert said(driver, program, env={name: "1"})[1] == 0
    assert said(driver, program, env={name: "0"})[1] == 1


def test_a_task_says_it_of_the_tasks_it_made(driver):
    text, count = said(
        driver,
        """
@ray.remote
def outer():
    ref = fail.remote("inner")
    finished(ref)
    del ref

ray.get(outer.remote())
ray.get(outer.remote())
""",
    )
    assert count >= 1 and "(outer pid=" in text
