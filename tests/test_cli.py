"""The command line: the format of answers, help, settings, striped files, interruption and resumption."""

import json
import os
import subprocess

import numpy as np
import pytest
from conftest import ROOT, binary

KERNELS = (
    "count sum min max minmax mean var histogram lookup grep wc first last "
    "gaussian kmeans median quantile top unique"
).split()
PARAMETERS = {
    "histogram": ["bins", "range", "nan"],
    "lookup": ["where", "count_only"],
    "grep": ["pattern", "count_only", "ignore_case", "fixed"],
    "var": ["ddof", "nan"],
    **{name: ["nan"] for name in ("count", "sum", "min", "max", "minmax", "mean")},
    **{name: [] for name in ("wc", "first", "last")},
    "gaussian": ["shape", "sigma", "mask", "mode", "cval", "truncate", "result"],
    "kmeans": ["dims", "k", "init", "max_iter", "tol", "delta", "seed", "labels"],
    "median": ["nan"],
    "quantile": ["q", "method", "nan"],
    "top": ["k", "which", "nan"],
    "unique": ["max", "nan"],
}


@pytest.fixture
def values(tmp_path):
    path = tmp_path / "values.f64"
    path.write_bytes(np.arange(1000.0).tobytes())
    return path


def test_shape_of_an_answer(grist, values, striped):
    layout = striped(values, "13B", 3)
    for path, targets in ((values, 1), (layout, 3)):
        raw = grist.ok("run", "sum", path, "--type", "f64", "--json")
        assert raw.count(b"\n") == 1 and raw.endswith(b"\n")
        answer = json.loads(raw)
        assert list(answer) == ["kernel", "numerics", "result", "report"]
        assert (answer["kernel"], answer["numerics"]) == ("sum", "exact")
        assert answer["result"] == {"sum": 499500.0, "count": 1000}
        report = answer["report"]
        assert {"elapsed_seconds", "bytes_read", "bytes_moved", "places"} <= set(report)
        assert report["elapsed_seconds"] > 0 and report["bytes_read"] >= 8000
        assert (report["bytes_moved"] > 0) == (targets > 1)
        assert len(report["places"]) == targets
        for place in report["places"]:
            assert list(place) == ["place", "node", "records", "bytes", "why"]
            assert place["place"] and place["node"] and place["why"]
        assert sum(place["records"] for place in report["places"]) == 1000
        assert sum(place["bytes"] for place in report["places"]) == 8000


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_answers_in_this_shape(grist, tmp_path, kernel):
    path = tmp_path / "file"
    path.write_bytes(b"abcdefg\nABCDEFGH" * 10)
    how = [] if kernel in ("grep", "wc") else ["--type", "u64"]
    params = {
        "grep": {"pattern": "c"},
        "lookup": {"where": "> 0"},
        "gaussian": {"shape": "10,16"},
        "kmeans": {"dims": 2, "k": 2},
        "quantile": {"q": 0.5},
    }.get(kernel, {})
    if kernel == "gaussian":
        how = ["--type", "u8", "--output", tmp_path / "blurred"]
    answer = grist.answer(kernel, path, *how, **params)
    assert list(answer) == ["kernel", "numerics", "result", "report"]
    assert answer["kernel"] == kernel and answer["numerics"] in ("exact", "fixed")


def test_numbers_that_are_not_finite_are_strings(grist, tmp_path):
    path = tmp_path / "file"
    for value, text in [(np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "-Infinity")]:
        path.write_bytes(np.array([value]).tobytes())
        raw = grist.ok("run", "sum", path, "--type", "f64", "--json").decode()
        answer = json.loads(raw, parse_constant=lambda name: pytest.fail(f"bare {name}"))
        assert answer["result"]["sum"] == text
        row = grist.answer("lookup", path, "--type", "f64", where="!= 0")["result"]["rows"][0]
        assert row == {"index": 0, "value": text}


def test_kernels_are_listed(grist):
    plain = grist.ok("kernels").decode().partition("\n\n")[0]
    names = [line.split()[0] for line in plain.splitlines()]
    assert sorted(names) == sorted(KERNELS)
    listed = json.loads(grist.ok("kernels", "--json"))
    assert sorted(kernel["name"] for kernel in listed) == sorted(KERNELS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_is_explained(grist, kernel):
    text = grist.ok("kernels", kernel).decode()
    assert text.startswith(f"{kernel}: ") and "Result" in text
    described = json.loads(grist.ok("kernels", kernel, "--json"))
    assert sorted(param["name"] for param in described["params"]) == sorted(PARAMETERS[kernel])
    for name in PARAMETERS[kernel]:
        assert f"  {name} (" in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_page_of_kernels_says_what_they_declare():
    made = subprocess.run([ROOT / "scripts/kernels_page", binary()], capture_output=True, text=True, check=True)
    assert made.stdout == (ROOT / "docs/kernels.md").read_text(), "run scripts/kernels_page > docs/kernels.md"


def test_version_and_help(grist):
    version = grist.ok("--version").decode().split()
    assert version[0] == "gristmill" and version[1][0].isdigit() and len(version) == 2
    for command in ("run", "put", "get", "stat", "rm", "kernels", "completions", "man"):
        text = grist.ok(command, "--help").decode()
        assert f"Usage: {grist.path.name} {command}" in text
    assert b"Examples:" in grist.ok("run", "--help")
    assert b"<SOURCE>... <DESTINATION>\n" in grist.ok("put", "--help")
    overview = grist.ok("--help").decode()
    for name in ("gristmill up", "grist://HOST:PORT/PATH", "GRISTMILL_CLUSTER", "GRISTMILL_TOKEN", "GRISTMILL_CA"):
        assert name in overview


def test_an_answer_for_people_is_apart_from_what_is_said_about_it(grist, values):
    done = grist("run", "sum", values, "--type", "f64")
    assert done.stdout == b"sum    499500.0\ncount  1000\n"
    assert done.stderr.count(b"\n") == 1 and b"exact" in done.stderr
    assert grist("run", "sum", values, "--type", "f64", "--json").stderr == b""


def lanes(grist, values, *args, env=None, cwd=None):
    raw = grist.ok("run", "sum", values, "--type", "f64", "--json", *args, env=env, cwd=cwd)
    return json.loads(raw)["report"]["lanes"]


def test_flags_before_environment_before_file(grist, values, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "gristmill.toml").write_text('lanes = 3\nmax_record = "16B"\n')
    assert lanes(grist, values, cwd=folder) == 3
    assert lanes(grist, values, env={"GRISTMILL_LANES": "5"}, cwd=folder) == 5
    assert lanes(grist, values, "--lanes", 7, env={"GRISTMILL_LANES": "5"}, cwd=folder) == 7
    named = {"GRISTMILL_CONFIG": str(folder / "gristmill.toml")}
    assert lanes(grist, values, env=named) == 3
    text = tmp_path / "text"
    text.write_bytes(b"a line of more than 16 bytes\n")
    how = ("run", "count", text)
    assert "16 bytes" in grist.refuses(1, *how, cwd=folder)
    assert "9 bytes" in grist.refuses(1, *how, cwd=folder, env={"GRISTMILL_MAX_RECORD": "9"})
    grist.ok(*how, "--max-record", "1KiB", cwd=folder, env={"GRISTMILL_MAX_RECORD": "9"})


@pytest.mark.parametrize("text", ["lanes = 'many'", "unknown = 1", "lanes = ", "max_record = '12 parsecs'"])
def test_a_bad_file_of_settings_is_named(grist, values, tmp_path, text):
    (tmp_path / "gristmill.toml").write_text(text)
    message = grist.refuses(2, "run", "sum", values, "--type", "f64", cwd=tmp_path)
    assert "gristmill.toml" in message


def test_bad_environment(grist, values, tmp_path):
    for name, value in [("GRISTMILL_LANES", "x"), ("GRISTMILL_MAX_RECORD", "12 parsecs")]:
        message = grist.refuses(2, "run", "sum", values, "--type", "f64", env={name: value})
        assert value in message
    grist.refuses(2, "run", "sum", values, "--type", "f64", env={"GRISTMILL_CONFIG": "/no/such.toml"})
    # Nobody writes into the pipe, so a read would wait without end.
    os.mkfifo(tmp_path / "pipe.toml")
    named = {"GRISTMILL_CONFIG": str(tmp_path / "pipe.toml")}
    assert "not a regular file" in grist.refuses(2, "run", "sum", values, "--type", "f64", env=named)


@pytest.mark.parametrize(("stripe", "targets"), [("1B", 2), ("13B", 5), ("64KiB", 3), ("1MiB", 1)])
@pytest.mark.parametrize("size", [0, 1, 4096, 70_001])
def test_put_get_stat_rm(grist, tmp_path, stripe, targets, size):
    content = np.random.default_rng(size).bytes(size)
    source = tmp_path / "source"
    source.write_bytes(content)
    dirs = [tmp_path / f"t{n}" for n in range(targets)]
    layout = grist.put(source, tmp_path / "file.grist", dirs, stripe)
    stat = json.loads(grist.ok("stat", layout, "--json"))
    assert stat["length"] == size and len(stat["targets"]) == targets
    assert sum(target["bytes"] for target in stat["targets"]) == size
    assert str(size).encode() in grist.ok("stat", layout)
    grist.ok("get", layout, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert grist.ok("get", layout, "-") == content
    grist.ok("rm", layout)
    assert not layout.exists()
    left = [path for folder in dirs for path in folder.glob("objects/**/*") if path.is_file()]
    assert left == []


def test_put_replaces_and_leaves_nothing_of_the_old(grist, tmp_path, values):
    dirs = [tmp_path / "a", tmp_path / "b"]
    layout = grist.put(values, tmp_path / "file.grist", dirs, "1KiB")
    other = tmp_path / "other"
    other.write_bytes(b"abc")
    grist.put(other, layout, dirs, "1B")
    assert grist.ok("get", layout, "-") == b"abc"
    files = [path for folder in dirs for path in folder.glob("objects/**/*") if path.is_file()]
    assert len(files) == 2


def test_put_fits_stripes_to_records(grist, tmp_path, values):
    made = grist.ok(
        "put", values, tmp_path / "f.grist", "--on", f"{tmp_path}/a,{tmp_path}/b",
        "--stripe", "100B", "--record", 24, "--json",
    )
    assert json.loads(made)["stripe_unit"] == 120
    source = tmp_path / "cut"
    source.write_bytes(values.read_bytes()[: 24 * 300])
    layout = grist.put(source, tmp_path / "g.grist", [tmp_path / "a", tmp_path / "b"], "100B", "--record", 24)
    report = grist.answer("sum", layout, "--type", "f64", "--record", 24)["report"]
    assert report["bytes_moved"] == 0


def test_get_of_a_plain_file_is_a_copy(grist, values, tmp_path):
    grist.ok("get", values, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == values.read_bytes()


def test_get_into_a_directory(grist, values, striped, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    values.chmod(0o600)
    for source, name in ((values, "values.f64"), (striped(values, "1KiB", 2), "file")):
        grist.ok("get", source, folder)
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_bytes() == values.read_bytes()
        assert name == "file" or (folder / name).stat().st_mode & 0o777 == 0o600
        (folder / name).unlink()


def test_a_reader_that_has_seen_enough_is_no_failure(grist, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"foo bar\n" * 500_000)
    with subprocess.Popen(
        [grist.path, "run", "grep", path, "--param", "pattern=foo"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=grist.env,
    ) as process:
        assert process.stdout.readline() == b"0:foo bar\n"
        process.stdout.close()
        assert process.wait(60) == 0, process.stderr.read()


@pytest.mark.parametrize("words, code", [(["sum", "x.f64", "--type", "f64"], 0), (["nope", "x.f64"], 2), (["sum", "--nope"], 2)])
def test_nobody_reads_what_is_said_beside_the_answer(tmp_path, words, code):
    np.arange(4.0).tofile(tmp_path / "x.f64")
    reader, closed = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([binary(), "run", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=closed, text=True)
    finally:
        os.close(closed)
    assert done.returncode == code
    assert ("6.0" in done.stdout) == (code == 0)


@pytest.mark.parametrize("name", ["bad name", "storage0:7440", "192.0.2.256", "https://storage0"])
def test_a_certificate_is_for_names_that_clients_dial(grist, tmp_path, name):
    message = grist.refuses(2, "cert", "--dir", tmp_path / "new", "storage1", name)
    assert name in message and "DNS name or the IP address" in message
    assert not (tmp_path / "new").exists()
