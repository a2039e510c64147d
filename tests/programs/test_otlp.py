# SPDX-License-Identifier: MIT
"""OTLP, read by a reader that protoc makes of otlp.proto: the export has the
samples of pprof's, to the unit; its dictionary keeps the rules; its JSON says
the same; `push --otlp` sends what adds up to the exact totals, and hears what
a server drops, and how long it asks to wait."""

import base64
import collections
import gzip
import importlib
import json
import os
import ssl
import subprocess
import sys
import tempfile

import harness
import test_export
import test_push

HERE = os.path.dirname(os.path.abspath(__file__))


def generated():
    """The module of otlp.proto."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["protoc", "-I", HERE, "--python_out", made,
                        "otlp.proto"], check=True)
        sys.path.insert(0, made)
        try:
            return importlib.import_module("otlp_pb2")
        finally:
            sys.path.remove(made)


otlp = generated()
json_format = importlib.import_module("google.protobuf.json_format")


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


class Message:
    """ProfilesData of one process, with what its schema asks for."""

    def __init__(self, data):
        self.data = otlp.ProfilesData.FromString(data)
        resource, = self.data.resource_profiles
        scope, = resource.scope_profiles
        assert scope.scope.name == "sampleprof" and scope.scope.version
        self.facts = {a.key: value_of(a.value)
                      for a in resource.resource.attributes}
        assert len(self.facts) == len(resource.resource.attributes)
        self.dictionary = self.data.dictionary
        self.strings = self.dictionary.string_table
        self.profiles = {self.type_of(p.sample_type): p
                         for p in scope.profiles}
        assert len(self.profiles) == len(scope.profiles)
        self.first = next(iter(self.profiles))
        self.check()

    def type_of(self, value_type):
        return (self.strings[value_type.type_strindex],
                self.strings[value_type.unit_strindex])

    def check(self):
        """Each table begins with an empty entry, has none twice and none that
        nothing refers to; every index is in its table."""
        d = self.dictionary
        for field in d.DESCRIPTOR.fields:
            table = getattr(d, field.name)
            texts = [e if isinstance(e, str) else e.SerializeToString()
                     for e in table]
            assert texts, field.name
            assert len(set(texts)) == len(texts), field.name
            if field.name != "link_table":
                assert not texts[0], field.name
        assert d.link_table[0].trace_id == bytes(16)
        assert d.link_table[0].span_id == bytes(8)
        used = collections.defaultdict(set)
        self.find(self.data, used)
        for table, ending in (("location", "location_indices"),
                              ("function", "function_index"),
                              ("mapping", "mapping_index"),
                              ("attribute", "attribute_indices"),
                              ("stack", "stack_index"),
                              ("string", "strindex")):
            n = len(getattr(d, table + "_table"))
            found = used[ending] | {0}
            # The program's own mapping is always there.
            if table == "mapping":
                found.add(1)
            assert found == set(range(n)), (table, set(range(n)) ^ found)

    def find(self, message, used):
        for field, value in message.ListFields():
            if field.message_type:
                for m in value if field.label == field.LABEL_REPEATED else [
                        value]:
                    self.find(m, used)
            elif field.name.endswith("strindex"):
                used["strindex"].add(value)
            elif field.name.endswith("_index"):
                used[field.name].add(value)
            elif field.name.endswith("_indices"):
                used[field.name].update(value)

    def attributes(self, indices):
        found = {}
        for index in indices:
            a = self.dictionary.attribute_table[index]
            key = self.strings[a.key_strindex]
            assert key not in found, key
            found[key] = (value_of(a.value), self.strings[a.unit_strindex])
        return found

    def stack(self, index):
        """(function, file, line) of each frame, innermost first."""
        d, found = self.dictionary, []
        for at in d.stack_table[index].location_indices:
            for line in d.location_table[at].lines:
                function = d.function_table[line.function_index]
                found.append((self.strings[function.name_strindex],
                              self.strings[function.filename_strindex] or None,
                              line.line))
        return tuple(found)

    def samples(self, kind):
        """{(stack, size of the objects): value}"""
        found = collections.Counter()
        for s in self.profiles[kind].samples:
            size = self.attributes(s.attribute_indices).get("allocation_size")
            assert size is None or size[1] == "By"
            value, = s.values
            assert value > 0
            found[self.stack(s.stack_index), size and size[0]] += value
        return found

    def total(self, name):
        return sum(v for kind, p in self.profiles.items() if kind[0] == name
                   for s in p.samples for v in s.values)


class Export(test_export.Exported):
    """With the profiles of test_export.py."""

    def message(self, name, *options):
        return Message(self.export("otlp", name, *options))

    def test_samples(self):
        """Those of pprof, stack by stack and size by size."""
        for name, *options in (("leak",), ("vector",),
                               ("leak", "--view=live", "--pprof-error"),
                               ("vector", "--max-samples=5")):
            m = self.message(name, *options)
            p = test_export.Pprof(self.export("pprof", name, *options))
            self.assertEqual(sorted(m.profiles), sorted(p.types))
            self.assertEqual(m.first, (p.default_type, "bytes"))
            for i, kind in enumerate(p.types):
                want = collections.Counter()
                for locations, values, labels in p.samples:
                    want[tuple(line for at in locations for line in p.lines(at)
                               ), labels.get("bytes")] += values[i]
                self.assertEqual(m.samples(kind), +want)
            self.assertGreater(sum(want.values()), 0)
            for profile in m.profiles.values():
                self.assertEqual(m.type_of(profile.period_type),
                                 ("space", "bytes"))
                self.assertEqual((profile.time_unix_nano, profile.period,
                                  profile.duration_nano),
                                 (p.time_nanos, p.period, p.duration_nanos))
            ids = {profile.profile_id for profile in m.profiles.values()}
            self.assertEqual({len(i) for i in ids}, {16})
            self.assertEqual(len(ids), len(m.profiles))

    def test_places(self):
        """Modules with their build ids; calls are inside of them."""
        m = self.message("vector")
        d = m.dictionary
        with open(harness.target("program_live_vector"), "rb") as f:
            program = f.read()
        first = d.mapping_table[1]
        self.assertEqual(m.strings[first.filename_strindex],
                         harness.target("program_live_vector"))
        (build_id, _), = m.attributes(first.attribute_indices).values()
        self.assertIn(bytes.fromhex(build_id), program)
        n = 0
        for location in d.location_table[1:]:
            mapping = d.mapping_table[location.mapping_index]
            self.assertLessEqual(mapping.memory_start, location.address)
            self.assertLess(location.address, mapping.memory_limit)
            n += len(location.lines) > 1
        self.assertGreater(n, 0, "nothing was inlined")

    def test_facts(self):
        """Labels under OpenTelemetry's names; the interval of the sum; what
        the profile lacks."""
        m = self.message("leak")
        d = self.json("leak")
        self.assertEqual(m.facts["service.name"], "program_live_shapes")
        self.assertEqual(m.facts["process.pid"], d["pid"])
        self.assertEqual(m.facts["process.executable.path"],
                         harness.target("program_live_shapes"))
        self.assertEqual(m.facts["host.name"], os.uname().nodename)
        found = m.attributes(m.profiles[m.first].attribute_indices)
        want = d["estimate"]["view_bytes"]
        self.assertEqual(found["sampleprof.sum.low"], (want["lo"], "By"))
        self.assertEqual(found["sampleprof.sum.high"], (want["hi"], "By"))
        half, _ = found["sampleprof.sum.half_width"]
        self.assertAlmostEqual(2 * half, want["hi"] - want["lo"],
                               delta=1e-9 * half)
        self.assertEqual(found["sampleprof.confidence"], (0.95, "1"))
        self.assertNotIn("sampleprof.incomplete", found)
        result = self.execute(
            harness.target("program_live_shapes"), "leak", period="512",
            labels="service=shop,version=1.7,pod=shop-7,host.name=x,tier=web")
        self.paths["labels"] = result.paths[0]
        facts = self.message("labels").facts
        self.assertEqual(
            [facts[k] for k in ("service.name", "service.version",
                                "k8s.pod.name", "host.name", "tier")],
            ["shop", "1.7", "shop-7", os.uname().nodename, "web"])
        with open(self.paths["leak"], "r+b") as f:
            f.truncate(os.path.getsize(self.paths["leak"]) * 2 // 3)
        test_export.run("export", "otlp", self.paths["leak"], "-o", self.file)
        with open(self.file, "rb") as f:
            cut = Message(f.read())
        self.assertIn("cut short", cut.attributes(
            cut.profiles[cut.first].attribute_indices)[
                "sampleprof.incomplete"][0])

    def test_several(self):
        """Of several processes what they have in common."""
        for other, want in (
                ("leak", {"service.name", "process.executable.name",
                          "process.executable.path", "host.name"}),
                ("vector", {"service.name", "host.name"})):
            result = self.execute(harness.target("program_live_shapes"), "leak",
                                  period="512")
            test_export.run("export", "otlp", *result.paths,
                            self.paths[other], "-o", self.file)
            with open(self.file, "rb") as f:
                facts = Message(f.read()).facts
            self.assertEqual(set(facts), want)
        self.assertEqual(facts["service.name"], "unknown_service")

    def test_json(self):
        """The same message; ids are hexadecimal, wide integers are text."""
        m = self.message("vector")
        text = self.export("otlp_json", "vector").decode()
        self.assertEqual(text.count("\n"), 1)
        read = json.loads(text)

        def with_base64(value, name=""):
            if isinstance(value, dict):
                return {k: with_base64(v, k) for k, v in value.items()}
            if isinstance(value, list):
                return [with_base64(v, name) for v in value]
            if name in ("traceId", "spanId", "profileId"):
                return base64.b64encode(bytes.fromhex(value)).decode()
            return value
        again = json_format.ParseDict(with_base64(read), otlp.ProfilesData())
        self.assertEqual(again, m.data)
        profile = read["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
        self.assertEqual([type(profile[k]) for k in ("timeUnixNano", "period")],
                         [str, str])


class Handler(test_push.Handler):
    """As a collector.  The fault "drop": take it and say that nothing of it
    was kept; "warn": keep it and say something."""

    def check(self, body):
        assert self.path == "/v1development/profiles", self.path
        assert self.headers["Content-Type"] == "application/x-protobuf"
        assert self.headers["Content-Encoding"] == "gzip"
        m = Message(gzip.decompress(body))
        assert [name for name, _ in m.profiles][0] == "alloc_space"
        assert {name for name, _ in m.profiles} == set(test_push.TYPES)
        return m.facts["service.name"], m

    def answer(self, fault):
        response = otlp.ExportProfilesServiceResponse()
        if fault in ("drop", "warn"):
            response.partial_success.error_message = "no \x1b]0;title, sorry"
        if fault == "drop":
            response.partial_success.rejected_profiles = 4
        body = response.SerializeToString()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_response(self, code, message=None):
        super().send_response(code, message)
        if code == 503:
            self.send_header("Retry-After", "3")


class Push(test_push.Push):
    TO, HANDLER = "--otlp", Handler

    def test_exact(self):
        """All deltas add up to the exact totals, also what was refused."""
        server = self.serve([500, "take", 429, "warn"])
        push = self.follow(server.url)
        target = self.start_steps(labels="service=shop")
        for n in (3, 200, 1, 50, 0, 0, 170):
            self.step(target, n)
        exact = self.finish(target)
        self.end(push)
        self.check_sums(server, exact)
        self.assertEqual({name for name, _ in server.taken}, {"shop"})
        profiles = [m.profiles["alloc_space", "bytes"] for _, m in server.taken]
        ends = 0
        for p in profiles:
            self.assertGreaterEqual(p.time_unix_nano, ends)
            ends = p.time_unix_nano + p.duration_nano
        self.assertEqual(len({p.profile_id for p in profiles}), len(profiles))

    def test_answers(self):
        """What a server drops is not sent again, and named; it is waited for
        as long as it asks."""
        files = self.record(1)
        server = self.serve(["drop"])
        push = self.begin(server.url, *files)
        self.assertEqual(push.wait(harness.TIMEOUT_S), 1)
        self.assertEqual((server.wrong, len(server.headers)), ([], 1))
        self.assertRegex(self.said(), r"dropped 4 of them: no ")
        self.assertNotIn("\x1b", self.said())
        server = self.serve([503])
        push = self.begin(server.url, *files)
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        self.assertIn("next try in 3.0 s", self.said())
        self.assertEqual((server.wrong, len(server.taken)), ([], 1))

    def test_headers(self):
        server = self.serve()
        files = self.record(1)
        with open(self.path("token"), "w", encoding="ascii") as token:
            token.write("s3cret\n")
        push = self.begin(server.url + "/", "--token-file", "token",
                          "--header", "X-Scope-OrgID: 7", *files)
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        self.assertEqual([(h["Authorization"], h["X-Scope-OrgID"])
                          for h in server.headers], [("Bearer s3cret", "7")])
        for wrong in ("no colon", "a\nb: c", ": x", "ä: x"):
            self.sampleprof("push", "--otlp", server.url, "--header", wrong,
                            *files, code=2)
        self.assertIn("--otlp cannot be used with --pyroscope", self.sampleprof(
            "push", "--otlp", server.url, "--pyroscope", server.url, *files,
            code=2).stderr)

    def test_certificate(self):
        """Of an authority of one's own: only with --ca-file."""
        files = self.record(1)
        subprocess.run([harness.require("openssl", "openssl"), "req", "-x509",
                        "-newkey", "rsa:2048", "-nodes", "-subj",
                        "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem",
                        "-out", "cert.pem"], cwd=self.dir, check=True,
                       stderr=subprocess.DEVNULL)
        server = test_push.Server(handler=Handler)
        self.addCleanup(server.server_close)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("cert.pem"), self.path("key.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.addCleanup(server.shutdown)
        url = server.url.replace("http:", "https:")
        push = self.begin(url, "--ca-file", "cert.pem", *files)
        self.assertEqual(push.wait(harness.TIMEOUT_S), 0)
        self.assertEqual((server.wrong, len(server.taken)), ([], 1))
        push = self.begin(url, *files)
        self.wait_for("certificate")
        push.terminate()
        self.assertEqual(push.wait(harness.TIMEOUT_S), 1)
