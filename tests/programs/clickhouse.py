# SPDX-License-Identifier: MIT
"""Debian's ClickHouse server on loopback, in a folder of its own; and fake
servers, which answer what a test tells them to."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import harness

PASSWORD = "se'cr\\et&1"

CONFIG = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{inter}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host>
<path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path>
<users_config>{dir}/users.xml</users_config>
<default_profile>default</default_profile>
<default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
<timezone>UTC</timezone>
{more}
</yandex>
"""

USERS = """<yandex>
<profiles><default><max_memory_usage>4000000000</max_memory_usage>
{settings}</default></profiles>
<users><default><password>{password}</password>
<networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas>
</yandex>
"""


def install(*packages):
    """The Debian packages of these that are missing."""
    subprocess.run(
        ["bash", "-euc", '. "$0/tools/packages.sh"; '
         'missing=($(missing_packages "$@")); [ ${#missing[@]} = 0 ] || '
         '{ log=$(mktemp); say "installing ${missing[*]}"; '
         'install_packages "$log" "${missing[@]}"; rm "$log"; }',
         os.path.dirname(os.path.dirname(os.path.dirname(
             os.path.abspath(__file__)))), *packages], check=True)


def free_ports(n):
    """Below those that the kernel gives to connections and to servers that take
    any: until a server is there, and while it is away, nobody gets them."""
    with open("/proc/sys/net/ipv4/ip_local_port_range",
              encoding="ascii") as file:
        first = int(file.read().split()[0])
    draw, ports = random.SystemRandom(), set()
    while len(ports) < n:
        port = draw.randrange(first // 4, first)
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            ports.add(port)
    return list(ports)


# A server that speaks TLS as well, with a certificate that it signed itself.
SECURE = """<https_port>{port}</https_port>
<openSSL><server><certificateFile>{dir}/cert.pem</certificateFile>
<privateKeyFile>{dir}/key.pem</privateKeyFile>
<verificationMode>none</verificationMode>
<loadDefaultCAFile>false</loadDefaultCAFile></server></openSSL>
"""


def make_certificate(folder):
    """cert.pem and key.pem, for 127.0.0.1 and no name."""
    subprocess.run(
        [harness.require("openssl", "openssl"), "req", "-x509", "-newkey",
         "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", os.path.join(folder, "key.pem"), "-out",
         os.path.join(folder, "cert.pem")], check=True, capture_output=True)


class Server:
    """`more` goes into its settings; "" needs no other server."""

    def __init__(self, folder, more="", ports=None, settings="", wrap=()):
        self.folder = folder
        self.http, self.tcp, self.inter = ports or free_ports(3)
        self.wrap = wrap
        os.makedirs(os.path.join(folder, "data"), exist_ok=True)
        os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
        self.write("config.xml", CONFIG.format(
            dir=folder, http=self.http, tcp=self.tcp, inter=self.inter,
            more=more))
        self.write("users.xml", USERS.format(
            settings=settings, password=PASSWORD.replace("&", "&amp;")))
        self.process = None

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w",
                  encoding="ascii") as out:
            out.write(text)

    def start(self):
        program = harness.require("/usr/sbin/clickhouse-server",
                                  "clickhouse-server")
        with open(os.path.join(self.folder, "log"), "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                [*self.wrap, program,
                 f"--config-file={self.folder}/config.xml"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd=self.folder)
        harness.wait_until(self.is_up, lambda: self.said()[-2000:])

    def said(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8",
                  errors="replace") as log:
            return log.read()

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError("clickhouse-server: " + self.said()[-2000:])
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def ask(self, sql):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http}/", sql.encode(),
            {"X-ClickHouse-User": "default", "X-ClickHouse-Key": PASSWORD})
        try:
            with urllib.request.urlopen(request, timeout=harness.TIMEOUT_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database, **parameters):
        words = "&".join(f"{k.replace('_', '-')}={v}"
                         for k, v in parameters.items())
        return (f"clickhouse://default@127.0.0.1:{self.http}/{database}" +
                (f"?{words}" if words else ""))


class Stub:
    """Serves each connection with `answer`(socket), until closed."""

    def __init__(self, answer, address=("127.0.0.1", 0)):
        self.answer = answer
        self.socket = socket.create_server(address)
        self.port = self.socket.getsockname()[1]
        self.is_open = True
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while self.is_open:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve_one, args=(client,),
                             daemon=True).start()

    def serve_one(self, client):
        with client, contextlib.suppress(OSError):
            self.answer(client)

    def close(self):
        self.is_open = False
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def says(data, is_whole=True):
    """An answer that reads the request and sends these bytes.  Whoever closes
    a connection with a part of the request unread takes the bytes back, so the
    other side closes it first; `is_whole`: since it knows that no more comes."""
    def answer(client):
        client.recv(1 << 16)
        client.sendall(data)
        if is_whole:
            client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):
            pass
    return answer


# How an answer of rows begins, but for its length.
ROWS = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"


def body(data, head=ROWS):
    return head + f"Content-Length: {len(data)}\r\n\r\n".encode() + data


def pass_on(client, port, change):
    """Until either side ends; change(data, is_answer) says what is sent of some
    bytes, and whether the connection ends behind them."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        def pump(from_, to, is_answer):
            with contextlib.suppress(OSError):
                ends = False
                while not ends and (data := from_.recv(4096)):
                    data, ends = change(data, is_answer)
                    to.sendall(data)
            for s in (from_, to):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
        back = threading.Thread(target=pump, args=(server, client, True),
                                daemon=True)
        back.start()
        pump(client, server, False)
        back.join()


def cutting_proxy(port, limits):
    """Passes on what comes for `port`; the n-th connection ends when
    limits(n) bytes went through it, either way.  None: never."""
    lock = threading.Lock()
    state = {"n": 0}

    def answer(client):
        with lock:
            left = limits(state["n"])
            state["n"] += 1
        budget = {"left": left}

        def cut(data, _):
            with lock:
                if budget["left"] is None:
                    return data, False
                data = data[:budget["left"]]
                budget["left"] -= len(data)
                return data, budget["left"] == 0
        pass_on(client, port, cut)
    return Stub(answer)


class Cable:
    """Passes on what comes at `address` to that port, or does not: while it is
    "silent" nothing moves, while it is "refused" every connection ends."""

    def __init__(self, address, port):
        self.state = None
        self.stub = Stub(lambda client: self.connect(client, port), address)

    def is_through(self):
        while self.state == "silent":
            time.sleep(0.05)
        return self.state is None

    def connect(self, client, port):
        if self.is_through():
            pass_on(client, port, lambda data, _: (
                (data, False) if self.is_through() else (b"", True)))

    def close(self):
        self.state = "refused"
        self.stub.close()


def slow_proxy(port, wait_s):
    """Passes on what comes for `port`; each part of an answer waits."""
    def wait(data, is_answer):
        if is_answer:
            time.sleep(wait_s)
        return data, False
    return Stub(lambda client: pass_on(client, port, wait))
