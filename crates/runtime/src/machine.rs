//! Tells which processes share processors. They have the same kernel, the same control group that limits their processor time,
//! and the same processors that they may run on.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::cores::{GROUP_ROOT, GROUPS, HiddenGroup, limiting_quota, read_text};
use crate::job::fnv1a;

/// The processors that this process may use now. Groups and quotas may be changed at any time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Number of processors that control groups allow, possibly a fraction; `None` if they set no quota. It is read on Linux,
    /// from control groups of versions 1 and 2.
    pub quota: Option<f64>,
    /// Digest of the processors, as 16 hexadecimal digits. It is the same in two processes if both run on one kernel, below the
    /// same control group that sets a quota (or none), and on the same processors. It tells nothing else. `None` if it is not
    /// known. It is made on Linux only.
    pub processors: Option<String>,
}

impl Allowance {
    /// Reads the present allowance, from about ten files of the kernel.
    pub fn now() -> Allowance {
        let limit = limiting_quota(Path::new(GROUPS), Path::new(GROUP_ROOT));
        let quota = limit.as_ref().ok().and_then(|limit| limit.as_ref()).map(|(quota, _)| *quota);
        Allowance { quota, processors: limit.ok().and_then(processors) }
    }
}

fn processors(limit: Option<(f64, PathBuf)>) -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| read_text(Path::new("/proc/sys/kernel/random/boot_id"))).as_deref()?;
    let status = read_text(Path::new("/proc/self/status"))?;
    digest(boot.trim(), &status, group_number(limit).ok()?)
}

/// The inode number of the group that limits this process. All processes see the same number.
fn group_number(limit: Option<(f64, PathBuf)>) -> Result<Option<u64>, HiddenGroup> {
    let Some((_, group)) = limit else { return Ok(None) };
    metadata(group).map(|about| Some(about.ino())).map_err(|_| HiddenGroup)
}

fn digest(boot: &str, status: &str, group: Option<u64>) -> Option<String> {
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let group = group.map_or_else(|| "none".to_owned(), |group| group.to_string());
    let all = format!("{boot} {allowed} {group}");
    (!boot.is_empty()).then(|| format!("{:016x}", fnv1a(all.as_bytes())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    const STATUS: &str = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n";

    #[test]
    fn kernel_group_and_processors_tell_processes_apart() {
        let own = digest("boot", STATUS, None).unwrap();
        assert_eq!((own.len(), digest("boot", STATUS, None)), (16, Some(own.clone())));
        assert!(own.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let others = [
            digest("other", STATUS, None),
            digest("boot", &STATUS.replace("0-3", "0-1"), None),
            digest("boot", STATUS, Some(7)),
            digest("boot", STATUS, Some(8)),
        ];
        for (i, other) in others.iter().enumerate() {
            assert!(*other != Some(own.clone()) && !others[..i].contains(other), "{others:?}");
        }
        assert_eq!((digest("", STATUS, None), digest("boot", "Name:\tx\n", None)), (None, None));
    }

    #[test]
    fn the_group_that_sets_the_quota_counts_and_not_a_group_within_it() {
        let dir = tempfile::tempdir().unwrap();
        let (groups, root) = (dir.path().join("groups"), dir.path().join("root"));
        for path in ["host/node", "host/client", "other/client"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let limit = |path: &str| {
            fs::write(&groups, format!("0::/{path}\n")).unwrap();
            limiting_quota(&groups, &root).and_then(group_number)
        };
        assert_eq!((limit("host/node"), limit("other/client")), (Ok(None), Ok(None)));
        for host in ["host", "other"] {
            fs::write(root.join(host).join("cpu.max"), "50000 100000\n").unwrap();
        }
        assert_eq!(limit("host/node"), limit("host/client"));
        assert_ne!(limit("host/client"), limit("other/client"));
        // The client's own group has a lower quota.
        fs::write(root.join("host/client/cpu.max"), "10000 100000\n").unwrap();
        assert_ne!(limit("host/node"), limit("host/client"));
        // The quota of a hidden group is not known.
        assert_eq!(limit("../elsewhere"), Err(HiddenGroup));
    }

    #[test]
    fn two_readings_give_the_same_processors() {
        let Some(first) = Allowance::now().processors else { return };
        assert_eq!(Allowance::now().processors, Some(first));
    }
}
