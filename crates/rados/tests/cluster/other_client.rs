//! Another client of the pool, with the key of the administrator: the tool `rados`.

use std::io::Write;
use std::process::{Command, Stdio};

use gristmill_rados::RadosLocation;

pub struct OtherClient {
    location: RadosLocation,
}

impl OtherClient {
    pub fn of(location: &RadosLocation) -> OtherClient {
        OtherClient { location: location.clone() }
    }

    fn run(&self, words: &[&str], input: &[u8]) -> String {
        let RadosLocation { pool, name } = &self.location;
        let mut child = Command::new("rados")
            .args(["--id", "admin", "-p", pool, "-N", name])
            .args(words)
            .env_remove("CEPH_ARGS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/ceph installs the tool rados");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{words:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// The names of all objects of RADOS.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.run(&["ls"], b"").lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    pub fn remove(&self, name: &str) {
        self.run(&["rm", name], b"");
    }

    pub fn truncate(&self, name: &str, length: u64) {
        self.run(&["truncate", name, &length.to_string()], b"");
    }

    pub fn write(&self, name: &str, offset: u64, bytes: &[u8]) {
        self.run(&["put", name, "-", "--offset", &offset.to_string()], bytes);
    }

    pub fn set_attribute(&self, name: &str, attribute: &str, value: &[u8]) {
        self.run(&["setxattr", name, attribute], value);
    }

    /// The cookie of who has the store.
    pub fn cookie(&self) -> Option<String> {
        Some(self.locker()?["cookie"].as_str().unwrap().to_owned())
    }

    /// Takes the lock away from who has the store.
    pub fn break_lock(&self) {
        let locker = self.locker().unwrap();
        let word = |name: &str| locker[name].as_str().unwrap().to_owned();
        self.run(
            &["lock", "break", "store", "gristmill", &word("name"), "--lock-cookie", &word("cookie")],
            b"",
        );
    }

    fn locker(&self) -> Option<serde_json::Value> {
        let info = self.run(&["lock", "info", "store", "gristmill", "--format", "json"], b"");
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        info["lockers"].as_array().and_then(|lockers| lockers.first().cloned())
    }

    /// The address of the storage daemon that serves reads of an object.
    pub fn address_of(&self, name: &str) -> String {
        let RadosLocation { pool, name: namespace } = &self.location;
        let map = self.ceph(&["osd", "map", pool, name, namespace, "--format", "json"]);
        let primary = map["acting_primary"].as_i64().unwrap();
        let found = self.ceph(&["osd", "find", &primary.to_string(), "--format", "json"]);
        let address = found["addrs"]["addrvec"][0]["addr"].as_str().unwrap();
        address.rsplit_once(':').unwrap().0.to_owned()
    }

    fn ceph(&self, words: &[&str]) -> serde_json::Value {
        let mut command = Command::new("ceph");
        command.args(["--id", "admin", "--connect-timeout", "10"]).args(words).env_remove("CEPH_ARGS");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}
