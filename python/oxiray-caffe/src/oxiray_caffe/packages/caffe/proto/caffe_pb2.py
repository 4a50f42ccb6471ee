"""Caffe's messages as protobuf classes, made from `messages.txt` when this is imported.

Generated code would be bound to the versions of protobuf around the one that generated it; a table
of facts fits every version that can be installed beside this.
"""

from __future__ import annotations

from importlib.resources import files

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

_PACKAGE = "caffe"
_Field = descriptor_pb2.FieldDescriptorProto


def _file(text: str) -> descriptor_pb2.FileDescriptorProto:
    """What protobuf needs to know of the file that `text` stands for."""
    described = descriptor_pb2.FileDescriptorProto(
        name="oxiray_caffe/caffe.proto", package=_PACKAGE, syntax="proto2"
    )
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    # Messages first: an enum may belong to one that stands below it.
    messages = {}
    for line in lines:
        kind, _, name = line.partition(" ")
        if kind == "message":
            messages[name] = described.message_type.add(name=name)
    enums = {}
    current: object = None
    for line in lines:
        kind, _, name = line.partition(" ")
        if kind == "message":
            current = messages[name]
        elif kind == "enum":
            owner, _, short = name.rpartition(".")
            holder = messages[owner].enum_type if owner else described.enum_type
            current = enums[name] = holder.add(name=short)
        elif isinstance(current, descriptor_pb2.EnumDescriptorProto):
            number, name = line.split()
            current.value.add(name=name, number=int(number))
        else:
            _add_field(current, line, messages, enums)
    return described


def _add_field(message, line, messages, enums) -> None:  # type: ignore[no-untyped-def]
    declared, _, default = line.partition(" = ")
    number, name, kind = declared.split()
    kind, _, several = kind.partition("[")
    field = message.field.add(name=name, number=int(number), json_name=name)
    field.label = _Field.LABEL_REPEATED if several else _Field.LABEL_OPTIONAL
    if several.startswith("packed"):
        field.options.packed = True
    if default:
        field.default_value = default
    own = f"{message.name}.{kind}"
    if own in enums or kind in enums:
        field.type = _Field.TYPE_ENUM
        field.type_name = f".{_PACKAGE}.{own if own in enums else kind}"
    elif kind in messages:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


def _define() -> None:
    """Puts every message, and enums that are no message's own, into this module."""
    text = files(__package__).joinpath("messages.txt").read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    described = _file(text)
    pool.Add(described)
    for message in described.message_type:
        descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        made = message_factory.GetMessageClass(descriptor)
        made.__module__ = __name__
        globals()[message.name] = made
    for enum in described.enum_type:
        wrapper = enum_type_wrapper.EnumTypeWrapper(
            pool.FindEnumTypeByName(f"{_PACKAGE}.{enum.name}")
        )
        globals()[enum.name] = wrapper
        globals().update(wrapper.items())


_define()
