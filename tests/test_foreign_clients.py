"""Clients without any code of Gristmill: pyarrow.flight."""

import json
import math

import numpy as np
import pytest
from foreign import TEXT, TOKEN, socket, tls, up, values  # noqa: F401

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
flight = pytest.importorskip("pyarrow.flight", reason="pyarrow is without Flight")


@pytest.fixture
def client(up):
    with flight.connect(f"grpc://{up.entry}") as client:
        yield client


def request(kernel, path, dtype=None, **more) -> bytes:
    asked = {"gristmill": 1, "kernel": kernel, "path": path, **more}
    if dtype:
        asked["type"] = dtype
    return json.dumps(asked).encode()


def ask(client, *args, options=None, **more):
    return client.do_get(flight.Ticket(request(*args, **more)), options).read_all()


def action(client, name, body=None, options=None):
    encoded = b"" if body is None else json.dumps(body).encode()
    results = list(client.do_action(flight.Action(name, encoded), options))
    assert len(results) == 1
    content = results[0].body.to_pybytes()
    return json.loads(content) if content else None


def test_flights_are_the_files_of_a_directory(client):
    found = {info.descriptor.path[-1]: info for info in client.list_flights()}
    assert set(found) == {b"data.f64", b"text"}
    assert found[b"data.f64"].total_bytes == 320_000
    inner = list(client.list_flights(b"/dir"))
    assert [info.descriptor.path for info in inner] == [[b"dir", b"inner"]]
    with pytest.raises((flight.FlightServerError, KeyError)) as error:
        list(client.list_flights(b"/absent"))
    assert "/absent" in str(error.value)


def test_flight_info_by_path(client):
    info = client.get_flight_info(flight.FlightDescriptor.for_path("data.f64"))
    assert info.total_bytes == 320_000
    info = client.get_flight_info(flight.FlightDescriptor.for_path("dir", "inner"))
    assert info.total_bytes == 5


def test_flight_info_by_command_leads_to_the_answer(client, values):
    command = request("sum", "/data.f64", "f64")
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    assert len(info.endpoints) == 1
    answer = client.do_get(info.endpoints[0].ticket).read_all().to_pylist()
    assert answer == [{"sum": math.fsum(values), "count": len(values)}]
    with pytest.raises(pyarrow.ArrowInvalid, match="nosuch"):
        client.get_flight_info(flight.FlightDescriptor.for_command(request("nosuch", "/data.f64")))


def test_values_are_those_of_numpy(client, values):
    table = ask(client, "sum", "/data.f64", "f64")
    assert table.to_pylist() == [{"sum": math.fsum(values), "count": len(values)}]
    report = json.loads(table.schema.metadata[b"gristmill.report"])
    assert report["bytes_read"] == values.nbytes and report["bytes_moved"] == 0
    counts, edges = np.histogram(values, bins=30)
    [row] = ask(client, "histogram", "/data.f64", "f64", params={"bins": 30}).to_pylist()
    assert row["counts"] == counts.tolist() and row["edges"] == edges.tolist()
    [row] = ask(client, "minmax", "/data.f64", "f64").to_pylist()
    assert (row["min"], row["min_index"]) == (values.min(), values.argmin())
    assert (row["max"], row["max_index"]) == (values.max(), values.argmax())
    [row] = ask(client, "var", "/data.f64", "f64", params={"ddof": 1}).to_pylist()
    assert math.isclose(row["var"], values.var(ddof=1), rel_tol=1e-12)


@pytest.mark.parametrize("place", ["storage", "auto"])
def test_rows_are_those_of_numpy(client, values, place):
    where = {"where": "> 2.5"}
    table = ask(client, "lookup", "/data.f64", "f64", params=where, place=place)
    right = np.flatnonzero(values > 2.5)
    assert table["index"].to_numpy().tolist() == right.tolist()
    assert table["value"].to_numpy().tolist() == values[right].tolist()
    assert str(table.schema.field("value").type) == "double"
    table = ask(client, "grep", "/text", params={"pattern": "9$|^the"}, place=place)
    offset, wanted = 0, []
    for line in TEXT.split(b"\n"):
        if b"9 of" not in line and (line.startswith(b"the") or line.endswith(b"9")):
            wanted.append((offset, line))
        offset += len(line) + 1
    assert list(zip(table["offset"].to_pylist(), table["line"].to_pylist(), strict=True)) == wanted
    table = ask(client, "grep", "/text", params={"pattern": "line 4[0-9]* of"})
    lines = [line for line in TEXT.split(b"\n") if line.startswith(b"line 4")]
    assert table["line"].to_pylist() == lines


def test_rows_end_with_a_report(client, values):
    asked = request("lookup", "/data.f64", "f64", params={"where": "> 0"})
    reports, rows = [], 0
    for chunk in client.do_get(flight.Ticket(asked)):
        rows += chunk.data.num_rows if chunk.data else 0
        if chunk.app_metadata:
            reports.append(json.loads(chunk.app_metadata.to_pybytes()))
    assert rows == np.count_nonzero(values > 0)
    [report] = reports
    assert report["bytes_read"] == values.nbytes


def test_no_rows_have_columns_too(client):
    table = ask(client, "lookup", "/data.f64", "f64", params={"where": "> 1e9"})
    assert table.num_rows == 0 and table.column_names == ["index", "value"]


def test_a_range_and_another_byte_order(client, values, up):
    [row] = ask(client, "sum", "/data.f64", "f64", range=[800, 1600]).to_pylist()
    assert row == {"sum": math.fsum(values[100:300]), "count": 200}
    [row] = ask(client, "sum", "/data.f64", "f64", range=[319_200, None]).to_pylist()
    assert row == {"sum": math.fsum(values[-100:]), "count": 100}
    [row] = ask(client, "max", "/data.f64", "u16", big_endian=True).to_pylist()
    assert row["max"] == np.frombuffer(values.tobytes(), ">u2").max()


def test_integers_of_any_size(client, up):
    big = np.full(100, 2**63, "u8")
    up.put("/big", big.tobytes(), "--stripe", "64B")
    [row] = ask(client, "sum", "/big", "u64").to_pylist()
    assert int(row["sum"]) == 100 * 2**63


def test_actions(client, up):
    names = {kind.type for kind in client.list_actions()}
    assert {"open", "stat", "list", "create", "commit", "renew", "abandon", "remove", "chmod", "nodes", "ping"} <= names
    assert action(client, "ping") is None
    about = action(client, "stat", {"path": "/data.f64"})
    assert about["file"]["length"] == 320_000 and about["mode"] == "644"
    nodes = action(client, "nodes")["nodes"]
    assert [node["number"] for node in nodes] == [0, 1, 2]
    assert nodes[0]["address"] == up.entry
    listing = action(client, "list", {"path": "/"})
    assert "dir" in [entry["name"] for entry in listing["entries"]]
    up.put("/mine", b"1")
    action(client, "chmod", {"path": "/mine", "mode": "600"})
    assert action(client, "stat", {"path": "/mine"})["mode"] == "600"
    action(client, "remove", {"path": "/mine"})
    with pytest.raises(KeyError, match="/mine"):
        action(client, "stat", {"path": "/mine"})


def errors(client, wanted, call, *words):
    with pytest.raises(wanted) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_errors_are_those_that_fit(client, up):
    invalid = pyarrow.ArrowInvalid
    ticket = lambda text: lambda: client.do_get(flight.Ticket(text)).read_all()  # noqa: E731
    errors(client, KeyError, ticket(request("sum", "/absent", "f64")), "/absent")
    errors(client, invalid, ticket(request("nosuch", "/data.f64", "f64")), "nosuch", "gristmill kernels")
    errors(client, invalid, ticket(request("sum", "/data.f64")), "--type")
    errors(client, invalid, ticket(request("sum", "/data.f64", "f99")), "f99")
    errors(client, invalid, ticket(request("sum", "/data.f64", "f64", params={"bins": 3})), "bins")
    errors(client, invalid, ticket(request("sum", "/data.f64", "f64", params={"nan": [1]})), "nan")
    errors(client, invalid, ticket(b"{"), "request")
    errors(client, invalid, ticket(b""), "request")
    errors(client, invalid, ticket(b"\xff\xfe"), "request")
    errors(client, invalid, ticket(request("sum", "/data.f64", "f64", gristmill=2)), "version 2", "speaks 1")
    errors(client, invalid, ticket(request("sum", "/data.f64", "f64", unheard=1)), "unheard")
    errors(client, invalid, lambda: action(client, "nosuch"), "nosuch", "stat")
    errors(client, invalid, lambda: action(client, "stat"), "stat")
    errors(client, invalid, lambda: action(client, "stat", {"path": "/a", "more": 1}), "more")
    errors(client, KeyError, lambda: action(client, "stat", {"path": "/absent"}), "/absent")
    up.put("/nan", np.array([1.0, np.nan]).tobytes())
    error = ticket(request("sum", "/nan", "f64", params={"nan": "error"}))
    errors(client, Exception, error, "element 1")
    unimplemented = NotImplementedError
    with pytest.raises(unimplemented):
        client.get_schema(flight.FlightDescriptor.for_path("data.f64"))
    # After all these errors the node answers as before.
    assert ask(client, "count", "/data.f64", "f64").to_pylist() == [{"count": 40_000}]


def test_place_client_is_refused_with_a_word_or_answered(client, values):
    try:
        [row] = ask(client, "sum", "/data.f64", "f64", place="client").to_pylist()
    except Exception as error:  # noqa: BLE001
        assert "place" in str(error)
    else:
        assert row["sum"] == math.fsum(values)


def test_over_a_unix_socket(socket, up, values):
    options = [("grpc.default_authority", "localhost")]
    with flight.connect(f"grpc+unix://{socket}", generic_options=options) as client:
        [row] = ask(client, "sum", "/data.f64", "f64").to_pylist()
        assert row["sum"] == math.fsum(values)
        assert action(client, "stat", {"path": "/data.f64"})["file"]["length"] == values.nbytes


def bearer(token):
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def test_over_tls_with_a_token(tls, values):
    tls.put("/secret", values.tobytes(), "--mode", "600", env=tls.settings)
    ca = tls.ca.read_bytes()
    with flight.connect(f"grpc+tls://{tls.entry}", tls_root_certs=ca) as client:
        [row] = ask(client, "sum", "/secret", "f64", options=bearer(TOKEN)).to_pylist()
        assert row["sum"] == math.fsum(values)
        assert action(client, "stat", {"path": "/secret"}, options=bearer(TOKEN))["owner"] == "alice"
        for options in (None, bearer("a-token-of-nobody-at-all")):
            with pytest.raises((flight.FlightUnauthorizedError, flight.FlightUnauthenticatedError)):
                ask(client, "sum", "/secret", "f64", options=options)
    with flight.connect(f"grpc+tls://{tls.entry}") as client:  # it does not know the certificate authority
        with pytest.raises(flight.FlightUnavailableError):
            list(client.list_flights(options=bearer(TOKEN)))
    with flight.connect(f"grpc://{tls.entry}") as client:
        with pytest.raises(flight.FlightUnavailableError):
            list(client.list_flights(options=bearer(TOKEN)))
