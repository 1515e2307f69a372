"""Servers with files that do not belong to Gristmill: one with the protocol of S3 (moto), and nginx."""

import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from cluster import until

REGION, KEY, SECRET = "us-east-1", "somebody", "a-secret-of-somebody"


class S3Bucket:
    """A new bucket of a server with the protocol of S3."""

    bucket = "bucket"

    def connect(self, endpoint, key, secret):
        """Makes the bucket. `env` has the variables with which programs reach it."""
        import boto3

        self.endpoint = endpoint
        self.env = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": REGION,
        }
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )
        self.client.create_bucket(Bucket=self.bucket)

    def url(self, key):
        return f"s3://{self.bucket}/{key}"

    def put(self, key, content, **how):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content, **how)
        return self.url(key)

    def put_folder(self, folder: Path, key):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())
        return self.url(key)

    def remove(self, key):
        self.client.delete_object(Bucket=self.bucket, Key=key)


class S3(S3Bucket):
    """A server with the protocol of S3 in this process, with one bucket."""

    def __init__(self):
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        self.connect(f"http://{host}:{port}", KEY, SECRET)

    def end(self):
        self.server.stop()


NGINX = """
daemon off; worker_processes 1; {user} pid {root}/nginx.pid; error_log {root}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log {root}/access.log; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/fastcgi; uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
  default_type application/octet-stream; types {{ text/html html; }}
  server {{
    listen 127.0.0.1:{port}; root {root}/files; autoindex on;
    location /closed/ {{ deny all; }}
    location /packed/ {{ gzip on; gzip_types *; gzip_min_length 1; }}
    location /whole/ {{ max_ranges 0; }}
    location /moved/ {{ return 302 /open$request_uri; }}
    location /private/ {{ auth_basic files; auth_basic_user_file {root}/users; }}
    location /elsewhere/ {{ return 302 http://localhost:{port}/private$request_uri; }}
  }}
}}
"""


def nginx_path():
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Nginx:
    """An nginx with the files of a folder."""

    def __init__(self, folder: Path):
        self.root, self.files = folder, folder / "files"
        self.last_change = 1_700_000_000
        self.files.mkdir(exist_ok=True)
        for _ in range(10):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            config = folder / "nginx.conf"
            (folder / "users").write_text(f"{KEY}:{{PLAIN}}{SECRET}\n")
            config.write_text(NGINX.format(root=folder, port=port, user="user root;" if os.geteuid() == 0 else ""))
            self.process = subprocess.Popen([nginx_path(), "-p", folder, "-c", config], stderr=subprocess.DEVNULL)
            self.address = f"http://127.0.0.1:{port}"
            until(self._answers_or_ended, "nginx answers")
            # Another process may have taken the port meanwhile.
            if self.process.poll() is None:
                return
        raise AssertionError((folder / "error.log").read_text())

    def _answers_or_ended(self):
        if self.process.poll() is not None:
            return True
        try:
            urllib.request.urlopen(self.address, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def url(self, name):
        return f"{self.address}/{name}"

    def put(self, name, content):
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # The version of a file is made of the second of its last change, and what changed just now may change again in it.
        new = path.with_name(path.name + ".new")
        new.write_bytes(content)
        self.make_old(new)
        new.rename(path)
        return self.url(name)

    def put_folder(self, folder: Path, name):
        shutil.copytree(folder, self.files / name)
        for path in (self.files / name).rglob("*"):
            self.make_old(path)
        return self.url(name)

    def make_old(self, path):
        self.last_change += 1
        os.utime(path, (self.last_change, self.last_change))

    def remove(self, name):
        (self.files / name).unlink()

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
