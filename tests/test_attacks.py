"""Attacks on nodes. Each test bounds what a node uses or how long other users wait."""

import http.client
import http.server
import json
import os
import signal
import socket
import struct
import threading

import numpy as np
import pytest
from cluster import DEADLINE, Nodes, Process, Up
from conftest import Gristmill
from http2 import SERVICE, Connection, action, ticket
from raw import opened, parts, seal, unsealed

MIB = 1 << 20
WORDS = b"".join(b"the quick brown fox %07d\n" % n for n in range(400_000))
TOKENS = "alice token-of-alice-0123456789\nbob token-of-bob-0123456789-x\n"

DENIED = "7"  # PERMISSION_DENIED of gRPC


@pytest.fixture(scope="module")
def up(clusters):
    up = clusters(Up, nodes=3)
    up.put("/words", WORDS, "--stripe", "64KiB")
    up.put("/numbers", np.arange(100_000, dtype="f8").tobytes(), "--stripe", "64KiB")
    up.put("/victim", b"stays")
    return up


@pytest.fixture(scope="module")
def closed(clusters, tmp_path_factory):
    """A node that requires an identity."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    return clusters(Nodes, nodes=1, args=("--tokens", tokens, "--require-identity"))


def resident(pid):
    """The resident memory of a process, in bytes."""
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_request(kernel, path, **params):
    return ticket({"gristmill": 1, "kernel": kernel, "path": path, "params": params})


def test_answers_that_nobody_reads_stop_nobody_else(up):
    """Three streams with a closed window once stopped all requests that read rows or take several passes, for minutes."""
    with Connection(up.entry, window=0) as unread:
        for _ in range(6):
            stream = unread.ask(f"{SERVICE}DoGet", run_request("grep", "/words", pattern="fox"))
            unread.until(stream, lambda answer: answer.headers)
        for pattern, expected in (("0000007$", 1), ("quick", 400_000)):
            grep = ("run", "grep", up.url("/words"), "-p", f"pattern={pattern}", "--place", "storage", "--json")
            assert json.loads(up.grist.ok(*grep))["result"]["count"] == expected
        median = ("run", "median", up.url("/numbers"), "--type", "f64", "--place", "storage", "--json")
        assert json.loads(up.grist.ok(*median))["result"]["median"] == 49_999.5
        with Connection(up.entry) as other:
            stream = other.ask(f"{SERVICE}DoGet", run_request("grep", "/words", pattern="0000007$"))
            assert other.answer(stream).headers["grpc-status"] == "0"


def test_who_does_not_say_who_it_is_gets_no_memory(closed):
    """A connection without credentials once held a gigabyte."""
    before = resident(closed.pid(0))
    with Connection(closed.entry) as stranger:
        streams = [stranger.begin(f"{SERVICE}DoGet") for _ in range(64)]
        for stream in streams:
            stranger.send(stream, b"\0" + struct.pack(">I", 16 * MIB) + b"[" * MIB, end=False)
        for stream in streams:
            assert stranger.answer(stream).headers["grpc-status"] == DENIED
    assert resident(closed.pid(0)) - before < 64 * MIB


def test_every_method_asks_who_it_is(closed):
    with Connection(closed.entry) as stranger:
        for method in ("DoAction", "DoGet", "DoPut", "DoExchange", "GetFlightInfo", "ListFlights", "ListActions", "Handshake"):
            answer = stranger.answer(stranger.ask(f"{SERVICE}{method}", action("ping", b"")))
            assert answer.headers["grpc-status"] == DENIED, method
        token = ("authorization", "Bearer token-of-alice-0123456789")
        answer = stranger.answer(stranger.ask(f"{SERVICE}DoAction", action("ping", b""), headers=[token]))
        assert answer.headers["grpc-status"] == "0"
    connection = http.client.HTTPConnection(closed.entry, timeout=30)
    for path, status in (("/health", 200), ("/", 200), ("/metrics", 403), ("/files/", 403), ("/cluster", 403),
                         ("/status", 403), ("/load/sum", 403), ("/objects/file-0", 403), ("/nothing", 403)):  # fmt: skip
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, path


def test_a_pass_of_another_cluster_is_none(closed, up):
    found = opened(up, "/victim")
    foreign = found["grant"].split(".", 2)[2]
    with Connection(closed.entry) as stranger:
        answer = stranger.answer(
            stranger.ask(f"{SERVICE}DoGet", ticket({"fold": {}}), headers=[("x-gristmill-pass", foreign)])
        )
        assert answer.headers["grpc-status"] == DENIED
    # Its own pass allows a fold, but nothing that only a user may do.
    closed.env["GRISTMILL_TOKEN"] = "token-of-alice-0123456789"
    closed.put("/mine", b"12345678", env=closed.env)
    own = seal(closed, {"principal": "alice", "rights": "read", "file": {}, "expires": 4_000_000_000}).split(".", 2)[2]
    with Connection(closed.entry) as alice:
        headers = [("x-gristmill-pass", own)]
        answer = alice.answer(alice.ask(f"{SERVICE}DoAction", action("open", b'{"path": "/mine"}'), headers=headers))
        assert answer.headers["grpc-status"] == DENIED
        answer = alice.answer(alice.ask(f"{SERVICE}DoGet", run_request("count", "/mine"), headers=headers))
        assert answer.headers["grpc-status"] == DENIED
        # The request was read, and refused because it makes no sense.
        answer = alice.answer(alice.ask(f"{SERVICE}DoGet", ticket({"fold": {}}), headers=headers))
        assert answer.headers["grpc-status"] == "3"


def status_of(address, method, path, headers, body=None):
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body or b"")))
    connection.endheaders(body or b"")
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_grpc_comes_as_grpc_only(up):
    """A web page may post text to any server. Such a request once removed a file."""
    body = action("remove", b'{"path": "/victim"}')
    host = ("Host", up.entry)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/grpc"):
        status, text = status_of(up.entry, "POST", f"{SERVICE}DoAction", [host, ("Content-Type", kind)], body)
        assert status == 415 and b"gRPC" in text, (kind, status, text)
    with Connection(up.entry) as page:
        answer = page.answer(page.ask(f"{SERVICE}DoAction", body, kind="text/plain"))
        assert answer.headers[":status"] == "415"
    assert up.get("/victim") == b"stays"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_requests_of_other_sites_are_refused(up, method):
    host = ("Host", up.entry)
    for headers in ([host, ("Origin", "http://evil.example")], [host, ("Origin", "null")],
                    [host, ("Origin", f"http://{up.entry}.evil.example")], [("Host", "evil.example")],
                    [host, ("Host", "evil.example")], [host, ("Sec-Fetch-Site", "cross-site")]):  # fmt: skip
        status, text = status_of(up.entry, method, "/files/victim", headers, b"")
        assert status in (400, 403), (headers, status, text)
    with Connection(up.entry) as rebound:
        for extra in ({"authority": "evil.example"}, {"headers": [("origin", "http://evil.example")]}):
            answer = rebound.answer(rebound.ask(f"{SERVICE}DoAction", action("remove", b'{"path": "/victim"}'), **extra))
            assert answer.headers["grpc-status"] == DENIED, extra
    assert up.get("/victim") == b"stays"


def test_a_page_of_this_node_may_ask_and_a_link_to_it_may_be_followed(up):
    host = ("Host", up.entry)
    for headers in ([host, ("Origin", f"http://{up.entry}"), ("Sec-Fetch-Site", "same-origin")],
                    [host, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]):  # fmt: skip
        assert status_of(up.entry, "GET", "/files/victim", headers) == (200, b"stays")
    # A followed link changes nothing.
    headers = [host, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    assert status_of(up.entry, "DELETE", "/files/victim", headers)[0] == 403


EVIL = """<!doctype html><title>begun</title><script>
const at = "http://%(node)s", grpc = at + "/arrow.flight.protocol.FlightService/DoAction";
const tries = [
  fetch(grpc, {method: "POST", mode: "no-cors", body: new Blob([new Uint8Array(%(remove)s)], {type: "text/plain"})}),
  fetch(grpc, {method: "POST", headers: {"content-type": "application/grpc"}, body: new Uint8Array(%(remove)s)}),
  fetch(at + "/files/victim", {method: "DELETE"}),
  fetch(at + "/files/victim", {method: "PUT", body: "changed"}),
  fetch(at + "/files/planted", {method: "POST", mode: "no-cors", body: "changed"}),
  fetch(at + "/files/victim").then(answer => answer.text()).then(text => { document.body.dataset.read = text; }),
];
Promise.allSettled(tries).then(() => { document.title = "done"; });
</script><body></body>"""


def test_a_page_in_a_browser_changes_and_reads_nothing(up):
    browser = pytest.importorskip("browser", reason="selenium is not installed")
    remove = list(action("remove", b'{"path": "/victim"}'))
    text = (EVIL % {"node": up.entry, "remove": remove}).encode()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    victim = browser.Browser()
    try:
        for host in ("127.0.0.1", "localhost"):
            victim.driver.get(f"http://{host}:{server.server_port}/")
            browser.until(lambda: victim.driver.title == "done", "all that the page tries came back")
            assert victim.script("return document.body.dataset.read") is None
            assert up.get("/victim") == b"stays"
            assert up.grist("stat", up.url("/planted")).returncode != 0
    finally:
        victim.close()
        server.shutdown()


def extents(address, name, grant, pairs):
    """A socket on which extents were requested and no answer was read."""
    asked = socket.create_connection(address.rsplit(":", 1), timeout=30)
    body = b"".join(struct.pack("<QQ", *pair) for pair in pairs)
    head = f"POST /objects/{name}/extents HTTP/1.1\r\nHost: {address}\r\nx-gristmill-grant: {grant}\r\n"
    asked.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return asked


def test_extents_that_nobody_reads_leave_room_for_others(up):
    """Two sockets per node once stopped all folds that need bytes of a neighbour."""
    found = opened(up, "/words")
    name, [first, *_] = parts(found)
    most = 3 * MIB
    as_one = lambda who: seal(up, {**unsealed(found["grant"]), "principal": who})
    greedy = [extents(first["address"], name, as_one("greedy"), [(0, most)] * 16) for _ in range(8)]
    try:
        other = extents(first["address"], name, as_one("other"), [(0, 1000)] * 4)
        answer = http.client.HTTPResponse(other)
        answer.begin()
        assert answer.status == 200 and len(answer.read()) == 4000
        assert up.grist.ok("run", "grep", up.url("/words"), "-p", "pattern=0000007$", "--place", "storage")
    finally:
        for asked in greedy:
            asked.close()


def test_patterns_that_compile_to_gigabytes_are_refused(up):
    done = up.grist("run", "grep", up.url("/words"), "-p", r"pattern=\pL{1000}")
    assert done.returncode == 2 and b"size limit" in done.stderr, done


def test_a_long_listing_comes_page_by_page_and_whole(up):
    folder = up.folder / "many"
    folder.mkdir()
    names = [f"{n:05}" for n in range(2_100)]
    for name in names:
        (folder / name).write_bytes(b"x")
    up.grist.ok("put", folder, up.url("/many"))
    status, text = status_of(up.entry, "GET", "/files/many/", [("Host", up.entry)])
    listing = json.loads(text)
    assert status == 200 and [entry["name"] for entry in listing["entries"]] == names and listing["more"] is False
    status, text = status_of(up.entry, "GET", "/files/nowhere/", [("Host", up.entry)])
    assert status == 404, text


def test_nobody_takes_the_port_of_a_node_that_is_away(nodes_of_test):
    """Another user's program once took the port of a stopped node, and was sent a grant of twelve hours."""
    up = nodes_of_test(Up, nodes=2)
    up.put("/file", b"12345678" * 1000, "--stripe", "64")
    address = up.addresses()[1]
    # The stopped supervisor cannot start the node again.
    up.process.signal(signal.SIGSTOP)
    up.send(1, signal.SIGKILL)
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            taker.bind(("127.0.0.1", int(address.rpartition(":")[2])))
    # A client that asks meanwhile waits and gets its answer.
    waits = Process(up.folder, "waits", ("get", up.url("/file"), "-"))
    up.process.signal(signal.SIGCONT)
    assert waits.child.wait(DEADLINE) == 0, waits.err.read_text()
    assert waits.out.read_bytes() == b"12345678" * 1000


def test_nodes_have_their_ports_again(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    before = up.addresses()
    up.restart()
    assert up.addresses() == before


def test_streams_that_are_opened_and_reset_by_the_thousand(up):
    """Rapid reset: the node may end such a connection. It must serve all others."""
    before = resident(up.pid(0))
    with Connection(up.entry) as attacker:
        try:
            for _ in range(5_000):
                stream = attacker.begin(f"{SERVICE}DoGet")
                attacker.h2.reset_stream(stream)
                attacker.flush()
        except OSError:
            pass
        assert up.get("/victim") == b"stays"
    assert resident(up.pid(0)) - before < 64 * MIB


def test_a_certificate_for_another_name_is_not_taken(nodes_of_test, tmp_path):
    Gristmill(tmp_path).ok("cert", "--dir", tmp_path, "storage.example")
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    names = {"--cert": "cert.pem", "--tls-key": "key.pem", "--ca": "ca.pem", "--tokens": "tokens"}
    given = [word for name, file in names.items() for word in (name, tmp_path / file)]
    # The certificate is for 127.0.0.1 and the name that was given.
    nodes = nodes_of_test(Up, nodes=1, args=given, listen="127.0.0.2:0")
    env = {"GRISTMILL_CA": str(tmp_path / "ca.pem"), "GRISTMILL_TOKEN": "token-of-alice-0123456789"}
    done = nodes.grist("ls", nodes.url("/"), env=env)
    assert done.returncode == 1 and b"certificate" in done.stderr, done
    assert b"token-of-alice" not in done.stderr


def test_secrets_are_in_no_argument_log_or_answer(closed):
    """The secrets are the tokens of users and the key of the cluster."""
    token = "token-of-alice-0123456789"
    env = {"GRISTMILL_TOKEN": token}
    closed.put("/secret", b"12345678", env=env)
    key = (closed.node_dir(0) / "cluster.key").read_text().strip()
    said = [closed.errors(), *(path.read_text(errors="replace") for path in closed.folder.glob("*.out"))]
    for what in (("run", "count", closed.url("/secret"), "--type", "u8", "--json"), ("stat", closed.url("/secret"), "--json"),
                 ("nodes", closed.url("/"), "--json"), ("get", closed.url("/nothing"), "-"), ("top", closed.url("/"), "--json"),
                 ("run", "count", closed.url("/secret"), "--type", "u8", "--explain")):  # fmt: skip
        done = closed.grist(*what, env=env)
        said += [done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")]
    wrong = closed.grist("ls", closed.url("/"), env={"GRISTMILL_TOKEN": token + "x"})
    assert wrong.returncode != 0
    said.append(wrong.stderr.decode())
    with open(f"/proc/{closed.pid(0)}/cmdline") as line:
        said.append(line.read())
    for text in said:
        assert token not in text and key not in text


def test_a_small_file_with_large_chunks_takes_no_more_memory_than_there_is_for_them(nodes_of_test, tmp_path):
    """A file of 3 MB once took eight gigabytes, because each lane of each request decodes its own chunk."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    up = nodes_of_test(Up, nodes=1, args=("--chunk-memory", "512MiB", "--lanes", "2"))
    chunk = 12 * MIB
    with h5py.File(tmp_path / "bomb.h5", "w") as file:
        data = file.create_dataset("x", (4 * chunk,), "f8", chunks=(chunk,), compression="gzip", compression_opts=1)
        for n in range(4):
            data[n * chunk : (n + 1) * chunk] = np.full(chunk, n + 1.0)
    up.grist.ok("put", tmp_path / "bomb.h5", up.url("/bomb.h5"))
    ask = ("run", "mean", up.url("/bomb.h5"), "--var", "x", "--place", "storage", "--json")
    asked = [Process(up.folder, f"asks{n}", ask) for n in range(6)]
    for one in asked:
        assert one.child.wait(10 * DEADLINE) == 0, one.err.read_text()
        assert json.loads(one.out.read_text())["result"]["mean"]["values"] == [2.5]
    with open(f"/proc/{up.pid(0)}/status") as status:
        [peak] = [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
    # The limit is half a gigabyte for chunks, and the other memory of a node.
    assert peak * 1024 < 1200 * MIB
