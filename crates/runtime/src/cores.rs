//! The number of processors that this process may use. A control group may give it a part of one or of several.

use std::fs::{File, read_to_string};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Longest file of a control group that is read, in bytes.
const MAX_BYTES: u64 = 16 << 10;

/// Most levels of control groups that are read.
const MAX_LEVELS: usize = 32;

/// Whole processors that this process may use, as Rust counts them; at least 1.
pub fn whole_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0).min(999_999_999);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

/// The file of the kernel that lists the groups of this process.
pub(crate) const GROUPS: &str = "/proc/self/cgroup";
/// The folder with all control groups.
pub(crate) const GROUP_ROOT: &str = "/sys/fs/cgroup";

/// A control group is outside the part of the hierarchy that this process sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HiddenGroup;

/// Reads the quota of a group.
type ReadQuota = fn(&Path) -> Option<f64>;

/// The least quota among the groups that `groups` (a file like `/proc/self/cgroup`) names and all their ancestors, and the
/// group that sets it. If several groups set the same quota, it is the innermost one.
///
/// # Errors
/// Returns an error if no quota was found, but a hidden group may set one, and if `groups` cannot be read.
pub(crate) fn limiting_quota(groups: &Path, root: &Path) -> Result<Option<(f64, PathBuf)>, HiddenGroup> {
    let groups = read_to_string(groups).map_err(|_| HiddenGroup)?;
    let (mut found, mut hidden): (Option<(f64, PathBuf)>, bool) = (None, false);
    for line in groups.lines() {
        let Some((controllers, path)) = line.split_once(':').and_then(|(_, line)| line.split_once(':'))
        else {
            continue;
        };
        let path = path.trim_start_matches('/');
        let (roots, quota): (Vec<PathBuf>, ReadQuota) = match controllers {
            "" => (vec![root.to_owned(), root.join("unified")], quota_of_v2),
            names if names.split(',').any(|name| name == "cpu") => {
                (vec![root.join(names), root.join("cpu")], quota_of_v1)
            }
            _ => continue,
        };
        // The path of a hidden group leads upwards.
        if path.split('/').any(|part| part == "..") {
            hidden = true;
            continue;
        }
        for group in roots.iter().flat_map(|root| levels(root, path)) {
            if let Some(quota) = quota(&group)
                && found.as_ref().is_none_or(|(least, _)| quota < *least)
            {
                found = Some((quota, group));
            }
        }
    }
    if found.is_none() && hidden { Err(HiddenGroup) } else { Ok(found) }
}

/// A group and its ancestors.
fn levels<'a>(root: &'a Path, path: &str) -> impl Iterator<Item = PathBuf> + use<'a> {
    let path = root.join(path);
    let mut levels: Vec<PathBuf> = path.ancestors().take(MAX_LEVELS).map(Path::to_owned).collect();
    levels.retain(|level| level.starts_with(root));
    levels.into_iter()
}

/// The quota of a group of version 2: `cpu.max` has a quota and a period in microseconds, or `max`.
fn quota_of_v2(group: &Path) -> Option<f64> {
    let text = read_text(&group.join("cpu.max"))?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// The quota of a group of version 1: quota and period are in two files. A quota of -1 sets no quota.
fn quota_of_v1(group: &Path) -> Option<f64> {
    ratio(&read_text(&group.join("cpu.cfs_quota_us"))?, &read_text(&group.join("cpu.cfs_period_us"))?)
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// The text of a short file of the kernel.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    fn quota_below(groups: &Path, root: &Path) -> Option<f64> {
        limiting_quota(groups, root).ok().flatten().map(|(quota, _)| quota)
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_least_quota_of_all_levels_counts() {
        let dir = tempfile::tempdir().unwrap();
        let (groups, root) = (dir.path().join("groups"), dir.path().join("root"));
        write(&groups, "0::/outer/inner\n");
        assert_eq!(quota_below(&groups, &root), None);
        write(&root.join("outer/inner/cpu.max"), "max 100000\n");
        assert_eq!(quota_below(&groups, &root), None);
        write(&root.join("outer/cpu.max"), "150000 100000\n");
        assert_eq!(quota_below(&groups, &root), Some(1.5));
        write(&root.join("outer/inner/cpu.max"), "1000 4000\n");
        assert_eq!(quota_below(&groups, &root), Some(0.25));
    }

    #[test]
    fn quotas_of_both_versions_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (groups, root) = (dir.path().join("groups"), dir.path().join("root"));
        write(&groups, "4:memory:/m\n2:cpu,cpuacct:/host\n0::/\n");
        write(&root.join("cpu,cpuacct/host/cpu.cfs_quota_us"), "-1\n");
        write(&root.join("cpu,cpuacct/host/cpu.cfs_period_us"), "100000\n");
        assert_eq!(quota_below(&groups, &root), None);
        write(&root.join("cpu,cpuacct/host/cpu.cfs_quota_us"), "30000\n");
        assert_eq!(quota_below(&groups, &root), Some(0.3));
    }

    #[test]
    fn nonsense_sets_no_quota() {
        let dir = tempfile::tempdir().unwrap();
        let (groups, root) = (dir.path().join("groups"), dir.path().join("root"));
        for (path, text) in
            [("/../x", "1 1"), ("/x", "0 1"), ("/x", "1 0"), ("/x", "-5 1"), ("/x", "1e9"), ("/x", "")]
        {
            write(&groups, &format!("0::{path}\n::\n:cpu\nnot a line"));
            write(&root.join("x/cpu.max"), text);
            assert_eq!(quota_below(&groups, &root), None, "{path} {text}");
        }
    }
}
