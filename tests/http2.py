"""An HTTP/2 client for requests that our clients never send: closed windows, requests without an end, unusual headers."""

import json
import socket
import struct
import time

import h2.config
import h2.connection
import h2.events
import h2.settings

SERVICE = "/arrow.flight.protocol.FlightService/"
DEADLINE = 30  # seconds; a bound on a hang, not a measure of speed


def message(content):
    """A message of gRPC."""
    return struct.pack(">BI", 0, len(content)) + content


def field(number, content):
    """A field of protobuf that holds bytes."""
    length, varint = len(content), bytearray()
    while length > 127:
        varint.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2]) + bytes([*varint, length]) + content


def ticket(request):
    return message(field(1, json.dumps(request).encode()))


def action(name, body):
    return message(field(1, name.encode()) + field(2, body))


def result(answer):
    """The JSON of an action's answer: a message of gRPC with a field of protobuf."""
    assert answer.headers["grpc-status"] == "0", answer.headers
    content = answer.data[5:]
    at, shift, length = 1, 0, 0
    while True:
        length |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            break
    return json.loads(content[at : at + length])


class Answer:
    """The part of the answer that has come on a stream so far."""

    def __init__(self):
        self.headers, self.data, self.ended = {}, b"", False


class Connection:
    """A connection that reads only if a test asks for it. `window` is the number of bytes of an answer that the server may send."""

    def __init__(self, address, window=None):
        host, _, port = address.rpartition(":")
        self.authority = address
        self.socket = socket.create_connection((host, int(port)), timeout=DEADLINE)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.answers = {}
        self.h2.initiate_connection()
        if window is not None:
            self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def begin(self, path, headers=(), method="POST", authority=None, kind="application/grpc", end=False):
        """Sends the headers of a request and returns the number of the stream. With `end` the request has no body."""
        stream = self.h2.get_next_available_stream_id()
        named = [
            (":method", method), (":scheme", "http"), (":authority", authority or self.authority), (":path", path),
            ("content-type", kind), ("te", "trailers"), *headers,
        ]  # fmt: skip
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, named, end_stream=end)
        self.flush()
        return stream

    def send(self, stream, content, end=True):
        """Sends as much of a body as the server takes before it answers, and returns the number of bytes sent."""
        sent = 0
        while sent < len(content) and not self.answers[stream].ended:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(content) - sent)
            if room == 0:
                try:
                    self.pump()
                except TimeoutError:
                    break
                continue
            self.h2.send_data(stream, content[sent : sent + room])
            self.flush()
            sent += room
        if end and not self.answers[stream].ended and sent == len(content):
            self.h2.end_stream(stream)
            self.flush()
        return sent

    def ask(self, path, content, **how):
        """Sends a whole request and returns the number of the stream."""
        stream = self.begin(path, **how)
        self.send(stream, content)
        return stream

    def pump(self):
        """Receives the next bytes."""
        data = self.socket.recv(65536)
        assert data, "the server closed the connection"
        for event in self.h2.receive_data(data):
            answer = self.answers.get(getattr(event, "stream_id", None))
            if answer is None:
                continue
            if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                answer.headers.update(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                answer.data += event.data
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                answer.ended = True
        self.flush()

    def until(self, stream, ready):
        """Receives until an answer meets a condition."""
        end = time.monotonic() + DEADLINE
        while not ready(self.answers[stream]):
            assert time.monotonic() < end, f"not within {DEADLINE} s: {vars(self.answers[stream])}"
            self.pump()
        return self.answers[stream]

    def answer(self, stream):
        """The complete answer."""
        return self.until(stream, lambda answer: answer.ended)
