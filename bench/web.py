"""A web server for the files of a folder: HTTP/1.1 with persistent connections, one thread each, for whole files and ranges.

    python bench/web.py HOST:PORT FOLDER

It prints `listening` when it is ready. Files go from the page cache to the connection (sendfile).
"""

import os
import re
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def span(asked, size):
    """The first byte and the end of `Range: bytes=...`. None: there are no such bytes."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.strip())
    if not found or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return max(0, size - int(last)), size
    begin, end = int(first), min(size, int(last) + 1) if last else size
    return (begin, end) if begin < end else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def head(self, status, length, **more):
        self.send_response(status)
        for name, value in {"Content-Length": length, "Accept-Ranges": "bytes", **more}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_GET(self, body=True):
        path = self.server.folder / Path(self.path).name
        if not path.is_file():
            return self.head(404, 0)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            asked = self.headers.get("Range")
            begin, end = (0, size) if asked is None else span(asked, size) or (size, size)
            if asked is not None and begin == end:
                return self.head(416, 0, Content_Range=f"bytes */{size}")
            if asked is None:
                self.head(200, size)
            else:
                self.head(206, end - begin, Content_Range=f"bytes {begin}-{end - 1}/{size}")
            if body:
                self.wfile.flush()
                self.connection.sendfile(file, begin, end - begin)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, folder):
        self.folder = Path(folder).resolve()
        super().__init__(address, Handler)

    def handle_error(self, *_):
        """A client may close its connection in the middle of a file."""


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    server = Server((host, int(port)), sys.argv[2])
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
