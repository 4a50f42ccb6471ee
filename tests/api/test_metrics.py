"""`util.metrics`: what programs count, at `/metrics` of the dashboard."""

from __future__ import annotations

import re
import urllib.request

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.util.metrics import Counter, Gauge, Histogram


def scrape(context):
    address, token = context.dashboard_url.split("/?token=")
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
    return urllib.request.urlopen(request, timeout=20).read().decode()


def samples(text, name):
    """Labels without those of the process, and the value, of each sample."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)
    own = re.compile(r'(?:NodeId|WorkerId)="[0-9a-f]+",?')
    return sorted((own.sub("", labels).strip(","), float(value)) for labels, value in found)


def test_tasks_and_the_driver_count(fresh):
    context = fresh(include_dashboard=True)

    @ray.remote
    def work(kind):
        Counter("test_done", "Things done.", tag_keys=("kind",)).inc(2, tags={"kind": kind})

    ray.get([work.remote("a"), work.remote("b\"'\n"), work.remote("a")])
    Gauge("test_depth", "How deep.").set(7)
    histogram = Histogram("test_size", boundaries=[1, 10], tag_keys=("of",))
    histogram.set_default_tags({"of": "x"})
    for value in (0.5, 1, 5, 100):
        histogram.observe(value)

    def told():
        text = scrape(context)
        done = samples(text, "ray_test_done_total")
        by_kind = {}
        for labels, value in done:
            by_kind[labels] = by_kind.get(labels, 0) + value
        is_whole = by_kind == {'kind="a"': 4.0, 'kind="b\\"\'\\n"': 2.0}
        return text if is_whole and "ray_test_depth{" in text else None

    text = wait_until(told)
    assert "# HELP ray_test_done_total Things done." in text
    assert "# TYPE ray_test_done_total counter" in text
    assert samples(text, "ray_test_depth") == [("", 7.0)]
    assert samples(text, "ray_test_size_bucket") == [
        ('of="x",le="+Inf"', 4.0),
        ('of="x",le="1.0"', 2.0),
        ('of="x",le="10.0"', 3.0),
    ]
    assert samples(text, "ray_test_size_sum") == [('of="x"', 106.5)]
    assert samples(text, "ray_test_size_count") == [('of="x"', 4.0)]


def test_a_counter_outlives_its_process_and_a_gauge_does_not(fresh):
    context = fresh(include_dashboard=True)

    @ray.remote
    class Counting:
        def __init__(self):
            Counter("test_kept").inc(3)
            Gauge("test_gone").set(1)

    actor = Counting.remote()
    ray.get(actor.__ray_ready__.remote())
    wait_until(lambda: "ray_test_gone{" in scrape(context))
    ray.kill(actor)
    wait_until(lambda: "ray_test_gone{" not in scrape(context))
    assert samples(scrape(context), "ray_test_kept_total") == [("", 3.0)]


def test_an_actor_keeps_its_metric(cluster):
    @ray.remote
    class Holder:
        def __init__(self, counter):
            self.counter = counter

        def count(self):
            self.counter.inc(tags={"a": "1"})
            return self.counter.info

    counter = Counter("test_shipped", "d", tag_keys=("a", "b")).set_default_tags({"b": "2"})
    info = ray.get(Holder.remote(counter).count.remote())
    assert info == {
        "name": "test_shipped",
        "description": "d",
        "tag_keys": ("a", "b"),
        "default_tags": {"b": "2"},
    }


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda: Counter(""), ValueError, "Empty name"),
        (lambda: Counter("a-b"), ValueError, "letters, digits"),
        (lambda: Counter("x1", tag_keys=["a"]), TypeError, "tuple"),
        (lambda: Counter("x2", tag_keys=(1,)), TypeError, "strings"),
        (lambda: Counter("x3").inc(0), ValueError, ">0"),
        (lambda: Counter("x4").inc("1"), TypeError, "int or float"),
        (lambda: Counter("x5").inc(tags={"a": "b"}), ValueError, "Unrecognized tag key a"),
        (lambda: Counter("x6", tag_keys=("a",)).inc(), ValueError, "Missing value for tag key"),
        (lambda: Counter("x7", tag_keys=("a",)).inc(tags={"a": 1}), TypeError, "str"),
        (lambda: Gauge("x8").set("high"), TypeError, "int or float"),
        (lambda: Histogram("x9"), ValueError, "boundaries"),
        (lambda: Histogram("x10", boundaries=[2, 1]), ValueError, "greater than the last"),
        (lambda: Histogram("x11", boundaries=[0, 1]), ValueError, "greater than 0"),
        (lambda: (Counter("x12"), Gauge("x12")), ValueError, "already"),
    ],
)
def test_what_is_wrong_is_said(wrong, error, says):
    with pytest.raises(error, match=says):
        wrong()
