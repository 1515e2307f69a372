"""Names of files of a cluster: listed, described, changed and removed, and refused if they make no sense."""

import json
import re

import pytest
from cluster import Up, until


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=4)


def test_text_for_people(up):
    up.put("/people/a.bin", bytes(3 << 20), "--stripe", "64KiB", "--mode", "640")
    up.put("/people/sub/b.bin", b"1")
    assert up.grist.ok("ls", up.url("/people")).decode().split() == ["a.bin", "sub/"]
    assert up.grist.ok("ls", up.url("/people/")).decode().split() == ["a.bin", "sub/"]
    long = up.grist.ok("ls", "-l", up.url("/people")).decode().splitlines()
    assert re.fullmatch(
        r"640  anonymous +3\.00 MiB +x4  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  a\.bin", long[0]
    ), long
    assert long[1].split() == ["sub/"]
    told = up.grist.ok("stat", up.url("/people/a.bin")).decode()
    assert "3.00 MiB (3145728 bytes), stripes of 64.00 KiB on 4 targets" in told
    assert "owner anonymous, mode 640" in told
    assert told.count("\n  target ") == 4
    nodes = up.grist.ok("nodes", up.url()).decode().splitlines()
    assert [line.split()[:2] for line in nodes] == [["target", str(n)] for n in range(4)]
    assert nodes[0].split()[2] == up.entry
    assert up.grist.ok("ls", "-l", up.url("/people/a.bin")).decode().count("\n") == 1


def test_json_for_programs(up):
    up.put("/programs/a.bin", b"12345", "--stripe", "2B", "--mode", "600")
    listed = json.loads(up.grist.ok("ls", up.url("/programs"), "--json"))
    entry = listed["entries"][0]
    assert listed["path"].rstrip("/") == "/programs" and len(listed["entries"]) == 1
    assert entry.items() >= {
        "name": "a.bin", "kind": "file", "length": 5, "stripe_unit": 2, "targets": 4,
        "owner": "anonymous", "mode": "600",
    }.items()  # fmt: skip
    root = json.loads(up.grist.ok("ls", up.url(), "--json"))["entries"]
    assert {"name": "programs", "kind": "directory"} in root
    nodes = json.loads(up.grist.ok("nodes", up.url(), "--json"))["nodes"]
    assert [node["target"] for node in nodes] == [0, 1, 2, 3]
    assert all(re.fullmatch("[0-9a-f]{32}", node["id"]) for node in nodes)
    about = up.stat("/programs/a.bin")
    assert (about["owner"], about["mode"], about["record"]) == ("anonymous", "600", None)


def test_chmod_and_rm(up):
    up.put("/change", b"abc", "--mode", "600")
    assert up.grist.ok("chmod", "644", up.url("/change")) == b""
    assert up.stat("/change")["mode"] == "644"
    for wrong in ("888", "rw", "1777", "+644", "-1"):
        up.grist.refuses(2, "chmod", wrong, up.url("/change"))
    identity = up.stat("/change")["id"]
    assert up.grist.ok("rm", up.url("/change")) == b""
    message = up.grist.refuses(2, "stat", up.url("/change"))
    assert "/change" in message
    until(
        lambda: not [path for path in up.objects() if identity in path.name], "the objects of a removed file go"
    )


def test_rm_of_several_files(up):
    for name in ("x", "y"):
        up.put(f"/several/{name}", b"1")
    up.grist.ok("rm", up.url("/several/x"), up.url("/several/y"))
    for name in ("x", "y"):
        up.grist.refuses(2, "stat", up.url(f"/several/{name}"))
    names = [e["name"] for e in json.loads(up.grist.ok("ls", up.url(), "--json"))["entries"]]
    assert "several" not in names


def test_the_cluster_of_the_environment(up):
    up.put("/env/a", b"abc")
    env = {"GRISTMILL_CLUSTER": up.entry}
    assert up.grist.ok("get", "grist:///env/a", "-", env=env) == b"abc"
    assert up.grist.ok("ls", "grist:///env", env=env) == b"a\n"
    assert b"env/" in up.grist.ok("ls", env=env)
    assert up.grist.ok("nodes", env=env).count(b"\n") == 4
    assert "GRISTMILL_CLUSTER" in up.grist.refuses(2, "stat", "grist:///env/a")


def test_the_cluster_of_the_environment_as_up_prints_it(up):
    up.put("/env/a", b"abc")
    for form in (up.url(), up.url().rstrip("/")):
        assert up.grist.ok("get", "grist:///env/a", "-", env={"GRISTMILL_CLUSTER": form}) == b"abc"


def test_requests_that_make_no_sense(up, tmp_path):
    up.put("/file", b"abc")
    source = tmp_path / "source"
    source.write_bytes(b"abc")
    refuses = up.grist.refuses
    for command in (["stat"], ["rm"], ["chmod", "600"], ["run", "count"], ["ls"]):
        assert "/absent" in refuses(2, *command, up.url("/absent"))
    assert "/absent" in refuses(2, "get", up.url("/absent"), tmp_path / "x")
    assert not (tmp_path / "x").exists()
    message = refuses(2, "put", source, up.url("/file/below"))
    assert "/file" in message and "directory" in message
    up.put("/directory/inside", b"1")
    message = refuses(2, "put", source, up.url("/directory"))
    assert "/directory" in message
    for command in (["rm"], ["run", "count"]):
        assert "/directory" in refuses(2, *command, up.url("/directory"))
    assert "9" in refuses(2, "put", source, up.url("/q"), "--on", "9")
    refuses(2, "put", source, up.url("/q"), "--on", "1,1")
    refuses(2, "put", source, up.url("/q"), "--on", "a")
    refuses(2, "put", source, up.url("/q"), "--targets", "9")
    refuses(2, "put", source, up.url("/q"), "--targets", "0")
    refuses(2, "put", source, up.url("/q"), "--stripe", "0")
    refuses(2, "put", source, up.url("/q"), "--record", "0")
    refuses(2, "put", source, up.url("/q"), "--mode", "999")
    assert "/q" not in up.grist.ok("ls", up.url()).decode()
    code = up.grist("put", tmp_path / "absent", up.url("/q"))
    assert code.returncode in (1, 2) and b"absent" in code.stderr


@pytest.mark.parametrize(
    "path", ["/../etc/passwd", "/a/../b", "/./a", "/a//b", "/" + "n" * 300, "/" + "/".join("d" * 3000), "/a\nb"]
)
def test_paths_that_are_none(up, tmp_path, path):
    source = tmp_path / "source"
    source.write_bytes(b"abc")
    up.grist.refuses(2, "put", source, up.url(path))
    up.grist.refuses(2, "stat", up.url(path))


@pytest.mark.parametrize(
    "url",
    ["grist://", "grist://host", "grist://host:99999/x", "grist://:1/x", "grist:/x", "ftp://127.0.0.1:1/x",
     "grist://a b/x", "grist+unix://relative:/x", "grist+unix:///no-path"],
)  # fmt: skip
def test_addresses_that_are_none(grist, url):
    grist.refuses(2, "stat", url)


def test_an_address_where_nobody_is(grist):
    message = grist.refuses(1, "stat", "grist://127.0.0.1:1/x")
    assert "127.0.0.1:1" in message
    message = grist.refuses(1, "stat", "grist+unix:///nowhere/s.sock:/x")
    assert "/nowhere/s.sock" in message


def test_names_of_all_sorts(up):
    for name in ("/spaces in it", "/grüße.txt", "/percent%20", "/a+b?c#d", "/.hidden", "/-dash", "/quo\"te'"):
        up.put(name, name.encode())
        assert up.get(name) == name.encode()
        assert up.stat(name)["path"] == name


@pytest.mark.parametrize("path", ["/runs", "/runs/", "/runs/deeper", "/"])
def test_a_directory_is_said_to_be_one(up, tmp_path, path):
    up.put("/runs/deeper/file", b"1")
    url = up.url(path)
    for command in (["rm", url], ["chmod", "600", url], ["run", "count", url]):
        message = up.grist.refuses(2, *command)
        assert f"{path} is a directory" in message and "ls" in message, message
    assert not (tmp_path / "x").exists()
    assert up.get("/runs/deeper/file") == b"1"
    for absent in ("/run", "/runs/deep", "/absent/"):
        message = up.grist.refuses(2, "stat", up.url(absent))
        assert absent in message and "is a directory" not in message, message
