"""Who asks, and what they may do: uids over Unix sockets, tokens over TLS."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from cluster import Nodes, Up
from conftest import Gristmill, binary

OTHER = 65534
TOKENS = {"alice": "token-of-alice-0123456789", "bob": "token-of-bob-0123456789-x"}


@pytest.fixture(scope="module")
def socket():
    # The path of a socket is short, and open to the other user.
    folder = Path(tempfile.mkdtemp(prefix="gm"))
    folder.chmod(0o755)
    yield folder / "s.sock"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def up(clusters, socket):
    up = clusters(Up, nodes=2, args=("--socket", socket))
    up.socket_url = lambda path: f"grist+unix://{socket}:{path}"
    return up


class Other(Gristmill):
    """The program run by another user."""

    def __init__(self, cwd):
        super().__init__(cwd)
        copy = cwd / "gristmill"
        if not copy.exists():
            shutil.copy(binary(), copy)
            copy.chmod(0o755)
        self.copy = copy

    def __call__(self, *args, stdout=subprocess.PIPE, **_):
        return subprocess.run(
            [self.copy, *map(str, args)], cwd="/", env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.PIPE, timeout=60, user=OTHER, group=OTHER, extra_groups=[],
        )  # fmt: skip


@pytest.fixture(scope="module")
def other():
    if os.getuid() != 0:
        pytest.skip("only root can ask as another user")
    folder = Path(tempfile.mkdtemp(prefix="gm-other"))
    folder.chmod(0o755)
    (folder / "file").write_bytes(b"12345678")
    (folder / "file").chmod(0o644)
    yield Other(folder)
    shutil.rmtree(folder)


def store(up, path, content, *args, url=None):
    source = up.folder / "source"
    source.write_bytes(content)
    up.grist.ok("put", source, url or up.socket_url(path), *args)


def owner(up, path, **how):
    return json.loads(up.grist.ok("stat", up.url(path), "--json", **how))["owner"]


def test_over_the_socket_the_owner_is_the_user(up):
    store(up, "/mine", b"abc")
    assert owner(up, "/mine") == f"uid:{os.getuid()}"
    assert up.grist.ok("get", up.socket_url("/mine"), "-") == b"abc"
    store(up, "/public", b"abc", url=up.url("/public"))
    assert owner(up, "/public") == "anonymous"


def test_the_other_user_has_another_name(up, other):
    other.ok("put", other.cwd / "file", up.socket_url("/theirs"), "--mode", "600")
    denied(up.grist("get", up.url("/theirs"), "-"), "/theirs")
    about = json.loads(other.ok("stat", up.socket_url("/theirs"), "--json"))
    assert (about["owner"], about["mode"]) == (f"uid:{OTHER}", "600")
    assert other.ok("get", up.socket_url("/theirs"), "-") == b"12345678"
    other.ok("rm", up.socket_url("/theirs"))


COMMANDS = {
    "run": lambda url, file: ("run", "count", url, "--type", "u8"),
    "run at the client": lambda url, file: ("run", "count", url, "--type", "u8", "--place", "client"),
    "get": lambda url, file: ("get", url, "-"),
    "stat": lambda url, file: ("stat", url),
    "put": lambda url, file: ("put", file, url),
    "rm": lambda url, file: ("rm", url),
    "chmod": lambda url, file: ("chmod", "666", url),
}


def denied(done, path):
    assert done.returncode in (1, 2) and not done.stdout, done
    text = done.stderr.decode()
    assert text.count("\n") == 1 and path in text, text
    for word in ("12345678", "secret!!"):
        assert word not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_mode_600_keeps_others_out(up, other, command):
    store(up, "/closed", b"secret!!", "--mode", "600")
    denied(other(*COMMANDS[command](up.socket_url("/closed"), other.cwd / "file")), "/closed")
    denied(up.grist(*COMMANDS[command](up.url("/closed"), other.cwd / "file")), "/closed")
    assert up.grist.ok("get", up.socket_url("/closed"), "-") == b"secret!!"
    about = json.loads(up.grist.ok("stat", up.socket_url("/closed"), "--json"))
    assert about["mode"] == "600"


def test_mode_600_keeps_others_out_of_http(up):
    store(up, "/closed", b"secret!!", "--mode", "600")
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    for how in ((), ("-I",), ("-X", "DELETE"), ("-T", up.folder / "source")):
        done = subprocess.run(
            ["curl", "-sS", "-m", "30", "-w", "%{http_code}", *how, up.http("/closed")], capture_output=True
        )
        assert done.stdout.endswith(b"403") and b"secret" not in done.stdout, done


@pytest.mark.parametrize("command", COMMANDS)
def test_mode_644_lets_others_read_only(up, other, command):
    store(up, "/open", b"secret!!", "--mode", "644")
    done = other(*COMMANDS[command](up.socket_url("/open"), other.cwd / "file"))
    if command in ("put", "rm", "chmod"):
        denied(done, "/open")
        assert up.grist.ok("get", up.socket_url("/open"), "-") == b"secret!!"
    else:
        assert done.returncode == 0, done.stderr


def test_mode_666_lets_others_write_but_not_own(up, other):
    store(up, "/shared", b"abc", "--mode", "666")
    denied(other("chmod", "600", up.socket_url("/shared")), "/shared")
    other.ok("put", other.cwd / "file", up.socket_url("/shared"))
    assert up.grist.ok("get", up.socket_url("/shared"), "-") == b"12345678"
    assert owner(up, "/shared") == f"uid:{os.getuid()}"
    up.grist.ok("chmod", "600", up.socket_url("/shared"))
    denied(other("get", up.socket_url("/shared"), "-"), "/shared")


def test_names_of_closed_files_may_be_listed_but_not_more(up, other):
    store(up, "/dir/closed", b"secret!!", "--mode", "600")
    listed = other.ok("ls", up.socket_url("/dir"))
    assert b"secret" not in listed


# Tokens over TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    Gristmill(folder).ok("cert", "--dir", folder)
    return folder


def write_tokens(folder, mode=0o600):
    path = folder / f"tokens-{mode:o}"
    path.write_text("# who may come in\n\n" + "".join(f"{n} {t}\n" for n, t in TOKENS.items()))
    path.chmod(mode)
    return path


def tls_args(certificates):
    return (
        "--cert", certificates / "cert.pem", "--tls-key", certificates / "key.pem",
        "--ca", certificates / "ca.pem", "--tokens", write_tokens(certificates),
    )  # fmt: skip


@pytest.fixture(scope="module")
def tls(clusters, certificates):
    up = clusters(Up, nodes=2, args=tls_args(certificates))
    up.put("/of-alice", b"secret!!" * 1000, "--stripe", "1KiB", "--mode", "600", env=who(certificates, "alice"))
    return up


def who(certificates, name):
    return {"GRISTMILL_CA": str(certificates / "ca.pem"), "GRISTMILL_TOKEN": TOKENS[name]}


def test_certificates_are_made_once_and_keys_are_closed(certificates):
    assert sorted(os.listdir(certificates))[:2] == ["ca.pem", "cert.pem"]
    assert (certificates / "key.pem").stat().st_mode & 0o077 == 0


def test_a_token_is_a_name(tls, certificates):
    alice, bob = who(certificates, "alice"), who(certificates, "bob")
    assert owner(tls, "/of-alice", env=alice) == "alice"
    assert tls.get("/of-alice", env=alice) == b"secret!!" * 1000
    for place in ("storage", "client"):
        answer = tls.grist.answer("count", tls.url("/of-alice"), "--type", "u8", "--place", place, env=alice)
        assert answer["result"] == {"count": 8000}
    for command in COMMANDS.values():
        denied(tls.grist(*command(tls.url("/of-alice"), tls.folder / "up.out"), env=bob), "/of-alice")
    tls.put("/of-bob", b"1", env=bob)
    assert owner(tls, "/of-bob", env=bob) == "bob"
    assert tls.get("/of-bob", env=alice) == b"1"


def test_a_token_from_a_file(tls, certificates, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKENS["alice"] + "\n")
    file.chmod(0o600)
    env = {"GRISTMILL_CA": str(certificates / "ca.pem"), "GRISTMILL_TOKEN_FILE": str(file)}
    assert tls.get("/of-alice", env=env) == b"secret!!" * 1000
    env["GRISTMILL_TOKEN_FILE"] = str(tmp_path / "absent")
    done = tls.grist("get", tls.url("/of-alice"), "-", env=env)
    assert done.returncode in (1, 2) and b"absent" in done.stderr


def test_a_wrong_token(tls, certificates):
    env = who(certificates, "alice") | {"GRISTMILL_TOKEN": "token-of-mallory-012345"}
    for command in COMMANDS.values():
        done = tls.grist(*command(tls.url("/of-alice"), tls.folder / "up.out"), env=env)
        assert done.returncode in (1, 2) and b"token" in done.stderr, done.stderr
        assert b"mallory" not in done.stderr
    done = tls.grist("stat", tls.url("/of-alice"), env=env | {"GRISTMILL_TOKEN": "new\nline"})
    assert done.returncode in (1, 2) and b"token" in done.stderr.lower()


def test_without_an_authority_nothing_is_said(tls, certificates, tmp_path):
    env = {"GRISTMILL_TOKEN": TOKENS["alice"]}
    done = tls.grist("stat", tls.url("/of-alice"), env=env)
    assert done.returncode == 1, done
    assert b"GRISTMILL_CA" in done.stderr or b"TLS" in done.stderr, done.stderr
    Gristmill(tmp_path).ok("cert", "--dir", tmp_path)
    env["GRISTMILL_CA"] = str(tmp_path / "ca.pem")
    done = tls.grist("stat", tls.url("/of-alice"), env=env)
    assert done.returncode == 1 and b"certificate" in done.stderr.lower(), done.stderr
    env["GRISTMILL_CA"] = str(tmp_path / "absent.pem")
    done = tls.grist("stat", tls.url("/of-alice"), env=env)
    assert done.returncode in (1, 2) and b"absent.pem" in done.stderr


def test_a_plain_client_of_a_tls_node(tls):
    done = tls.grist("stat", tls.url("/of-alice"))
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
    assert b"GRISTMILL_CA" in done.stderr, done.stderr


def test_a_tls_client_of_a_plain_node(up, certificates):
    store(up, "/plain", b"1", url=up.url("/plain"))
    done = up.grist("stat", up.url("/plain"), env=who(certificates, "alice"))
    assert done.returncode == 1 and b"TLS" in done.stderr, done.stderr


def test_no_token_is_seen_anywhere(tls, certificates):
    tls.get("/of-alice", env=who(certificates, "alice"))
    for pid in [tls.process.pid, *tls.pids().values()]:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        for token in TOKENS.values():
            assert token.encode() not in words and token.encode() not in environment
    said = tls.errors() + tls.process.out.read_text()
    for token in TOKENS.values():
        assert token not in said
        for path in tls.folder.glob("store/**/*"):
            if path.is_file():
                assert token.encode() not in path.read_bytes(), path


def test_identity_may_be_required(nodes_of_test, certificates):
    tokens = write_tokens(certificates)
    nodes = nodes_of_test(Up, nodes=2, args=("--require-identity", "--tokens", tokens))
    alice = {"GRISTMILL_TOKEN": TOKENS["alice"]}
    source = nodes.folder / "source"
    source.write_bytes(b"12345678")
    for command in (("ls", nodes.url()), ("put", source, nodes.url("/x")), ("stat", nodes.url("/x"))):
        done = nodes.grist(*command)
        assert done.returncode in (1, 2) and b"GRISTMILL_TOKEN" in done.stderr, (command, done.stderr)
    done = nodes.grist("nodes", nodes.url())
    assert done.returncode != 0
    nodes.grist.ok("put", source, nodes.url("/x"), "--stripe", "3", env=alice)
    assert owner(nodes, "/x", env=alice) == "alice"
    assert nodes.get("/x", env=alice) == b"12345678"
    answer = nodes.grist.answer("count", nodes.url("/x"), "--type", "u8", "--place", "storage", env=alice)
    assert answer["result"] == {"count": 8}


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_nobody_listens_beyond_the_machine_without_tls_and_tokens(grist, tmp_path, certificates, listen):
    message = grist.refuses(2, "serve", "--target", tmp_path / "t", "--listen", listen)
    assert "TLS" in message or "--cert" in message, message
    tls = ("--cert", certificates / "cert.pem", "--tls-key", certificates / "key.pem")
    message = grist.refuses(2, "serve", "--target", tmp_path / "t", "--listen", listen, *tls)
    assert "--tokens" in message or "token" in message, message
    tokens = ("--tokens", write_tokens(certificates))
    message = grist.refuses(2, "serve", "--target", tmp_path / "t", "--listen", listen, *tokens)
    assert "--cert" in message or "TLS" in message, message
    done = grist("up", "--dir", tmp_path / "u", "--listen", listen)
    assert done.returncode != 0 and (b"TLS" in done.stderr or b"--cert" in done.stderr), done.stderr


def test_nobody_dials_beyond_the_machine_without_an_authority(grist):
    message = grist.refuses(2, "stat", "grist://192.0.2.1:7440/x")
    assert "GRISTMILL_CA" in message, message


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_tokens_that_others_may_read_are_refused(grist, tmp_path, mode):
    tokens = write_tokens(tmp_path, mode)
    message = grist.refuses(
        2, "serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0", "--tokens", tokens
    )
    assert "600" in message and str(tokens) in message, message


@pytest.mark.parametrize("content", ["alice\n", "alice short\n", "\0\0 x\n", "x" * (2 << 20)], ids=len)
def test_tokens_that_are_none_are_refused_and_not_shown(grist, tmp_path, content):
    tokens = tmp_path / "tokens"
    tokens.write_text(content)
    tokens.chmod(0o600)
    started = ("serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0", "--tokens", tokens)
    message = grist.refuses(2, *started)
    assert str(tokens) in message and "short" not in message


def test_an_administrator_may_do_everything(nodes_of_test, socket, other):
    path = socket.parent / "admin.sock"
    up = nodes_of_test(Up, nodes=1, args=("--socket", path, "--admin", f"uid:{OTHER}"))
    url = f"grist+unix://{path}:/closed"
    store(up, "/closed", b"secret!!", "--mode", "600", url=url)
    assert other.ok("get", url, "-") == b"secret!!"
    other.ok("chmod", "644", url)
    assert owner(up, "/closed") == f"uid:{os.getuid()}"
    other.ok("rm", url)


def test_the_key_of_the_cluster_is_closed(up):
    for number in range(up.count):
        for path in up.node_dir(number).glob("**/*.key"):
            assert path.stat().st_mode & 0o077 == 0, path


def test_nodes_over_tls_one_by_one(nodes_of_test, certificates):
    nodes = nodes_of_test(Nodes, nodes=2, args=tls_args(certificates))
    alice = who(certificates, "alice")
    nodes.put("/x", b"12345678" * 100, "--stripe", "64", env=alice)
    assert nodes.get("/x", env=alice) == b"12345678" * 100
    crossing = ("--type", "u64", "--skip", "4", "--range", "4:792", "--place", "storage")
    answer = nodes.grist.answer("count", nodes.url("/x"), *crossing, env=alice)
    assert answer["result"] == {"count": 99}
