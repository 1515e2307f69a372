"""Files of CephFS while the cluster changes: every answer has the same bits, whatever is lost, moved or added meanwhile."""

import json
import math
import threading

import ceph_cluster
import pytest
from cluster import Up, metrics, until

pytestmark = pytest.mark.ceph

DAEMONS, COPIES = 3, 2
NODES = 2
MIB = 1 << 20
NAME = "x.f64"
#: Requests that must end after a change. The first may have begun before it.
REQUESTS_AFTER = 2
SETTLING = 120  # seconds until objects are where they belong; a bound on a hang


class Changing(ceph_cluster.CephFs):
    """Each object has two copies. A daemon that is killed keeps its files."""

    def __init__(self, folder):
        super().__init__(folder, "bluestore", DAEMONS, COPIES)


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    yield from ceph_cluster.started(Changing, tmp_path_factory)


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


@pytest.fixture(scope="module")
def stored(ceph, numbers):
    """The objects of the file."""
    ceph.put(NAME, numbers.tobytes())
    return sorted(ceph.objects())


@pytest.fixture(scope="module")
def up(clusters, ceph, stored):
    up = clusters(Up, nodes=NODES, args=("--admin", "anonymous"), env=ceph.env)
    up.grist.ok("attach", "cephfs:///", up.url("/t"))
    return up


class Asking:
    """Asks for the sum again and again, of the file itself and on nodes, while the cluster changes. Each answer must be right."""

    def __init__(self, up, ceph, want):
        self.up, self.ceph, self.want = up, ceph, want
        self.ended, self.count, self.failure = threading.Event(), {}, None
        self.threads = [threading.Thread(target=self.ask, args=(url,)) for url in (ceph.url(NAME), up.url(f"/t/{NAME}"))]

    def ask(self, url):
        self.count[url] = 0
        try:
            while not self.ended.is_set():
                found = self.up.grist.ask("sum", url, "--type", "f64", env=self.ceph.env)["sum"]
                assert found == self.want, (url, found)
                self.count[url] += 1
        except BaseException as failure:
            self.failure = failure

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.more()
        return self

    def more(self):
        """Waits for requests that began after this."""
        wanted = {url: count + REQUESTS_AFTER for url, count in self.count.items()}
        done = lambda: self.failure or all(self.count[url] >= count for url, count in wanted.items())
        until(done, "requests after a change", SETTLING)
        if self.failure:
            raise self.failure

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def asking(up, ceph, numbers):
    with Asking(up, ceph, math.fsum(numbers)) as asking:
        yield asking
    assert asking.failure is None, asking.failure


def is_up(ceph, number):
    return f"osd.{number} up" in ceph.ceph("osd", "dump")


def settled(ceph, stored):
    """Whether each object is where the map wants it."""
    placed = [ceph.placed(one) for one in stored]
    return all(one["up"] == one["acting"] for one in placed)


def settle(ceph, stored):
    until(lambda: settled(ceph, stored), "objects are where they belong", SETTLING)


def test_a_storage_daemon_that_is_killed(ceph, stored, asking):
    lost = ceph.daemon_of(stored[0])
    ceph.kill(ceph.osds[lost])
    until(lambda: not is_up(ceph, lost), "the daemon is missed", SETTLING)
    assert ceph.daemon_of(stored[0]) != lost
    asking.more()
    ceph.start_osd(lost)
    until(lambda: is_up(ceph, lost), "the daemon is back", SETTLING)
    settle(ceph, stored)
    asking.more()


def test_a_storage_daemon_that_is_taken_out_and_in(ceph, stored, asking):
    out = ceph.daemon_of(stored[0])
    ceph.ceph("osd", "out", str(out))
    settle(ceph, stored)
    assert not any(out in ceph.placed(one)["acting"] for one in stored)
    asking.more()
    ceph.ceph("osd", "in", str(out))
    settle(ceph, stored)
    assert any(out in ceph.placed(one)["acting"] for one in stored)
    asking.more()


def test_a_storage_daemon_that_is_added(ceph, stored, asking):
    ceph.add_osd(DAEMONS)
    until(lambda: is_up(ceph, DAEMONS), "the daemon is there", SETTLING)
    settle(ceph, stored)
    assert any(DAEMONS in ceph.placed(one)["acting"] for one in stored)
    asking.more()


@pytest.mark.parametrize("copies", [3, 2])
def test_another_number_of_copies(ceph, stored, asking, copies):
    ceph.ceph("osd", "pool", "set", ceph_cluster.FILE_POOL, "size", str(copies))
    settle(ceph, stored)
    assert {len(ceph.placed(one)["acting"]) for one in stored} == {copies}
    asking.more()


def test_the_monitor_that_is_away(ceph, up, stored, numbers):
    asked = ("sum", up.url(f"/t/{NAME}"), "--type", "f64")
    assert up.grist.ask(*asked)["sum"] == math.fsum(numbers)
    ceph.kill(ceph.monitors["a"])
    # Nodes have the map, and need no monitor while it does not change.
    assert up.grist.ask(*asked)["sum"] == math.fsum(numbers)
    ceph.start_monitors("a")
    bare = ("sum", ceph.url(NAME), "--type", "f64")
    assert up.grist.ask(*bare, env=ceph.env)["sum"] == math.fsum(numbers)


def test_a_pool_that_was_full(ceph, up, stored, numbers):
    """While it is full, Ceph may refuse to read it, or wait. A refusal says where to look. Afterwards all is as before."""
    asked = ("run", "sum", up.url(f"/t/{NAME}"), "--type", "f64", "--place", "storage", "--json")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(up.grist(*asked)))
    ceph.fill(1e-6)
    try:
        until(ceph.is_full, "the pool is full", SETTLING)
        thread.start()
        until(lambda: answers or metrics(up)["gristmill_active_requests", "running"] >= 1, "the request runs", SETTLING)
    finally:
        ceph.fill(0.97)
    until(lambda: not ceph.is_full(), "the pool has room", SETTLING)
    thread.join(SETTLING)
    answers.append(up.grist(*asked))
    first, last = answers
    assert b"ceph health" in first.stderr or json.loads(first.stdout)["result"]["sum"] == math.fsum(numbers), first.stderr
    assert json.loads(last.stdout)["result"]["sum"] == math.fsum(numbers), last.stderr
    assert up.grist.ask("sum", ceph.url(NAME), "--type", "f64", env=ceph.env)["sum"] == math.fsum(numbers)


def test_reads_wait_for_a_cluster_that_pauses(ceph, up, stored, numbers):
    ceph.ceph("osd", "set", "pause")
    answers = []
    ask = lambda: answers.append(up.grist.ask("sum", up.url(f"/t/{NAME}"), "--type", "f64", "--place", "storage"))
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        until(lambda: metrics(up)["gristmill_active_requests", "running"] >= 1, "the request waits")
        assert not answers
    finally:
        ceph.ceph("osd", "unset", "pause")
    thread.join(SETTLING)
    assert [one["sum"] for one in answers] == [math.fsum(numbers)]


def test_an_erasure_coded_pool(ceph, up, numbers):
    """A file of which any two of three pieces of each object are enough."""
    ceph.make_coded_pool("pieces")
    ceph.ceph("fs", "add_data_pool", "cephfs", "pieces")
    ceph.put("pieces/x.f64", numbers.tobytes(), layout=(MIB, 2, 2 * MIB, "pieces"))
    urls = (ceph.url("pieces/x.f64"), up.url("/t/pieces/x.f64"))
    for url in urls:
        assert up.grist.ask("sum", url, "--type", "f64", env=ceph.env)["sum"] == math.fsum(numbers)
    names = ceph.names("pieces")
    assert len(names) == 10
    lost = ceph.placed(names[0], "pieces")["acting_primary"]
    ceph.kill(ceph.osds[lost])
    until(lambda: not is_up(ceph, lost), "the daemon is missed", SETTLING)
    for url in urls:
        assert up.grist.ask("sum", url, "--type", "f64", env=ceph.env)["sum"] == math.fsum(numbers)
    ceph.start_osd(lost)
    until(lambda: is_up(ceph, lost), "the daemon is back", SETTLING)
