"""A file that is read while it arrives over HTTP, from its beginning to its end on one connection.

A reader waits for bytes that have not arrived. A small read far ahead, such as one of a file's index, uses a second connection at
once. So a program that reads a file in the order of its bytes takes no longer than a copy of the file.
"""

import http.client
import io
import threading
from urllib.parse import urlsplit

# A read of at most FEW bytes that begins more than AHEAD bytes after the bytes that have arrived does not wait.
FEW, AHEAD = 64 << 10, 4 << 20
PIECE = 1 << 20


class Arriving(io.RawIOBase):
    """Begins to fetch when it is made. It holds the whole file in memory."""

    def __init__(self, url):
        super().__init__()
        self.url = urlsplit(url)
        self.second = None
        self.at, self.there, self.failed = 0, 0, None
        self.news = threading.Condition()
        response = self.request(self.connect())
        self.bytes = memoryview(bytearray(int(response.headers["Content-Length"])))
        self.thread = threading.Thread(target=self.fetch, args=(response,), daemon=True)
        self.thread.start()

    def connect(self):
        return http.client.HTTPConnection(self.url.hostname, self.url.port)

    def request(self, connection, **headers):
        connection.request("GET", self.url.path, headers=headers)
        response = connection.getresponse()
        if response.status not in (200, 206):
            raise OSError(f"{self.url.geturl()}: HTTP status {response.status}")
        return response

    def fetch(self, response):
        end = len(self.bytes)
        try:
            while self.there < end:
                count = response.readinto(self.bytes[self.there : min(end, self.there + PIECE)])
                if not count:
                    raise OSError(f"{self.url.geturl()} ended after {self.there} of {end} bytes")
                with self.news:
                    self.there += count
                    self.news.notify_all()
        except Exception as error:
            with self.news:
                self.failed = error
                self.news.notify_all()
        finally:
            response.close()

    def readinto(self, buffer):
        begin, end = self.at, min(self.at + len(buffer), len(self.bytes))
        if end <= begin:
            return 0
        if end - begin <= FEW and begin > self.there + AHEAD:
            self.second = self.second or self.connect()
            part = self.request(self.second, Range=f"bytes={begin}-{end - 1}").read()
            buffer[: end - begin] = part
        else:
            with self.news:
                self.news.wait_for(lambda: self.there >= end or self.failed)
                if self.there < end:
                    raise self.failed
            buffer[: end - begin] = self.bytes[begin:end]
        self.at = end
        return end - begin

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: len(self.bytes)}[whence]
        return self.at

    def tell(self):
        return self.at

    def readable(self):
        return True

    def seekable(self):
        return True

    def close(self):
        if self.second:
            self.second.close()
        super().close()
