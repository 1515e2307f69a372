//! One process has the store.
//!
//! It holds a lock of Ceph on the object [`STORE`] and renews it. An attribute of the object names the process. A process that opens a store
//! which was not closed has Ceph refuse everything of the former process first, and then writes its own name there. So what a lost process had
//! under way cannot arrive later. A lock that ended, because Ceph did not answer for some time, is taken again as long as the name is still
//! there: then nobody opened the store meanwhile.

use std::ffi::{CStr, CString};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use gristmill_store::{Result, StoreError};
use rustix::io::Errno;

use crate::RadosLocation;
use crate::client::{Action, OWNED, Pool};
use crate::error::{SHUT_OUT, explain};
use crate::piece::{STORE, c_name};

/// Time after which the lock of a process that does not renew it ends.
pub const LOCK_TIME: Duration = Duration::from_secs(30);

/// Pause between two renewals of the lock.
const RENEWED: Duration = Duration::from_secs(8);

/// Longest wait for the lock of a process on another machine, which may have ended without giving it back.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(40);

/// Pause between two attempts to take the lock.
const LOCK_AGAIN: Duration = Duration::from_millis(500);

/// Time for which a process that lost the store is shut out.
const SHUT_OUT_TIME: Duration = Duration::from_secs(24 * 3600);

/// Attributes of the object of the store: the number of the present form of the store, how often it was opened, and who has it.
const FORM: &str = "form";
const OPENED: &str = "opened";
const OWNER: &str = "owner";

/// Most times that a store is opened, so that versions stay below 2^62.
const MAX_OPENED: u64 = 1 << 22;

/// The form of the store that this program reads and writes.
const PRESENT_FORM: &[u8] = b"1";

/// The right to change a store, until it is dropped.
pub(crate) struct Ownership {
    pool: Arc<Pool>,
    cookie: CString,
    lost: Arc<AtomicBool>,
    /// The thread that renews the lock, and what stops it.
    keeper: Option<(Sender<()>, JoinHandle<()>)>,
    /// How often the store was opened, with this time.
    pub opened: u64,
}

impl Ownership {
    /// Takes the store.
    ///
    /// # Errors
    /// The error is [`Locked`](StoreError::Locked) if another process has it.
    pub fn take(pool: Arc<Pool>, location: &RadosLocation) -> Result<Ownership> {
        let failed = |op| move |errno| explain(op, location.to_string(), errno);
        let store = c_name(STORE.to_owned());
        let cookie = c_name(format!("{:032x}", fastrand::u128(..)));
        let owner = || read_attribute(&pool, &store, OWNER).map_err(failed("read"));
        let locked = || StoreError::Locked { dir: location.to_string().into() };
        let began = Instant::now();
        loop {
            match pool.lock(&store, &cookie, LOCK_TIME) {
                Ok(()) => break,
                Err(Errno::BUSY) => {}
                Err(errno) => return Err(failed("lock")(errno)),
            }
            let noted = owner()?;
            match Process::alive(&noted) {
                Some(true) => return Err(locked()),
                // Nobody renews the lock of a process that ended. Another one may have the lock by now, and has not written its name yet.
                Some(false) => {
                    let lockers = pool.lockers(&store, OWNED).map_err(failed("read the lock of"))?;
                    if let Some(locker) =
                        lockers.iter().find(|locker| Process::had_cookie(&noted, &locker.cookie))
                    {
                        match pool.break_lock(&store, OWNED, locker) {
                            Ok(()) | Err(Errno::NOENT) => continue,
                            Err(errno) => return Err(failed("take the lock of")(errno)),
                        }
                    }
                }
                None => {}
            }
            if began.elapsed() > LOCK_PATIENCE {
                return Err(locked());
            }
            std::thread::sleep(LOCK_AGAIN);
        }
        let mut ownership = Ownership {
            pool: pool.clone(),
            cookie,
            lost: Arc::new(AtomicBool::new(false)),
            keeper: None,
            opened: 0,
        };
        // From here on dropping gives the lock back.
        let form = read_attribute(&pool, &store, FORM).map_err(failed("read"))?;
        if !form.is_empty() && form != PRESENT_FORM {
            return Err(StoreError::Invalid {
                what: format!(
                    "{location} was made by another release of Gristmill (form {})",
                    String::from_utf8_lossy(&form)
                ),
                remedy: "use that release, or another name for the store",
            });
        }
        let former = owner()?;
        if let Some(addresses) = Process::addresses(&former) {
            pool.shut_out(&addresses, SHUT_OUT_TIME).map_err(|errno| match errno {
                Errno::PERM | Errno::ACCESS => StoreError::Invalid {
                    what: format!("{location} was not closed by the process that had it, and the key may not shut that one out"),
                    remedy: "give the key the right \"mon: profile simple-rados-client-with-blocklist\" (ceph auth caps)",
                },
                errno => failed("shut out the former owner of")(errno),
            })?;
        }
        let before = read_attribute(&pool, &store, OPENED).map_err(failed("read"))?;
        let opened = std::str::from_utf8(&before).ok().filter(|text| !text.is_empty()).map(str::parse::<u64>);
        let opened = match opened {
            None if form.is_empty() => 1,
            Some(Ok(opened)) if opened < MAX_OPENED => opened + 1,
            _ => {
                return Err(StoreError::Damaged {
                    what: format!("{location} does not say how often it was opened"),
                    remedy: "Ask for help before you use it: versions of its objects could be used twice",
                });
            }
        };
        let addresses = pool.addresses().map_err(failed("find the address of"))?;
        let own = Process::this(&addresses, &ownership.cookie);
        // If this process was halted until its lock ended, another one has opened the store.
        let noted = ownership.note(
            Some(&before),
            &[(FORM, PRESENT_FORM), (OPENED, opened.to_string().as_bytes()), (OWNER, &own)],
        );
        match noted {
            Err(Errno::CANCELED) => return Err(locked()),
            noted => noted.map_err(failed("note the owner of"))?,
        }
        ownership.opened = opened;
        ownership.keeper = Some(ownership.keep(own).map_err(|source| StoreError::Io {
            op: "start a thread for",
            path: location.to_string().into(),
            source,
        })?);
        Ok(ownership)
    }

    /// Starts the thread that renews the lock.
    fn keep(&self, own: Vec<u8>) -> std::io::Result<(Sender<()>, JoinHandle<()>)> {
        let (stop, stopped) = channel();
        let (pool, cookie, lost) = (self.pool.clone(), self.cookie.clone(), self.lost.clone());
        let keep = move || {
            let store = c_name(STORE.to_owned());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(RENEWED) {
                let renewed = pool.lock(&store, &cookie, LOCK_TIME);
                let is_lost = match renewed.and_then(|()| read_attribute(&pool, &store, OWNER)) {
                    Ok(owner) => owner != own,
                    // Another failure may pass. Whoever takes the store meanwhile shuts this process out.
                    Err(errno) => matches!(errno, Errno::BUSY | SHUT_OUT),
                };
                if is_lost {
                    lost.store(true, Ordering::SeqCst);
                    return;
                }
            }
        };
        Ok((stop, Builder::new().name("rados lock".into()).spawn(keep)?))
    }

    /// Sets attributes of the object of the store. `opened`: the number that it must still have.
    fn note(&self, opened: Option<&[u8]>, attributes: &[(&str, &[u8])]) -> std::result::Result<(), Errno> {
        let name_of_number = c_name(OPENED.to_owned());
        let names: Vec<_> = attributes.iter().map(|(name, _)| c_name((*name).to_owned())).collect();
        let guard = opened.map(|value| Action::MustHave { name: &name_of_number, value });
        let set =
            attributes.iter().zip(&names).map(|((_, value), name)| Action::SetAttribute { name, value });
        // A pool that has no entries refuses it here, and not with the first object.
        let entry = Action::Entry { key: FORM, value: Some(PRESENT_FORM) };
        let actions = guard.into_iter().chain(set).chain([entry]);
        self.pool.change_in_full_pool(&c_name(STORE.to_owned()), actions.collect())
    }

    /// Whether another process has the store now.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        if let Some((stop, keeper)) = self.keeper.take() {
            drop(stop);
            // A panic of the thread has nothing to say here.
            let _ = keeper.join();
        }
        if self.is_lost() {
            return;
        }
        // If this fails, the next process finds out by itself that this one is gone.
        if self.opened > 0 && self.note(None, &[(OWNER, b"")]).is_err() {
            return;
        }
        let _ = self.pool.unlock(&c_name(STORE.to_owned()), OWNED, &self.cookie);
    }
}

/// The value of an attribute; empty if there is none.
fn read_attribute(pool: &Pool, name: &CString, attribute: &str) -> std::result::Result<Vec<u8>, Errno> {
    Ok(pool.attribute(name, &c_name(attribute.to_owned()))?.unwrap_or_default())
}

/// A process, as the attribute [`OWNER`] names it: the addresses of its connection, then the machine, the processes that it sees, its
/// number, the time when it began, and the cookie of its lock, a line each.
struct Process;

impl Process {
    /// This process.
    fn this(addresses: &CStr, cookie: &CStr) -> Vec<u8> {
        let pid = std::process::id();
        let (machine, began) = (machine().unwrap_or_default(), began(pid).unwrap_or_default());
        let (addresses, cookie) = (addresses.to_string_lossy(), cookie.to_string_lossy());
        format!("{addresses}\n{machine}\n{pid}\n{began}\n{cookie}\n").into_bytes()
    }

    fn addresses(owner: &[u8]) -> Option<CString> {
        let first = owner.split(|byte| *byte == b'\n').next().filter(|first| !first.is_empty())?;
        CString::new(first).ok()
    }

    /// Whether the process took its lock with this cookie.
    fn had_cookie(owner: &[u8], cookie: &CStr) -> bool {
        owner.split(|byte| *byte == b'\n').nth(4) == Some(cookie.to_bytes())
    }

    /// Whether the process still runs. `None` if that cannot be seen from here.
    fn alive(owner: &[u8]) -> Option<bool> {
        let owner = std::str::from_utf8(owner).ok()?;
        let mut lines = owner.lines().skip(1);
        let (there, pid, time) = (lines.next()?, lines.next()?.parse::<u32>().ok()?, lines.next()?);
        (there == machine()?).then(|| began(pid).is_some_and(|began| began == time))
    }
}

/// This machine since its last start, and the processes that are seen from here.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), processes.display()))
}

/// The time when a process began, in ticks since the start of the machine (`man 5 proc`, field 22 of `stat`).
fn began(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_to_be_alive_or_not() {
        let addresses = CString::new("[v2:127.0.0.1:0/1]").unwrap();
        let own = Process::this(&addresses, c"cookie");
        assert!(Process::had_cookie(&own, c"cookie") && !Process::had_cookie(&own, c"other"));
        assert_eq!(Process::addresses(&own), Some(addresses));
        assert_eq!(Process::alive(&own), Some(true));
        let text = String::from_utf8(own).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let with = |at: usize, value: &str| {
            let mut lines = lines.clone();
            lines[at] = value;
            Process::alive(lines.join("\n").as_bytes())
        };
        assert_eq!(with(2, "4194305"), Some(false), "there are no such numbers of processes");
        assert_eq!(with(3, "1"), Some(false), "the number belongs to another process now");
        assert_eq!(with(1, "another machine"), None);
        assert_eq!(Process::alive(b""), None);
        assert_eq!(Process::addresses(b""), None);
    }
}
