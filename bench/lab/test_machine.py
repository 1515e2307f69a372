"""Descriptions of machines are read correctly, or refused with a message that says what is right."""

import pytest

import machine

GOOD = """
kernel = "sum"
rate = 860e6
link = 118e6
[storage]
hosts = 4
cores = 2
lanes = 2
[client]
hosts = 3
cores = 1
"""


def described(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return machine.load(path)


def test_a_description_is_read(tmp_path):
    found = described(tmp_path, GOOD)
    assert (found.name, found.kernel, found.rate, found.link) == ("mine", "sum", 860e6, 118e6)
    assert found.roles["storage"] == machine.Hosts(4, 2, 2)
    assert found.roles["client"] == machine.Hosts(3, 1, 1)
    fewer = found.with_hosts(storage=1)
    assert (fewer.roles["storage"].hosts, fewer.roles["client"].hosts) == (1, 3)


def test_active_requests_take_some_of_the_cores(tmp_path):
    assert described(tmp_path, GOOD).roles["storage"].folding == 2
    found = described(tmp_path, GOOD.replace("cores = 2", "cores = 2\nactive = 1"))
    assert (found.roles["storage"].active, found.roles["storage"].folding) == (1, 1)


@pytest.mark.parametrize("path", sorted(machine.MACHINES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_papers_machines_are_read(path):
    assert machine.load(path.stem).roles["storage"].hosts >= 1


@pytest.mark.parametrize(
    "change, word",
    [
        (("rate = 860e6", "rate = 0"), "rate"),
        (("link = 118e6", "link = 'fast'"), "link"),
        (("link = 118e6", "link = true"), "link"),
        (("hosts = 4", "hosts = 1.5"), "hosts"),
        (("hosts = 4", "hosts = 100000"), "256"),
        (("lanes = 2", "lanes = 0"), "lanes"),
        (("cores = 2", "cores = -1"), "cores"),
        (("cores = 2", "cores = 2\nmemory = 3"), "memory"),
        (("cores = 2", "cores = 2\nactive = 3"), "active"),
        (("rate = 860e6", "rate = 860e6\napart = 1"), "apart"),
        (('kernel = "sum"', 'kernel = "sum"\nnetwork = 1'), "network"),
        (('kernel = "sum"', ""), "kernel"),
        (("[client]", "[clients]"), "clients"),
        (("[storage]", "[storage"), "mine.toml"),
    ],
)
def test_nonsense_is_refused_with_the_word_that_is_wrong(tmp_path, change, word):
    assert change[0] in GOOD
    with pytest.raises(SystemExit, match=word):
        described(tmp_path, GOOD.replace(*change))


def test_an_unknown_machine_is_answered_with_those_there_are():
    with pytest.raises(SystemExit, match="dosas2012-filter, dosas2012-gaussian, dosas2012-sum, son2010"):
        machine.load("atlas")
