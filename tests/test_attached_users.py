"""Files of mounts that nodes open with the identity of the user."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import attached
import numpy as np
import pytest
from cluster import Nodes, Up, until
from identity import OTHER, TOKENS, other, socket, write_tokens  # noqa: F401

import gristmill as gm

ALICE, GROUP, SECOND_GROUP, BOB = 54_321, 54_322, 54_323, 54_331
NUMBERS = np.random.default_rng(3).normal(size=3_000_000)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can take on the identity of other users")


@pytest.fixture
def mount():
    """A folder that every user reaches. pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="gm-mount"))
    yield attached.Mounted(folder)
    shutil.rmtree(folder)


def own(mount, name, content, owner, group, mode):
    mount.put(name, content)
    path = mount.folder / name
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


def users_file(folder, text):
    path = folder / "users"
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def up(clusters, tmp_path_factory):
    """A cluster that knows alice, who has two groups, and bob, who is no user of the mounts."""
    folder = tmp_path_factory.mktemp("users")
    known = users_file(folder, f"# who is who\nalice {ALICE} {GROUP} {SECOND_GROUP}\n")
    args = ("--tokens", write_tokens(folder), "--mount-users", known, "--admin", "anonymous")
    return clusters(Up, nodes=3, args=args)


@pytest.fixture
def alice(up):
    return {"GRISTMILL_TOKEN": TOKENS["alice"]}


@pytest.fixture
def bob(up):
    return {"GRISTMILL_TOKEN": TOKENS["bob"]}


@pytest.fixture
def tree(up, mount):
    """The mount, attached as /m."""
    up.grist.ok("attach", mount.source, up.url("/m"))
    yield mount
    up.grist.ok("detach", up.url("/m"))


def test_all_nodes_read_a_file_of_the_user(up, tree, alice, bob, tmp_path):
    path = own(tree, "x.f64", NUMBERS.tobytes(), ALICE, 0, 0o600)
    local = up.grist.answer("sum", path, "--type", "f64")["result"]
    for place in ("storage", "client"):
        answer = up.grist.answer("sum", up.url("/m/x.f64"), "--type", "f64", "--place", place, env=alice)
        assert answer["result"] == local
        if place == "storage":
            assert len({place["node"] for place in answer["report"]["places"] if place["bytes"]}) == 3
    up.grist.ok("get", up.url("/m/x.f64"), tmp_path / "copy", env=alice)
    assert (tmp_path / "copy").read_bytes() == NUMBERS.tobytes()
    for command in (("get", up.url("/m/x.f64"), "-"), ("run", "sum", up.url("/m/x.f64"), "--type", "f64"), ("stat", up.url("/m/x.f64"))):
        text = up.grist.refuses(1, *command, env=bob)
        assert "may not be read" in text and "--mount-users" in text and "chmod go+r" in text
    # A user that the cluster knows learns as whom the nodes asked.
    path.chmod(0o400)
    os.chown(path, BOB, BOB)
    text = up.grist.refuses(1, "get", up.url("/m/x.f64"), "-", env=alice)
    assert f"as user {ALICE}" in text and "permission denied" in text


def test_groups_and_folders_count_as_for_every_program(up, tree, alice):
    for name, owner, group, mode, readable in [
        ("own.u8", ALICE, 0, 0o400, True),
        ("group.u8", 0, GROUP, 0o040, True),
        ("second.u8", BOB, SECOND_GROUP, 0o640, True),
        ("public.u8", BOB, BOB, 0o604, True),
        ("bob.u8", BOB, BOB, 0o600, False),
        ("not-the-owner.u8", ALICE, GROUP, 0o044, False),
        ("closed/public.u8", BOB, BOB, 0o644, False),
    ]:
        own(tree, name, b"12345678", owner, group, mode)
        if name.startswith("closed/"):
            own(tree, "closed/searchable.u8", b"12345678", ALICE, 0, 0o600)
            os.chown(tree.folder / "closed", BOB, BOB)
            (tree.folder / "closed").chmod(0o700)
        if readable:
            assert up.grist.ok("get", up.url(f"/m/{name}"), "-", env=alice) == b"12345678", name
        else:
            assert "may not be read" in up.grist.refuses(1, "get", up.url(f"/m/{name}"), "-", env=alice), name
    listed = json.loads(up.grist.ok("ls", up.url("/m"), "--json", env=alice))["entries"]
    assert {one["name"]: one["kind"] for one in listed} == {
        "bob.u8": "unreadable", "closed": "directory", "group.u8": "file", "not-the-owner.u8": "unreadable",
        "own.u8": "file", "public.u8": "file", "second.u8": "file",
    }  # fmt: skip
    # Whether a name exists in a closed folder is not told.
    texts = {up.grist.refuses(1, "stat", up.url(f"/m/closed/{name}"), env=alice).replace(name, "NAME")
             for name in ("public.u8", "nothing.u8")}  # fmt: skip
    assert len(texts) == 1 and "may not be read" in texts.pop()
    # To search a folder is less than to list it.
    (tree.folder / "closed").chmod(0o711)
    assert up.grist.ok("get", up.url("/m/closed/searchable.u8"), "-", env=alice) == b"12345678"
    assert "may not be read" in up.grist.refuses(1, "ls", up.url("/m/closed"), env=alice)


def test_python_reads_as_the_user(up, tree, alice, monkeypatch):
    own(tree, "x.f64", NUMBERS[:1000].tobytes(), ALICE, 0, 0o600)
    with pytest.raises(PermissionError, match="x.f64"):
        monkeypatch.setenv("GRISTMILL_TOKEN", TOKENS["bob"])
        gm.run("sum", up.url("/m/x.f64"), type="f64")
    monkeypatch.setenv("GRISTMILL_TOKEN", TOKENS["alice"])
    assert gm.run("count", up.url("/m/x.f64"), type="f64")["count"] == 1000
    with gm.open(up.url("/m/x.f64")) as file:
        assert file.read() == NUMBERS[:1000].tobytes()


def test_a_file_that_is_closed_later_is_closed(up, tree, alice):
    path = own(tree, "x.u8", b"12345678", ALICE, 0, 0o600)
    assert up.grist.ok("get", up.url("/m/x.u8"), "-", env=alice) == b"12345678"
    path.chmod(0)
    assert "may not be read" in up.grist.refuses(1, "get", up.url("/m/x.u8"), "-", env=alice)


def test_users_of_the_system_are_found_by_their_number(nodes_of_test, mount, other, socket):
    place = socket.with_name("system.sock")
    own(mount, "x.u8", b"12345678", OTHER, 0, 0o600)
    up = nodes_of_test(Up, nodes=2, args=("--socket", place, "--mount-users", "system"))
    url = f"grist+unix://{place}:/m"
    up.grist.ok("attach", mount.source, url)
    assert other.ok("get", f"{url}/x.u8", "-") == b"12345678"
    # The loopback does not tell who asks.
    assert "may not be read" in up.grist.refuses(1, "get", up.url("/m/x.u8"), "-")


def test_a_new_user_is_known_without_a_restart(nodes_of_test, mount, tmp_path):
    own(mount, "x.u8", b"12345678", ALICE, 0, 0o600)
    known = users_file(tmp_path, "")
    args = ("--tokens", write_tokens(tmp_path), "--mount-users", known, "--admin", "anonymous")
    up = nodes_of_test(Up, nodes=1, args=args)
    up.grist.ok("attach", mount.source, up.url("/m"))
    env = {"GRISTMILL_TOKEN": TOKENS["alice"]}
    assert "may not be read" in up.grist.refuses(1, "get", up.url("/m/x.u8"), "-", env=env)
    known.write_text(f"alice {ALICE} {GROUP}\n")
    until(lambda: up.grist("get", up.url("/m/x.u8"), "-", env=env).returncode == 0, "the new user is known")
    # A mistake is reported, and the users that were read before stay.
    known.write_text("alice nobody\n")

    def said():
        # The file is looked at when somebody asks.
        assert up.grist.ok("get", up.url("/m/x.u8"), "-", env=env) == b"12345678"
        return "users that were read before stay in use" in up.process.err.read_text()

    until(said, "a line about the mistake")


class Bare(Nodes):
    """Nodes of root, some without the capabilities to take on an identity."""

    without = ()

    def before(self, number):
        return ("setpriv", "--bounding-set=-setuid,-setgid") if number in self.without else ()


@pytest.mark.parametrize("without", [(0, 1), (1,)], ids=["all", "one"])
def test_nodes_without_the_capabilities_read_what_everybody_may_read(nodes_of_test, mount, tmp_path, without):
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed (package util-linux)")
    own(mount, "private.f64", NUMBERS.tobytes(), ALICE, 0, 0o600)
    own(mount, "public.f64", NUMBERS.tobytes(), ALICE, 0, 0o644)
    known = users_file(tmp_path, f"alice {ALICE} {GROUP}\n")
    args = ("--tokens", write_tokens(tmp_path), "--mount-users", known, "--admin", "anonymous")
    kind = type("Bare", (Bare,), {"without": without})
    up = nodes_of_test(kind, nodes=2, args=args)
    up.grist.ok("attach", mount.source, up.url("/m"))
    env = {"GRISTMILL_TOKEN": TOKENS["alice"]}
    ask = ("--type", "f64", "--place", "storage")
    local = up.grist.answer("sum", mount.folder / "public.f64", "--type", "f64")["result"]
    assert up.grist.answer("sum", up.url("/m/public.f64"), *ask, env=env)["result"] == local
    text = up.grist.refuses(1, "run", "sum", up.url("/m/private.f64"), *ask, env=env)
    assert "CAP_SETUID" in text and "chmod go+r" in text


@pytest.mark.parametrize(
    ("line", "mode", "why"),
    [
        ("alice 0 0", 0o644, "identity of root"),
        ("alice", 0o644, "write PRINCIPAL UID GID"),
        ("alice 1 1", 0o666, "others may change these users"),
    ],
)
def test_a_wrong_file_of_users_is_refused(grist, tmp_path, line, mode, why):
    path = users_file(tmp_path, line + "\n")
    path.chmod(mode)
    text = grist.refuses(2, "serve", "--target", tmp_path / "node", "--listen", "127.0.0.1:0", "--mount-users", path)
    assert why in text and str(path) in text
