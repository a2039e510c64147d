# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over its DevTools pipe: JSON messages that end in
a NUL, on descriptors 3 and 4 of the browser."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

import harness

# The one without windows does the same in three quarters of the time.
CHROMIUM = "/usr/bin/chromium-headless-shell"
# Of an answer.
DEADLINE_S = harness.TIMEOUT_S


class BrowserError(Exception):
    """The browser said no, or nothing at all."""


class Browser:
    """One page in a browser of its own, without a network."""

    def __init__(self, width=1280, height=900):
        self.home = tempfile.mkdtemp(prefix="sampleprof-browser-")
        to_read, self.to = os.pipe()
        self.read, to_write = os.pipe()
        # Out of the way of 3 and 4, which the browser wants them to be.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
                for fd in (to_read, to_write)]

        def take_places():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--disable-extensions",
             "--disable-background-networking", "--no-first-run",
             "--disable-component-update", "--hide-scrollbars",
             # No process for a page that may come.
             "--disable-features=SpareRendererForSitePerProcess",
             "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe",
             f"--user-data-dir={self.home}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=take_places,
            pass_fds=(3, 4), start_new_session=True)
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self.buffer = b""
        self.last = 0
        self.session = None
        self.events = []
        self.session = self._attach()
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.call(domain + ".enable")
        self.size(width, height)

    def _attach(self):
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        return self.call("Target.attachToTarget", targetId=page["targetId"],
                         flatten=True)["sessionId"]

    def close(self):
        """Ends the browser and all its processes."""
        os.close(self.to)
        os.close(self.read)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            got = os.read(self.read, 1 << 20)
            if not got:
                raise BrowserError("the browser has ended")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        """The result of a command; events meanwhile go to self.events."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.last:
                break
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def cpu_s(self):
        """CPU seconds of the page's main thread since it was opened."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "ThreadTime")

    def size(self, width, height):
        """The size of the window, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """What the system prefers: "dark" or "light"."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name}])

    def open(self, path):
        """Opens a file, and forgets the events before."""
        self.events = []
        url = path if path.startswith("about:") else "file://" + path
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression, promises awaited."""
        got = self.call("Runtime.evaluate", expression=script,
                        returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise BrowserError(f"{script}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def wait(self, script, why=""):
        """Until the expression is true."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.run(script):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {script} {why}")
            time.sleep(0.02)

    def mouse(self, kind, x, y, **more):
        """mousePressed, mouseReleased, mouseMoved at a point."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, clicks=1):
        """One click or two, at a point."""
        for n in range(1, clicks + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=n)

    def drag(self, x0, x1, y):
        """Along a horizontal line."""
        self.mouse("mousePressed", x0, y, button="left", clickCount=1)
        for step in range(1, 5):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / 4, y,
                       button="left")
        self.mouse("mouseReleased", x1, y, button="left", clickCount=1)

    def key(self, key, text=None):
        """One key, pressed and released."""
        extra = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        """Into what has the focus."""
        self.call("Input.insertText", text=text)

    def picture(self, path):
        """The window, as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
