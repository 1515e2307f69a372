"""Another client of CephFS, with the key of the administrator. It runs with the Python of the system, which has the module of Ceph.

Each line of its input is a call: {"do": "put", "path": "/a", ...}. It answers each with a line: {} or {"error": "..."}.
"""

import base64
import json
import os
import struct
import sys

import cephfs

#: The format of an access control list as an extended attribute: a version, then a tag, rights and a number for each entry.
ACL_VERSION, ACL_TAGS = 2, {"user_obj": 1, "user": 2, "group_obj": 4, "group": 8, "mask": 16, "other": 32}


class Writer:
    def __init__(self, config):
        self.files = cephfs.LibCephFS(conffile=config, auth_id="admin")
        self.files.conf_set("client_permissions", "false")
        self.files.conf_set("client_acl_type", "posix_acl")
        self.files.conf_set("log_file", "")
        self.files.mount()

    def folders(self, path):
        if path.strip("/"):
            self.files.mkdirs(path, 0o755)

    def put(self, path, content, offset=0, cut=True, layout=None):
        """Writes a file, or a part of it."""
        self.folders(os.path.dirname(path))
        if layout:
            self.make_in_layout(path, *layout)
        opened = self.files.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
        content = base64.b64decode(content)
        if content:
            self.files.write(opened, content, offset)
        # The client of Ceph 16 may wait for ever if it writes to a file that it cut before.
        if cut:
            self.files.ftruncate(opened, offset + len(content))
        self.files.close(opened)

    def make_in_layout(self, path, unit, count, size, pool="cephfs_data"):
        """Makes an empty file. Only a new one takes a layout."""
        try:
            self.files.unlink(path)
        except cephfs.ObjectNotFound:
            pass
        self.files.close(self.files.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        layout = f"stripe_unit={unit} stripe_count={count} object_size={size} pool={pool}"
        self.files.setxattr(path, "ceph.file.layout", layout.encode(), 0)

    def remove(self, path):
        self.files.unlink(path)

    def rename(self, path, to):
        self.files.rename(path, to)

    def own(self, path, uid, gid, mode):
        self.files.chown(path, uid, gid)
        self.files.chmod(path, mode)

    def allow(self, path, entries):
        """Sets an access control list: entries of a tag, a number and rights."""
        packed = struct.pack("<I", ACL_VERSION)
        for tag, number, rights in entries:
            packed += struct.pack("<HHI", ACL_TAGS[tag], rights, number & 0xFFFFFFFF)
        self.files.setxattr(path, "system.posix_acl_access", packed, 0)

    def link(self, target, path):
        self.files.symlink(target, path)

    def snapshot(self, path, name):
        self.files.mkdir(f"{path}/.snap/{name}", 0o755)


def main():
    writer = Writer(sys.argv[1])
    for line in sys.stdin:
        call = json.loads(line)
        try:
            getattr(writer, call.pop("do"))(**call)
            answer = {}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    writer.files.unmount()


if __name__ == "__main__":
    main()
