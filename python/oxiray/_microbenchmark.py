"""`oxiray microbenchmark`: how fast tasks, actor calls and objects are on this machine.

Names, work and counting are those of `ray microbenchmark`, so that results can be laid beside
anybody's, as is the form of a line: NAME per second MEAN +- DEVIATION.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO

import oxiray as ray

from .experimental import tqdm_ray

_WINDOWS = 4
_MEGABYTE = 1 << 20
_CLIENTS = 4


class Row(NamedTuple):
    name: str
    # Makes what the row needs, and returns what is measured.
    prepare: Callable[[], Callable[[], object]]
    # What one call counts for.
    weight: float = 1


class Result(NamedTuple):
    name: str
    mean: float
    deviation: float


def _small_value() -> bytes:
    return b"ok"


def _put_small_values() -> None:
    for _ in range(100):
        ray.put(0)


def _refs(count: int) -> list[Any]:
    return [ray.put(1) for _ in range(count)]


class _Server:
    def small_value(self) -> bytes:
        return b"ok"

    def small_value_arg(self, _: object) -> bytes:
        return b"ok"

    def run_tasks(self, count: int) -> None:
        ray.get([small_value.remote() for _ in range(count)])


class _Client:
    def __init__(self, servers: list[Any]) -> None:
        self.servers = servers

    def call_each(self, count: int) -> None:
        ray.get([s.small_value.remote() for s in self.servers for _ in range(count)])

    def call_each_with_arg(self, count: int) -> None:
        ref = ray.put(0)
        ray.get([s.small_value_arg.remote(ref) for s in self.servers for _ in range(count)])


# A type checker does not know what they become.
small_value: Any = ray.remote(_small_value)
put_small_values: Any = ray.remote(_put_small_values)
make_refs: Any = ray.remote(_refs)
Server: Any = ray.remote(num_cpus=0)(_Server)
Client: Any = ray.remote(num_cpus=0)(_Client)


def _servers() -> list[Any]:
    return [Server.remote() for _ in range(max(1, (os.cpu_count() or 1) // 2))]


def _get_calls() -> Callable[[], object]:
    ref = ray.put(0)
    return lambda: ray.get(ref)


def _put_gigabytes() -> Callable[[], object]:
    block = memoryview(bytearray(100 * _MEGABYTE))
    return lambda: ray.put(block)


def _get_many_refs() -> Callable[[], object]:
    ref = make_refs.remote(10_000)
    return lambda: ray.get(ref)


def _wait() -> Callable[[], object]:
    def wait() -> None:
        waiting = [small_value.remote() for _ in range(1000)]
        while waiting:
            _, waiting = ray.wait(waiting)

    return wait


def _many_tasks(count: int) -> Callable[[], object]:
    return lambda: ray.get([small_value.remote() for _ in range(count)])


def _tasks_of_many() -> Callable[[], object]:
    clients = [Server.remote() for _ in range(_CLIENTS)]
    return lambda: ray.get([client.run_tasks.remote(1000) for client in clients])


def _calls_in_turn() -> Callable[[], object]:
    server = Server.remote()
    return lambda: ray.get(server.small_value.remote())


def _calls_at_once() -> Callable[[], object]:
    server = Server.remote()
    return lambda: ray.get([server.small_value.remote() for _ in range(1000)])


def _calls_of_one_client() -> Callable[[], object]:
    servers = _servers()
    client = Client.remote(servers)
    return lambda: ray.get(client.call_each.remote(1000 // len(servers)))


def _calls_of_many() -> Callable[[], object]:
    servers = _servers()
    clients = [Client.remote(servers) for _ in range(_CLIENTS)]
    count = 1000 // len(servers)
    return lambda: ray.get([client.call_each.remote(count) for client in clients])


def _calls_with_arguments() -> Callable[[], object]:
    clients = [Client.remote([server]) for server in _servers()]
    return lambda: ray.get([client.call_each_with_arg.remote(1000) for client in clients])


ROWS = [
    Row("single client get calls (Plasma Store)", _get_calls),
    Row("single client put calls (Plasma Store)", lambda: lambda: ray.put(0)),
    Row(
        "multi client put calls (Plasma Store)",
        lambda: lambda: ray.get([put_small_values.remote() for _ in range(10)]),
        1000,
    ),
    Row("single client put gigabytes", _put_gigabytes, 100 * _MEGABYTE / 1e9),
    Row("single client tasks and get batch", lambda: _many_tasks(1000)),
    Row("single client get object containing 10k refs", _get_many_refs),
    Row("single client wait 1k refs", _wait),
    Row("single client tasks sync", lambda: lambda: ray.get(small_value.remote())),
    Row("single client tasks async", lambda: _many_tasks(1000), 1000),
    Row("multi client tasks async", _tasks_of_many, 1000 * _CLIENTS),
    Row("1:1 actor calls sync", _calls_in_turn),
    Row("1:1 actor calls async", _calls_at_once, 1000),
    Row("1:n actor calls async", _calls_of_one_client, 1000),
    Row("n:n actor calls async", _calls_of_many, 1000 * _CLIENTS),
    Row("n:n actor calls with arg async", _calls_with_arguments, 1000),
]


def measure(rows: list[Row], seconds: float) -> Iterator[Result]:
    """The rate of each row: some windows of that many seconds, after one to get warm."""
    for row in rows:
        call = row.prepare()
        call()
        rates = [_rate(call, seconds) * row.weight for _ in range(_WINDOWS + 1)]
        yield Result(row.name, statistics.mean(rates[1:]), statistics.pstdev(rates[1:]))


def _rate(call: Callable[[], object], seconds: float) -> float:
    calls = 0
    begin = now = time.perf_counter()
    step = 1
    while now - begin < seconds:
        for _ in range(step):
            call()
        calls += step
        now = time.perf_counter()
        # The clock is read at most a few dozen times.
        step = max(1, min(int(calls * seconds / (now - begin) / 50), 10_000))
    return calls / (now - begin)


def main(arguments: list[str] | None = None) -> int:
    """Measures. What ends it early is said in a sentence; the code is that of other programs."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        return 130
    except _Unwritten as unwritten:
        if isinstance(unwritten.error, BrokenPipeError):  # whoever reads has enough
            return 0
        _complain(f"oxiray: {unwritten.what} cannot be written: {unwritten.error.strerror}")
        return 1


class _Unwritten(Exception):
    """Standard output or a file does not take the results."""

    def __init__(self, what: str, error: OSError) -> None:
        self.what, self.error = what, error


def _say(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError as error:
        _turn_away(sys.stdout)
        raise _Unwritten("the output", error) from None


def _complain(text: str) -> None:
    """The exit code tells it, too, where standard error takes nothing."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _turn_away(sys.stderr)


def _turn_away(stream: TextIO) -> None:
    """What a stream did not take, Python would try again at its end, and fail."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _main(arguments: list[str] | None) -> int:
    options = _parser().parse_args(arguments)
    rows = [row for row in ROWS if options.k in row.name]
    if not rows:
        names = "".join(f"\n  {row.name}" for row in ROWS)
        _complain(f"oxiray: no row has {options.k!r} in its name:{names}")
        return 2
    if options.json is None:
        _measure_and_print(rows, options)
    else:
        _write_whole(options.json, lambda: _as_json(_measure_and_print(rows, options)))
    return 0


def _as_json(results: list[Result]) -> str:
    return json.dumps([result._asdict() for result in results], indent=1) + "\n"


def _write_whole(path: str, make: Callable[[], str]) -> None:
    """Writes what is made to a file that is there whole or not at all; whether it can be is known
    before anything is made."""
    place = os.path.realpath(path)
    is_device = os.path.exists(place) and not os.path.isfile(place)
    try:
        if is_device:
            descriptor, draft = os.open(place, os.O_WRONLY), None
        else:
            folder, name = os.path.split(place)
            descriptor, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    except OSError as error:
        raise _Unwritten(path, error) from None
    try:
        with open(descriptor, "w") as file:
            text = make()
            try:
                file.write(text)
                file.flush()
                if draft is not None:
                    os.chmod(draft, 0o666 & ~_umask())
                    os.replace(draft, place)
            except OSError as error:
                raise _Unwritten(path, error) from None
    except BaseException:
        if draft is not None:
            os.unlink(draft)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _measure_and_print(rows: list[Row], options: argparse.Namespace) -> list[Result]:
    ray.init(
        address="local",
        num_cpus=options.num_cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    results = []
    # Elsewhere than on a terminal the lines themselves say how far it is.
    bar = tqdm_ray.tqdm(total=len(rows), desc="measured", unit=" rows")
    live = sys.stderr is not None and sys.stderr.isatty()
    try:
        if live:
            bar.refresh()
        for result in measure(rows, 0.05 if options.quick else 0.4):
            results.append(result)
            _say(f"{result.name} per second {result.mean:.2f} +- {result.deviation:.2f}")
            if live:
                bar.update()
    finally:
        if live:
            bar.close()
        ray.shutdown()
    return results


def _cpus(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("oxiray microbenchmark", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="some seconds instead of half a minute"
    )
    parser.add_argument(
        "-k",
        default=os.environ.get("TESTS_TO_RUN", ""),
        metavar="NAME",
        help="only rows with this in their name; TESTS_TO_RUN does the same",
    )
    parser.add_argument(
        "--num-cpus", type=_cpus, help="of the session; the usable cores unless given"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
