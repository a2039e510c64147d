# SPDX-License-Identifier: MIT
"""Redis servers, a client for them, and the load of the soak.

The load is one stream of commands, drawn from a seed, that is sent to several
servers.  What they answer must be the same, command by command; keys that
expire are written but never read.
"""

import os
import random
import shutil
import socket
import subprocess
import time

STRINGS = 10000
HASHES, FIELDS = 300, 200
LISTS, LENGTH = 100, 100
SORTED_SETS, MEMBERS = 50, 300
EXPIRING, EXPIRE_S = 1000, 10

SCRIPT = ("local t = {} for i = 1, tonumber(ARGV[2]) do "
          "t[i] = ARGV[1] .. i end return #table.concat(t)")

# Each is set to the first value in odd rounds, to the second in even ones.
# Several of them allocate or free a lot at once: the event loop, the log of
# slow commands, the append-only file.
CONFIG = (
    ("hz", "50", "10"),
    ("maxmemory", "4gb", "0"),
    ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ("maxclients", "2000", "5000"),
    ("hash-max-listpack-entries", "64", "512"),
    ("list-max-listpack-size", "16", "-2"),
    ("lazyfree-lazy-user-del", "yes", "no"),
    ("latency-tracking", "no", "yes"),
    ("slowlog-max-len", "10", "128"),
    ("slowlog-log-slower-than", "0", "10000"),
    ("client-output-buffer-limit", "normal 8mb 4mb 60", "normal 0 0 0"),
    ("dynamic-hz", "no", "yes"),
)


class ServerError(Exception):
    """A reply that reports an error."""


class Connection:
    """RESP2 over a Unix socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.buffer = b""

    def close(self):
        self.socket.close()

    def _more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return ServerError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            while len(self.buffer) < size + 2:
                self._more()
            data = self.buffer[:size]
            self.buffer = self.buffer[size + 2:]
            return data
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise ConnectionError(f"not RESP: {line[:40]!r}")

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *words):
        """The reply; an error of the server is raised."""
        self.send(encode(words))
        reply = self.reply()
        if isinstance(reply, ServerError):
            raise reply
        return reply


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Server:
    """A redis-server in a directory of its own."""

    def __init__(self, directory, environment, dump=None):
        """`dump`: a file of data to start from."""
        os.makedirs(directory)
        if dump:
            shutil.copy(dump, os.path.join(directory, "dump.rdb"))
        self.directory = directory
        self.path = os.path.join(directory, "socket")
        with open(os.path.join(directory, "log"), "wb") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.path,
                 "--enable-debug-command", "local", "--save", "",
                 "--maxclients", "5000"],
                cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT)
        self.pid = self.process.pid
        self.admin = self._connect()
        self.work = Connection(self.path)

    def _connect(self):
        for _ in range(200):
            if self.process.poll() is not None:
                break
            try:
                connection = Connection(self.path)
                connection.call("PING")
                return connection
            except (OSError, ServerError):
                time.sleep(0.05)
        raise RuntimeError(f"redis-server did not start: see "
                           f"{self.directory}/log")

    def info(self, section):
        text = self.admin.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines()
                    if ":" in line)

    def wait_for_saves(self):
        """Until no child is at work."""
        names = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress",
                 "aof_rewrite_scheduled")
        while any(self.info("persistence")[n] != "0" for n in names):
            time.sleep(0.02)

    def reconnect(self):
        self.work.close()
        self.work = Connection(self.path)

    def stop(self):
        """Orderly; the exit status."""
        try:
            self.admin.call("SHUTDOWN", "NOSAVE")
        except (ConnectionError, OSError):
            pass
        return self.process.wait(timeout=60)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Stream:
    """The commands, one after the other."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.noise = self.random.randbytes(1 << 20)
        self.kinds = ((self._set, 25), (self._get, 25), (self._delete, 4),
                      (self._hash, 14), (self._list, 10), (self._sorted, 10),
                      (self._expiring, 6), (self._script, 2),
                      (self._unlink, 4))
        self.weights = [w for _, w in self.kinds]
        self.functions = [f for f, _ in self.kinds]

    def next(self):
        return self.random.choices(self.functions, self.weights)[0]()

    def fill(self):
        """The commands that make the data of the start."""
        for i in range(STRINGS):
            yield "SET", f"s:{i}", self._value()
        for i in range(HASHES):
            for j in range(FIELDS):
                yield "HSET", f"h:{i}", f"f{j}", self._value(200)

    def _value(self, most=0):
        """Mostly some hundred bytes, rarely up to 64 KiB."""
        if most:
            size = self.random.randint(1, most)
        else:
            size = min(int(self.random.lognormvariate(5.5, 1.3)) + 1, 65536)
        at = self.random.randrange(len(self.noise) - size)
        return self.noise[at:at + size]

    def _key(self, prefix, count):
        return f"{prefix}:{self.random.randrange(count)}"

    def _set(self):
        return "SET", self._key("s", STRINGS), self._value()

    def _get(self):
        return "GET", self._key("s", STRINGS)

    def _delete(self):
        return "DEL", self._key("s", STRINGS)

    def _unlink(self):
        return "UNLINK", self._key("h", HASHES)

    def _hash(self):
        field = f"f{self.random.randrange(FIELDS)}"
        if self.random.random() < 0.3:
            return "HDEL", self._key("h", HASHES), field
        words = ["HSET", self._key("h", HASHES)]
        for _ in range(20):
            words += [f"f{self.random.randrange(FIELDS)}", self._value(200)]
        return tuple(words)

    def _list(self):
        key = self._key("l", LISTS)
        if self.random.random() < 0.3:
            return "LTRIM", key, 0, LENGTH
        return "LPUSH", key, self._value(400), self._value(400)

    def _sorted(self):
        member = f"member-{self.random.randrange(MEMBERS)}"
        if self.random.random() < 0.3:
            return "ZREM", self._key("z", SORTED_SETS), member
        return ("ZADD", self._key("z", SORTED_SETS),
                self.random.randrange(1000000), member)

    def _expiring(self):
        return ("SETEX", self._key("t", EXPIRING), EXPIRE_S, self._value())

    def _script(self):
        return ("EVAL", SCRIPT, 0, "text", self.random.randint(10, 500))
