"""The same bytes as a plain file and on a cluster, for kernels over both."""

import json

import pytest
from cluster import Up

KIB = 1 << 10
PLACES = ("storage", "client", "auto")


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=4)


class Pair:
    """The same bytes as a plain file and on the cluster."""

    def __init__(self, up, folder):
        self.up, self.folder, self.made = up, folder, 0

    def store(self, content, *args):
        self.made += 1
        plain = self.folder / f"plain{self.made}"
        plain.write_bytes(content)
        url = self.up.url(f"/pairs/{self.folder.name}/{self.made}")
        self.up.grist.ok("put", plain, url, *args)
        return plain, url

    def same(self, files, kernel, *args, places=PLACES):
        """Asserts that the answers or the errors are the same for both, and returns that of the plain file."""
        plain, url = files
        here = self.up.grist("run", kernel, plain, "--json", *args)
        for place in places:
            there = self.up.grist("run", kernel, url, "--json", "--place", place, *args)
            about = (kernel, args, place, there.stderr)
            assert there.returncode == here.returncode, about
            if here.returncode == 0:
                assert result(there.stdout) == result(here.stdout), about
            else:
                assert said(there.stderr, url) == said(here.stderr, str(plain)), about
        return result(here.stdout) if here.returncode == 0 else here.stderr.decode()

    def report(self, url, kernel, *args):
        return json.loads(self.up.grist.ok("run", kernel, url, "--json", *args))["report"]


def result(stdout: bytes) -> bytes:
    """The answer without its report."""
    head, mark, _ = stdout.rpartition(b',"report":{')
    assert mark, stdout[:500]
    json.loads(head + b"}")
    return head


def said(stderr: bytes, name: str) -> str:
    """An error message without the name of the file."""
    text = stderr.decode().removeprefix("gristmill: ")
    path = "/" + name.split("://")[1].split("/", 1)[1] if "://" in name else name
    return text.replace(name, "FILE").replace(path, "FILE")


@pytest.fixture
def pair(up, tmp_path):
    return Pair(up, tmp_path)


def params(given):
    return [word for param in given for word in ("--param", param)]
