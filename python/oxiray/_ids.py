"""Ids as users see them: fixed-size byte strings with Ray's names and methods.

`ObjectRef` is native; every other id is one of these. Each size matches `crates/ids`, where an id
contains its parent: job 4 bytes, actor 16, task 24, object 28, placement group 18.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import ClassVar

    from typing_extensions import Self


class BaseID:
    """An immutable id. The nil id is all ones, as in the engine."""

    __slots__ = ("_bytes",)
    SIZE: ClassVar[int] = 28
    _bytes: bytes

    def __init__(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"{type(self).__name__} takes bytes, not {type(data).__name__}")
        if len(data) != self.SIZE:
            raise ValueError(f"{type(self).__name__} takes {self.SIZE} bytes, not {len(data)}")
        self._bytes = data

    @classmethod
    def size(cls) -> int:
        return cls.SIZE

    @classmethod
    def nil(cls) -> Self:
        return cls(b"\xff" * cls.SIZE)

    @classmethod
    def from_binary(cls, id_bytes: bytes) -> Self:
        return cls(id_bytes)

    @classmethod
    def from_hex(cls, hex_id: str) -> Self:
        return cls(bytes.fromhex(hex_id))

    @classmethod
    def from_random(cls) -> Self:
        return cls(os.urandom(cls.SIZE))

    def is_nil(self) -> bool:
        return self._bytes == b"\xff" * self.SIZE

    def binary(self) -> bytes:
        return self._bytes

    def hex(self) -> str:
        return self._bytes.hex()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._bytes == other._bytes  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __lt__(self, other: Self) -> bool:
        return self._bytes < other._bytes if type(self) is type(other) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hex()})"

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (self._bytes,)


class UniqueID(BaseID):
    """Any id of the full size without a parent."""

    __slots__ = ()


class NodeID(UniqueID):
    __slots__ = ()


class WorkerID(UniqueID):
    __slots__ = ()


class FunctionID(UniqueID):
    __slots__ = ()


class ActorClassID(UniqueID):
    __slots__ = ()


class ClusterID(UniqueID):
    __slots__ = ()


class JobID(BaseID):
    __slots__ = ()
    SIZE = 4

    @classmethod
    def from_int(cls, value: int) -> Self:
        return cls(value.to_bytes(cls.SIZE, "little"))

    def int(self) -> int:
        return int.from_bytes(self._bytes, "little")


class PlacementGroupID(BaseID):
    __slots__ = ()
    SIZE = 18

    @classmethod
    def of(cls, job_id: JobID) -> Self:
        """One of a job that no group has."""
        return cls(os.urandom(cls.SIZE - JobID.SIZE) + job_id.binary())


class ActorID(BaseID):
    __slots__ = ()
    SIZE = 16

    @property
    def job_id(self) -> JobID:
        return JobID(self._bytes[-JobID.SIZE :])


class TaskID(BaseID):
    __slots__ = ()
    SIZE = 24

    def actor_id(self) -> ActorID:
        return ActorID(self._bytes[-ActorID.SIZE :])

    def job_id(self) -> JobID:
        return JobID(self._bytes[-JobID.SIZE :])
