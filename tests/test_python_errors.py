"""Errors in Python: the exception, the built-in exception that it also is, and its message."""

import errno
import importlib
import pickle
import socket

import numpy as np
import pytest
from python_package import cluster, gm  # noqa: F401


def test_failures_are_the_exceptions_of_python(cluster, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(20))
    nan = cluster.path("nan.f64")
    gm.put(np.array([1.0, np.nan]), nan)
    refused = [
        (lambda: gm.run("sum", tmp_path / "none", type="f64"), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.run("sum", cluster.path("none"), type="f64"), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.open(cluster.path("none")), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.get(cluster.path("none")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.remove(cluster.path("none")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.put(tmp_path / "none", cluster.path("x")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.run("sum", plain, type="f64"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("summ", plain), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", plain), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", tmp_path, type="f64"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, place="moon"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, place="storage"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, lanes=0), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, skip=-1), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, skip="1 parsec"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, range=5), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, timeout=-1), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, big_endian=True), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", plain, type="<f4", big_endian=True), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", "ftp://a/b"), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, tmp_path / "y.grist"), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, cluster.path("x"), mode=0o7777), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, cluster.path("x"), targets=1, on=[1]), gm.Usage, ValueError, "usage"),
        (lambda: gm.ls(tmp_path), gm.Usage, ValueError, "usage"),
        (lambda: gm.get(nan, tmp_path), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("mean", nan, type="f64", range=(0, 0)), gm.DataError, ArithmeticError, "data"),
        (lambda: gm.run("sum", nan, type="f64", nan="error"), gm.DataError, ArithmeticError, "data"),
    ]
    for call, kind, built_in, name in refused:
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert isinstance(error, gm.GristmillError) and isinstance(error, built_in) and error.kind == name
        assert str(error) and "panicked" not in str(error) and not str(error).startswith("[Errno")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error)


def test_an_exception_of_ones_own_is_of_the_kind_of_its_base():
    class Missing(gm.NotFound):
        """The error for a missing file."""

    assert Missing.kind == "not-found" and Missing("x").errno == errno.ENOENT
    assert type(importlib.import_module("gristmill._errors").error_for("not-found", "x")) is gm.NotFound
    assert type(importlib.import_module("gristmill._errors").error_for("of another version", "x")) is gm.GristmillError


def test_a_node_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(gm.Unavailable) as caught:
        gm.run("sum", f"grist://127.0.0.1:{port}/x", type="f64")
    assert isinstance(caught.value, ConnectionError) and str(port) in str(caught.value)


def test_who_may_not_is_denied(tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text("ada ada-secret-token-0123456789\nbob bob-secret-token-0123456789\n")
    tokens.chmod(0o600)
    with gm.up(nodes=1, tokens=tokens, require_identity=True, lanes=1) as nodes:
        monkeypatch.setenv("GRISTMILL_TOKEN", "ada-secret-token-0123456789")
        gm.put(b"hers", nodes.path("mine"), mode=0o600)
        assert gm.get(nodes.path("mine")) == b"hers" and gm.stat(nodes.path("mine")).owner == "ada"
        # A connection that is kept open must not pass on its identity.
        monkeypatch.setenv("GRISTMILL_TOKEN", "bob-secret-token-0123456789")
        for call in (gm.get, gm.remove):
            with pytest.raises(gm.Denied) as caught:
                call(nodes.path("mine"))
            assert isinstance(caught.value, PermissionError)


def test_the_other_exceptions_are_those_of_python_too():
    for kind, built_in, number in [
        (gm.Stale, OSError, errno.ESTALE), (gm.Conflict, FileExistsError, errno.EEXIST),
        (gm.Busy, OSError, errno.EBUSY), (gm.NoSpace, OSError, errno.ENOSPC),
        (gm.TimedOut, TimeoutError, errno.ETIMEDOUT),
    ]:
        error = importlib.import_module("gristmill._errors").error_for(kind.kind, "a sentence")
        assert type(error) is kind and isinstance(error, built_in)
        assert error.errno == number and str(error) == "a sentence"


def test_a_busy_node_says_when_to_try_again():
    of = importlib.import_module("gristmill._errors").error_for
    assert of("busy", "a sentence", 7).retry_after == 7
    # Older nodes do not give a time.
    assert of("busy", "a sentence", None).retry_after is None and of("busy", "a sentence").retry_after is None
    assert not hasattr(of("stale", "a sentence"), "retry_after")


def test_sentences_are_in_the_words_of_python(tmp_path):
    (tmp_path / "odd").write_bytes(bytes(21))
    for ask, words in (
        (lambda: gm.run("sum", tmp_path / "odd"), "type="),
        (lambda: gm.run("sum", tmp_path / "odd", type="f64"), "skip=N for a header, range=(START, LENGTH)"),
        (lambda: gm.run("wc", tmp_path / "odd", type="f64"), "leave type= "),
        (lambda: gm.up(nodes=1, bogus=3), "bogus="),
        (lambda: gm.up(nodes=0), "for nodes=: 0 is not in 1..=64"),
        (lambda: gm.run("mean", tmp_path / "odd"), "(one of i8, i16,"),
        (lambda: gm.run("mean", tmp_path / "odd"), "use gristmill.open_dataset"),
        (lambda: gm.run("quantile", tmp_path / "odd", type="uint8"), "for example q=[0.05, 0.5, 0.95]"),
        (lambda: gm.run("grep", tmp_path / "odd"), "for example pattern='[A-Z]{12,}K'"),
    ):
        with pytest.raises(gm.Usage) as failed:
            ask()
        assert words in str(failed.value) and "--" not in str(failed.value) and "Usage:" not in str(failed.value)


def test_unknown_names_are_told_with_those_that_there_are(tmp_path):
    np.arange(3.0).tofile(tmp_path / "a")
    for ask, words in (
        (lambda: gm.run("sum", tmp_path / "a", type="f64", nosuch=1), "'sum' has no parameter 'nosuch'; it has: nan"),
        (lambda: gm.run("quantile", tmp_path / "a", type="f64", params={"x": 1}), "'x'; it has: q, method, nan"),
        (lambda: gm.run("average", tmp_path / "a", type="f64"), "did you mean 'mean'?"),
        (lambda: gm.run("std", tmp_path / "a", type="f64"), "did you mean 'var', whose answer has the standard deviation too?"),
    ):
        with pytest.raises(gm.Usage) as failed:
            ask()
        assert words in str(failed.value)


def test_names_of_files_are_left_as_they_are(tmp_path):
    with pytest.raises(gm.NotFound, match="/--type"):
        gm.stat(tmp_path / "--type")
