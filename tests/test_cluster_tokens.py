"""Identity over TLS: names with tokens, certificates, and who may listen beyond this machine."""

import itertools
import os
from pathlib import Path

import pytest
from cluster import Nodes, Up, until
from conftest import Gristmill
from identity import (  # noqa: F401
    COMMANDS, TOKENS, certificates, denied, owner, socket, store, tls_args, up, who, write_tokens,
)  # fmt: skip


@pytest.fixture(scope="module")
def tls(clusters, certificates):
    up = clusters(Up, nodes=2, args=tls_args(certificates))
    up.put("/of-alice", b"secret!!" * 1000, "--stripe", "1KiB", "--mode", "600", env=who(certificates, "alice"))
    return up


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


def test_tokens_are_read_again_when_they_change(nodes_of_test, tmp_path):
    tokens = write_tokens(tmp_path)
    up = nodes_of_test(Up, nodes=2, args=("--require-identity", "--tokens", tokens))
    alice, carol = {"GRISTMILL_TOKEN": TOKENS["alice"]}, {"GRISTMILL_TOKEN": "token-of-carol-0123456789"}
    source = up.folder / "source"
    source.write_bytes(b"12345678")
    up.grist.ok("put", source, up.url("/x"), "--stripe", "3", env=alice)
    up.grist.refuses(1, "stat", up.url("/x"), env=carol)

    def written(text):
        new = tmp_path / "new"
        new.write_text(text)
        new.chmod(0o600)
        new.rename(tokens)

    def known(who):
        return up.grist("stat", up.url("/x"), env=who).returncode == 0

    written(f"carol {carol['GRISTMILL_TOKEN']}\n")
    until(lambda: known(carol), "the new token is known")
    assert not known(alice)
    # A token file that is not valid changes nothing, and the nodes say why.
    for damaged in ("carol short\n", "\0\n"):
        said = len(up.process.err.read_bytes())
        written(damaged)
        until(lambda: known(carol) and b"stay in use" in up.process.err.read_bytes()[said:], "it is said why")
    tokens.unlink()
    assert known(carol)
    # The file is changed in place and keeps its length.
    written(f"carol {carol['GRISTMILL_TOKEN']}\n")
    with tokens.open("r+") as file:
        file.write(f"bruno {carol['GRISTMILL_TOKEN']}\n")
    numbers = itertools.count()

    def owned():
        # The name can change in the middle of a put, which is then refused. So each attempt has its own path.
        path = f"/mine-{next(numbers)}"
        put = up.grist("put", source, up.url(path), env=carol)
        return put.returncode == 0 and owner(up, path, env=carol) == "bruno"

    until(owned, "the new name is known")
    for token in (carol["GRISTMILL_TOKEN"], TOKENS["alice"]):
        assert token not in up.errors()


def test_nodes_over_tls_one_by_one(nodes_of_test, certificates):
    nodes = nodes_of_test(Nodes, nodes=2, args=tls_args(certificates))
    alice = who(certificates, "alice")
    nodes.put("/x", b"12345678" * 100, "--stripe", "64", env=alice)
    assert nodes.get("/x", env=alice) == b"12345678" * 100
    crossing = ("--type", "u64", "--skip", "4", "--range", "4:792", "--place", "storage")
    answer = nodes.grist.answer("count", nodes.url("/x"), *crossing, env=alice)
    assert answer["result"] == {"count": 99}
