"""python -m unittest discover bench"""

import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

import arriving
import web


class Web(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # The file is larger than AHEAD, and larger than the buffer of a socket.
        self.bytes = np.random.default_rng(5).bytes(2 * arriving.AHEAD + 123)
        (Path(folder.name) / "file").write_bytes(self.bytes)
        self.server = web.Server(("127.0.0.1", 0), folder.name)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/file"

    def get(self, asked=None, url=None):
        request = urllib.request.Request(url or self.url, headers={"Range": asked} if asked else {})
        with urllib.request.urlopen(request) as response:
            return response.status, response.read(), response.headers.get("Content-Range")

    def test_whole_files_and_ranges(self):
        size = len(self.bytes)
        self.assertEqual(self.get(), (200, self.bytes, None))
        self.assertEqual(self.get("bytes=5-9"), (206, self.bytes[5:10], f"bytes 5-9/{size}"))
        self.assertEqual(self.get(f"bytes={size - 3}-"), (206, self.bytes[-3:], f"bytes {size - 3}-{size - 1}/{size}"))
        self.assertEqual(self.get("bytes=-3")[1], self.bytes[-3:])
        self.assertEqual(self.get(f"bytes=7-{size * 2}")[1], self.bytes[7:])

    def test_what_is_not_there(self):
        for asked, url, status in ((f"bytes={len(self.bytes)}-", None, 416), (None, self.url + "s", 404)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(asked, url)
            refused.exception.close()
            self.assertEqual(refused.exception.code, status)

    def test_a_file_is_read_while_it_arrives(self):
        with arriving.Arriving(self.url) as file:
            file.seek(-100, 2)
            self.assertEqual(file.read(200), self.bytes[-100:])
            file.seek(10)
            self.assertEqual((file.read(5), file.tell()), (self.bytes[10:15], 15))
            file.seek(0)
            self.assertEqual(file.read(), self.bytes)
        file.thread.join()

    def test_a_file_that_ends_early_is_an_error(self):
        class Short(web.Handler):
            def head(self, status, length, **more):
                super().head(status, length + 1, **more)
                self.close_connection = True

        self.server.RequestHandlerClass = Short
        with arriving.Arriving(self.url) as file:
            with self.assertRaises(OSError):
                file.read()


if __name__ == "__main__":
    unittest.main()
