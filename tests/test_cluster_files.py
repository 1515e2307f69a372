"""Files of a cluster: stored, read, listed, changed and removed with the command."""

import json
import os
import re
from pathlib import Path

import pytest
from cluster import Nodes, Up, until

MIB = 1 << 20


def noise(count, seed=1) -> bytes:
    import numpy

    return numpy.random.default_rng(seed).bytes(count)


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=4)


def stat(up, path):
    return json.loads(up.grist.ok("stat", up.url(path), "--json"))


@pytest.mark.parametrize("stripe", ["13B", "64KiB", "1MiB"])
def test_what_is_put_comes_back_whatever_its_size(up, tmp_path, stripe):
    unit = {"13B": 13, "64KiB": 1 << 16, "1MiB": MIB}[stripe]
    sizes = [0, 1, unit - 1, unit, unit + 1, 4 * unit + 3]
    sizes += [3 * MIB + 5] if unit > 13 else [4096]
    for size in sizes:
        content = noise(size, size)
        path = f"/sizes/{stripe}-{size}"
        up.put(path, content, "--stripe", stripe)
        assert up.get(path) == content, (stripe, size)
        out = tmp_path / f"out{size}"
        assert up.grist.ok("get", up.url(path), out) == b""
        assert out.read_bytes() == content
        about = stat(up, path)
        assert (about["length"], about["stripe_unit"]) == (size, unit)
        assert sum(target["bytes"] for target in about["targets"]) == size
        assert [target["target"] for target in about["targets"]] == [0, 1, 2, 3]
    listed = json.loads(up.grist.ok("ls", up.url("/sizes"), "--json"))["entries"]
    mine = {e["name"]: e["length"] for e in listed if e["name"].startswith(f"{stripe}-")}
    assert mine == {f"{stripe}-{size}": size for size in sizes}


def test_the_bytes_lie_where_stat_says(up):
    content = noise(10 * 4096 + 17)
    up.put("/lie", content, "--stripe", "4KiB", "--on", "0,2,3")
    about = stat(up, "/lie")
    assert [target["target"] for target in about["targets"]] == [0, 2, 3]
    addresses = up.addresses()
    assert [target["node"] for target in about["targets"]] == [addresses[n] for n in (0, 2, 3)]
    for place, number in enumerate((0, 2, 3)):
        position = (place - about["first"]) % 3
        held = b"".join(content[at : at + 4096] for at in range(position * 4096, len(content), 3 * 4096))
        objects = [path for path in up.objects(number) if path.name == f"file-{about['id']}"]
        assert [path.read_bytes() for path in objects] == [held]
        assert about["targets"][place]["bytes"] == len(held)
    assert not [path for path in up.objects(1) if path.name == f"file-{about['id']}"]


def test_the_order_of_on_is_the_order_of_the_stripes(up):
    up.put("/order", noise(9), "--stripe", "2B", "--on", "3,0,2")
    about = stat(up, "/order")
    assert [target["target"] for target in about["targets"]] == [3, 0, 2]
    assert up.get("/order") == noise(9)


def test_on_fewer_targets(up):
    up.put("/two", noise(100_000), "--targets", "2", "--stripe", "4KiB")
    assert len(stat(up, "/two")["targets"]) == 2
    assert up.get("/two") == noise(100_000)


def test_the_unit_is_rounded_up_to_whole_records(up):
    up.put("/records", noise(80 * 3000), "--record", "80", "--stripe", "64KiB")
    about = stat(up, "/records")
    assert (about["stripe_unit"], about["record"]) == (65_600, 80)
    assert "whole records of 80 bytes" in up.grist.ok("stat", up.url("/records")).decode()


def test_text_for_people(up):
    up.put("/people/a.bin", noise(3 * MIB), "--stripe", "64KiB", "--mode", "640")
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
    about = stat(up, "/programs/a.bin")
    assert (about["owner"], about["mode"], about["record"]) == ("anonymous", "600", None)


def test_chmod_and_rm(up):
    up.put("/change", b"abc", "--mode", "600")
    assert up.grist.ok("chmod", "644", up.url("/change")) == b""
    assert stat(up, "/change")["mode"] == "644"
    for wrong in ("888", "rw", "1777", "+644", "-1"):
        up.grist.refuses(2, "chmod", wrong, up.url("/change"))
    identity = stat(up, "/change")["id"]
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


def test_several_sources_go_to_a_directory(up, tmp_path):
    contents = {f"part{n}": noise(10_000 + n, n) for n in range(5)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    out = up.grist.ok("put", *[tmp_path / name for name in contents], up.url("/many/"), "--stripe", "1KiB")
    assert out.decode().count("\n") == len(contents)
    for name, content in contents.items():
        assert up.get(f"/many/{name}") == content
    # One that is not there does not keep the others away.
    done = up.grist("put", tmp_path / "part0", tmp_path / "absent", tmp_path / "part1", up.url("/most/"))
    assert done.returncode in (1, 2)
    assert b"absent" in done.stderr
    assert up.get("/most/part0") == contents["part0"] and up.get("/most/part1") == contents["part1"]
    message = up.grist.refuses(2, "put", tmp_path / "part0", tmp_path / "part1", up.url("/no-slash"))
    assert "/no-slash/" in message


def test_one_source_to_a_directory_keeps_its_name(up, tmp_path):
    (tmp_path / "named").write_bytes(b"content")
    up.grist.ok("put", tmp_path / "named", up.url("/into/"))
    assert up.get("/into/named") == b"content"


@pytest.mark.parametrize("size", [0, 1, 5 * MIB + 3])
def test_standard_input_is_stored(up, tmp_path, size):
    source = tmp_path / "source"
    source.write_bytes(noise(size))
    with open(source, "rb") as stdin:
        up.grist.ok("put", "-", up.url("/stdin"), "--stripe", "64KiB", stdin=stdin)
    assert up.get("/stdin") == noise(size)


def test_overwriting_is_a_swap_and_gives_space_back(up):
    old, new = noise(2 * MIB, 1), noise(MIB + 1, 2)
    up.put("/swap", old, "--stripe", "64KiB", "--mode", "604")
    until(lambda: len(list_stale(up)) == 0, "nothing else waits to be cleared away")
    before = up.space()
    first = stat(up, "/swap")
    up.put("/swap", new, "--stripe", "4KiB", "--targets", "3")
    second = stat(up, "/swap")
    assert first["id"] != second["id"]
    assert second["mode"] == "604"  # whoever replaces a file does not open it to others
    assert up.get("/swap") == new
    until(lambda: not [p for p in up.objects() if first["id"] in p.name], "the old objects go")
    assert up.space() == before - len(old) + len(new)


def list_stale(up):
    """Objects that no file has."""
    ids = set()

    def walk(path):
        for entry in json.loads(up.grist.ok("ls", up.url(path), "--json"))["entries"]:
            name = f"{path.rstrip('/')}/{entry['name']}"
            if entry["kind"] == "directory":
                walk(name)
            else:
                ids.add("file-" + stat(up, name)["id"])

    walk("/")
    return [path for path in up.objects() if path.name not in ids]


def test_get_puts_a_file_in_place_at_once(up, tmp_path):
    up.put("/place", b"new content")
    there = tmp_path / "there"
    there.write_bytes(b"old")
    up.grist.ok("get", up.url("/place"), there)
    assert there.read_bytes() == b"new content"
    up.grist.refuses(1, "get", up.url("/place"), tmp_path / "no" / "such" / "dir")
    assert sorted(os.listdir(tmp_path)) == ["there"]


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
    for command in (["stat"], ["rm"], ["run", "count"]):
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
    ["grist://", "grist://host", "grist://host:99999/x", "grist://:1/x", "grist:/x", "http://127.0.0.1:1/x",
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
        assert stat(up, name)["path"] == name


def test_a_restarted_cluster_finds_its_files(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    content = noise(300_000)
    up.put("/kept/a", content, "--stripe", "4KiB", "--mode", "640")
    before = stat(up, "/kept/a")
    assert up.stop() == 0
    up.listen = "127.0.0.1:0"  # the addresses are new ones
    up.start()
    after = stat(up, "/kept/a")
    for same in ("id", "length", "mode", "owner", "created"):
        assert before[same] == after[same]
    assert up.get("/kept/a") == content
    assert up.grist.answer("count", up.url("/kept/a"), "--type", "u8")["result"] == {"count": 300_000}
    up.put("/kept/b", content)
    assert up.get("/kept/b") == content


def test_a_directory_is_used_by_one_node_only(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=2)
    message = nodes.grist.refuses(
        1, "serve", "--target", nodes.node_dir(1), "--listen", "127.0.0.1:0", "--join", nodes.entry,
        "--key", nodes.node_dir(0) / "cluster.key",
    )  # fmt: skip
    assert str(nodes.node_dir(1)) in message
    assert nodes.works()


def test_a_node_without_the_key_does_not_join(nodes_of_test, tmp_path):
    nodes = nodes_of_test(Nodes, nodes=1)
    wrong = tmp_path / "wrong.key"
    wrong.write_text("ab" * 32 + "\n")
    wrong.chmod(0o600)
    join = ("serve", "--target", tmp_path / "stranger", "--listen", "127.0.0.1:0", "--join", nodes.entry)
    done = nodes.grist(*join, "--key", wrong)
    assert done.returncode in (1, 2) and b"key" in done.stderr, done.stderr
    assert list(nodes.addresses()) == [0]
    nodes.grist.refuses(2, *join)  # says that a key is needed
    nodes.grist.refuses(1, *join, "--key", Path("absent"))


def test_a_port_in_use(up, tmp_path):
    message = up.grist.refuses(1, "serve", "--target", tmp_path / "t", "--listen", up.entry)
    assert up.entry in message
