"""Stands between the worker and the server, and speaks PostgreSQL's protocol: whole messages pass,
and a reply, a request, a connection or the whole network may be taken away."""
import os
import re
import socket
import struct
import threading

from .wait import wait_until

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


class Connection:
    """A client and its session of the server."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.socket(socket.AF_UNIX if proxy.is_local else socket.AF_INET)
        self.server.connect(proxy.target)
        self.statements = {}
        self.is_dropping = False
        self.is_open = True
        for pump in (self.pass_requests, self.pass_replies):
            threading.Thread(target=self._guarded, args=(pump,), daemon=True).start()

    def _guarded(self, pump):
        try:
            pump()
        except OSError:
            pass
        self.cut()

    def cut(self):
        self.is_open = False
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.proxy.connections.discard(self)

    def pass_requests(self):
        while True:
            head = receive(self.client, 8)
            length, code = struct.unpack("!II", head)
            if code not in (SSL_REQUEST, GSS_REQUEST):
                break
            self.client.sendall(b"N")
        self.server.sendall(head + receive(self.client, length - 8))
        while True:
            letter, message = receive_message(self.client)
            fault = self.proxy.fault_of(self.statement(letter, message[5:]))
            if fault == "drop_request":
                self.proxy.fired.set()
                return
            if fault == "drop_reply":
                self.is_dropping = True
            self.proxy.pace()
            self.server.sendall(message)

    def pass_replies(self):
        while True:
            letter, message = receive_message(self.server)
            if not self.is_dropping:
                self.proxy.pace()
                self.client.sendall(message)
            elif letter == b"Z":  # the reply is whole: the server has committed
                self.proxy.fired.set()
                return

    def statement(self, letter, content):
        """The text that this message asks for: its own, or of the statement that it names."""
        if letter == b"Q":
            return content
        if letter == b"P":
            name, text = content.split(b"\0")[:2]
            self.statements[name] = text
            return text
        if letter == b"B":
            name = content.split(b"\0")[1]
            return self.statements.get(name, b"") if name else b""
        return b""


def receive(end, count):
    data = b""
    while len(data) < count:
        part = end.recv(count - len(data))
        if not part:
            raise OSError("closed")
        data += part
    return data


def receive_message(end):
    head = receive(end, 5)
    return head[:1], head + receive(end, struct.unpack("!I", head[1:])[0] - 4)


class Proxy:
    def __init__(self, folder, environment):
        host, port = environment["PGHOST"], environment["PGPORT"]
        self.is_local = host.startswith("/")
        self.target = f"{host}/.s.PGSQL.{port}" if self.is_local else (host, int(port))
        self.connections = set()
        self.fault = None
        self.fired = threading.Event()
        self.delay = 0
        self.passes = threading.Event()
        self.passes.set()
        self.lock = threading.Lock()
        os.makedirs(folder, exist_ok=True)
        self.environment = environment | {"PGHOST": folder, "PGSSLMODE": "disable"}
        self.path = f"{folder}/.s.PGSQL.{port}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                self.connections.add(Connection(self, client))
            except OSError:  # as if the server refused: there is none
                client.close()

    def arm(self, fault, pattern):
        """The next statement like this loses its reply, or never arrives."""
        self.fired.clear()
        with self.lock:
            self.fault = (fault, re.compile(pattern.encode(), re.IGNORECASE))

    def disarm(self):
        with self.lock:
            self.fault = None

    def fault_of(self, statement):
        with self.lock:
            if self.fault is None or not self.fault[1].search(statement):
                return None
            fault, self.fault = self.fault[0], None
            return fault

    def wait_fired(self, seconds):
        return wait_until(self.fired.is_set, seconds)

    def pace(self):
        self.passes.wait()
        if self.delay:
            threading.Event().wait(self.delay)

    def cut(self):
        for connection in list(self.connections):
            connection.cut()

    def close(self):
        self.passes.set()
        self.listener.close()
        self.cut()
        os.unlink(self.path)
