"""Ray's ways to give `ray start` the labels of a node, as the one that `oxiray start` knows."""

from __future__ import annotations

import json


def translated(options: list[str]) -> list[str]:
    """The options with one `--labels key=value,...` for `--labels` and `--labels-file`.

    Ray's older form of the first is JSON; the file has a `key: value` on each line. What both say,
    the first decides. ValueError says what is wrong.
    """
    kept: list[str] = []
    from_file: dict[str, str] = {}
    given: list[str] = []
    left = iter(options)
    for option in left:
        name, equals, value = option.partition("=")
        if name not in ("--labels", "--labels-file"):
            kept.append(option)
            continue
        value = value if equals else next(left, "")
        if name == "--labels":
            given = [_pairs(_of_json(value)) if value.lstrip().startswith("{") else value]
        else:
            from_file = _of_file(value)
    said = {part.partition("=")[0].strip() for text in given for part in text.split(",")}
    others = _pairs({key: value for key, value in from_file.items() if key not in said})
    labels = ",".join(filter(None, (others, *given)))
    return [*kept, f"--labels={labels}"] if labels else kept


def _of_json(text: str) -> dict[str, str]:
    try:
        labels = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--labels={text} is neither key=value,... nor JSON: {error}") from None
    for key, value in labels.items():
        if not isinstance(value, str):
            raise ValueError(f"--labels: the value of {key!r} must be a string, not {value!r}")
    return labels  # type: ignore[no-any-return]


def _of_file(path: str) -> dict[str, str]:
    labels = {}
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise ValueError(f"--labels-file={path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        text = line.partition(" #")[0].strip()
        if not text or text.startswith("#") or text == "---":
            continue
        key, colon, value = text.partition(":")
        if not colon:
            raise ValueError(f"--labels-file={path}, line {number}: {text!r} is not `key: value`")
        labels[_unquoted(key)] = _unquoted(value)
    return labels


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _pairs(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())
