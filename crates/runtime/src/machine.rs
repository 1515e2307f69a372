//! Which processes share processors: those with the same kernel, the same control group that limits their processor time,
//! and the same processors that they may run on.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::cores::{GROUP_ROOT, GROUPS, Unseen, limiting, text};
use crate::job::fnv1a;

/// The processors that this process may use now. Groups and quotas may be changed at any time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance {
    /// How many control groups let it use, a part of one included; `None` where they set no quota. Linux, control groups
    /// of versions 1 and 2.
    pub quota: Option<f64>,
    /// Names them: 16 hexadecimal digits, the same in two processes if both run on one kernel, below the same control group
    /// that sets a quota (or none), on the same processors. It is a digest that tells nothing else. `None` where it cannot
    /// be told; Linux only.
    pub processors: Option<String>,
}

impl Allowance {
    /// Reads some ten files of the kernel.
    pub fn now() -> Allowance {
        let limit = limiting(Path::new(GROUPS), Path::new(GROUP_ROOT));
        let quota = limit.as_ref().ok().and_then(|limit| limit.as_ref()).map(|(quota, _)| *quota);
        Allowance { quota, processors: limit.ok().and_then(processors) }
    }
}

fn processors(limit: Option<(f64, PathBuf)>) -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| text(Path::new("/proc/sys/kernel/random/boot_id"))).as_deref()?;
    let status = text(Path::new("/proc/self/status"))?;
    named(boot.trim(), &status, group(limit).ok()?)
}

/// The number of the group that limits this process; the same wherever the group is seen from.
fn group(limit: Option<(f64, PathBuf)>) -> Result<Option<u64>, Unseen> {
    let Some((_, group)) = limit else { return Ok(None) };
    metadata(group).map(|about| Some(about.ino())).map_err(|_| Unseen)
}

fn named(boot: &str, status: &str, group: Option<u64>) -> Option<String> {
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
        let here = named("boot", STATUS, None).unwrap();
        assert_eq!((here.len(), named("boot", STATUS, None)), (16, Some(here.clone())));
        assert!(here.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let others = [
            named("other", STATUS, None),
            named("boot", &STATUS.replace("0-3", "0-1"), None),
            named("boot", STATUS, Some(7)),
            named("boot", STATUS, Some(8)),
        ];
        for (i, other) in others.iter().enumerate() {
            assert!(*other != Some(here.clone()) && !others[..i].contains(other), "{others:?}");
        }
        assert_eq!((named("", STATUS, None), named("boot", "Name:\tx\n", None)), (None, None));
    }

    #[test]
    fn the_group_that_limits_counts_and_not_the_one_within_it() {
        let dir = tempfile::tempdir().unwrap();
        let (groups, root) = (dir.path().join("groups"), dir.path().join("root"));
        for path in ["host/node", "host/client", "other/client"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let limit = |path: &str| {
            fs::write(&groups, format!("0::/{path}\n")).unwrap();
            limiting(&groups, &root).and_then(group)
        };
        assert_eq!((limit("host/node"), limit("other/client")), (Ok(None), Ok(None)));
        for host in ["host", "other"] {
            fs::write(root.join(host).join("cpu.max"), "50000 100000\n").unwrap();
        }
        assert_eq!(limit("host/node"), limit("host/client"));
        assert_ne!(limit("host/client"), limit("other/client"));
        // A group of its own that limits it further.
        fs::write(root.join("host/client/cpu.max"), "10000 100000\n").unwrap();
        assert_ne!(limit("host/node"), limit("host/client"));
        // What cannot be seen may be limited by anything.
        assert_eq!(limit("../elsewhere"), Err(Unseen));
    }

    #[test]
    fn two_processes_beside_each_other_share() {
        let Some(here) = Allowance::now().processors else { return };
        assert_eq!(Allowance::now().processors, Some(here));
    }
}
