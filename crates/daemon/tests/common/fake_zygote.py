#!/usr/bin/env python3
"""Stands in for the interpreter: a zygote whose workers answer without any engine."""

import os
import select
import socket

VERSION = 11  # as crates/wire has it
REGISTER = bytes([0x0A, 4, 0x08, VERSION, 0x10, 1])  # kind worker
START_ACTOR, EXIT = 0x32, 0x62  # first bytes of these messages


def work(session):
    out, err = os.pipe(), os.pipe()
    node = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    node.connect(session + "/node.sock")
    socket.send_fds(node, [REGISTER], [out[0], err[0]])
    os.close(out[0])
    os.close(err[0])
    os.write(out[1], b"\x1eoxiray-name:fake\nhello from " + str(os.getpid()).encode() + b"\n")
    while True:
        data = node.recv(1 << 18)
        if not data or data[0] == EXIT:
            os._exit(0)
        if data[0] == START_ACTOR:
            actor = data[data.index(b"\x0a\x10") + 2 :][:16]
            if b"explode" in data:
                os.write(err[1], b"about to explode\n")
                os._exit(7)
            error = b"\x12\x03bad" if b"raise" in data else b""
            body = b"\x0a\x10" + actor + error
            node.send(bytes([0x52, len(body)]) + body)


def main():
    node = socket.socket(fileno=3)
    session = os.environ["OXIRAY_SESSION_DIR"]
    while True:
        if select.select([node], [], [], 0.005)[0]:
            data = node.recv(64)
            if not data:
                os._exit(0)
            if data == b"fork":
                pid = os.fork()
                if pid == 0:
                    node.close()
                    work(session)
                node.send(b"forked %d" % pid)
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                node.send(b"exit %d %d" % ended)
        except ChildProcessError:
            pass


main()
