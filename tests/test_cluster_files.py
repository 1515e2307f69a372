"""Bytes of files of a cluster: the command stores, reads and replaces them."""

import json
import os

import numpy
import pytest
from cluster import Up, until

MIB = 1 << 20


def noise(count, seed=1) -> bytes:
    return numpy.random.default_rng(seed).bytes(count)


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=4)


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
        about = up.stat(path)
        assert (about["length"], about["stripe_unit"]) == (size, unit)
        assert sum(target["bytes"] for target in about["targets"]) == size
        # Targets without a byte are left out. An empty file keeps one.
        targets = [target["target"] for target in about["targets"]]
        assert len(set(targets)) == len(targets) == min(4, max(1, -(-size // unit)))
    listed = json.loads(up.grist.ok("ls", up.url("/sizes"), "--json"))["entries"]
    mine = {e["name"]: e["length"] for e in listed if e["name"].startswith(f"{stripe}-")}
    assert mine == {f"{stripe}-{size}": size for size in sizes}


def test_the_bytes_lie_where_stat_says(up):
    content = noise(10 * 4096 + 17)
    up.put("/lie", content, "--stripe", "4KiB", "--on", "0,2,3")
    about = up.stat("/lie")
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
    about = up.stat("/order")
    assert [target["target"] for target in about["targets"]] == [3, 0, 2]
    assert up.get("/order") == noise(9)


def test_on_fewer_targets(up):
    up.put("/two", noise(100_000), "--targets", "2", "--stripe", "4KiB")
    assert len(up.stat("/two")["targets"]) == 2
    assert up.get("/two") == noise(100_000)


def test_the_unit_is_rounded_up_to_whole_records(up):
    up.put("/records", noise(80 * 3000), "--record", "80", "--stripe", "64KiB")
    about = up.stat("/records")
    assert (about["stripe_unit"], about["record"]) == (65_600, 80)
    assert "whole records of 80 bytes" in up.grist.ok("stat", up.url("/records")).decode()


def test_several_sources_go_to_a_directory(up, tmp_path):
    contents = {f"part{n}": noise(10_000 + n, n) for n in range(5)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    out = up.grist.ok("put", *[tmp_path / name for name in contents], up.url("/many/"), "--stripe", "1KiB")
    assert out.decode().count("\n") == len(contents)
    for name, content in contents.items():
        assert up.get(f"/many/{name}") == content
    # A missing source does not stop the others.
    done = up.grist("put", tmp_path / "part0", tmp_path / "absent", tmp_path / "part1", up.url("/most/"))
    assert done.returncode in (1, 2)
    assert b"absent" in done.stderr
    assert up.get("/most/part0") == contents["part0"] and up.get("/most/part1") == contents["part1"]
    message = up.grist.refuses(2, "put", tmp_path / "part0", tmp_path / "part1", up.url("/no-slash"))
    assert "/no-slash/" in message


def test_a_directory_as_destination_is_told_how_to_be_one(up, tmp_path):
    up.put("/is/dir/a", b"1")
    source = tmp_path / "named"
    source.write_bytes(b"2")
    message = up.grist.refuses(2, "put", source, up.url("/is/dir"))
    assert "is a directory" in message and f"write {up.url('/is/dir/')} " in message
    assert f"{up.url('/is/dir/')}NAME" in up.grist.refuses(2, "put", "-", up.url("/is/dir"))
    # Another mistake gets its own message.
    assert "directory: write" not in up.grist.refuses(2, "put", source, up.url("/is/dir/a/b"))


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


def list_stale(up):
    """Objects that belong to no file."""
    ids = set()

    def walk(path):
        for entry in json.loads(up.grist.ok("ls", up.url(path), "--json"))["entries"]:
            name = f"{path.rstrip('/')}/{entry['name']}"
            if entry["kind"] == "directory":
                walk(name)
            else:
                ids.add("file-" + up.stat(name)["id"])

    walk("/")
    return [path for path in up.objects() if path.name not in ids]


def test_overwriting_is_a_swap_and_gives_space_back(up):
    old, new = noise(2 * MIB, 1), noise(MIB + 1, 2)
    up.put("/swap", old, "--stripe", "64KiB", "--mode", "604")
    until(lambda: len(list_stale(up)) == 0, "nothing else waits to be cleared away")
    before = up.space()
    first = up.stat("/swap")
    up.put("/swap", new, "--stripe", "4KiB", "--targets", "3")
    second = up.stat("/swap")
    assert first["id"] != second["id"]
    assert second["mode"] == "604"  # a replacement keeps the mode, so others get no new rights
    assert up.get("/swap") == new
    until(lambda: not [p for p in up.objects() if first["id"] in p.name], "the old objects go")
    assert up.space() == before - len(old) + len(new)


def test_get_puts_a_file_in_place_at_once(up, tmp_path):
    up.put("/place", b"new content")
    there = tmp_path / "there"
    there.write_bytes(b"old")
    up.grist.ok("get", up.url("/place"), there)
    assert there.read_bytes() == b"new content"
    up.grist.refuses(1, "get", up.url("/place"), tmp_path / "no" / "such" / "dir")
    assert sorted(os.listdir(tmp_path)) == ["there"]


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("mode, copied", [("600", 0o600), ("644", 0o644), ("666", 0o644), ("400", 0o400)])
def test_a_copy_is_no_more_open_than_the_file(up, tmp_path, usual_umask, mode, copied):
    up.put(f"/modes/{mode}", b"secret", "--mode", mode)
    there = tmp_path / "there"
    there.write_bytes(b"open to all")
    there.chmod(0o666)
    up.grist.ok("get", up.url(f"/modes/{mode}"), there)
    assert there.stat().st_mode & 0o777 == copied


def test_a_copy_into_a_directory_keeps_its_name(up, tmp_path):
    up.put("/from/named", b"content")
    for form in (str(tmp_path), f"{tmp_path}/"):
        up.grist.ok("get", up.url("/from/named"), form)
        assert (tmp_path / "named").read_bytes() == b"content"
        (tmp_path / "named").unlink()
    message = up.grist.refuses(2, "get", up.url("/from/named"), f"{tmp_path}/none/")
    assert "none" in message and "directory" in message
    (tmp_path / "named").mkdir()
    assert "directory" in up.grist.refuses(2, "get", up.url("/from/named"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["named"]


def test_two_sources_of_one_name_are_refused(up, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_bytes(folder.encode())
    one, other = tmp_path / "a" / "same", tmp_path / "b" / "same"
    message = up.grist.refuses(2, "put", one, other, up.url("/same/"))
    assert str(one) in message and str(other) in message and "/same/same" in message
    assert "same" not in [entry["name"] for entry in json.loads(up.grist.ok("ls", up.url(), "--json"))["entries"]]
