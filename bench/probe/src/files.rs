//! Copying many files with nothing but the file system.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::answer::Answer;
use crate::command::Copies;

/// Threads of one command, at most.
const MAX_THREADS: usize = 256;

/// The names in a directory, in ascending order.
pub fn names(directory: &Path) -> Result<Vec<String>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().into_string();
        names.push(name.map_err(|name| format!("{} is no UTF-8", name.display()))?);
    }
    names.sort();
    Ok(names)
}

/// Each file is written under another name, flushed, renamed, and its directory flushed.
pub fn copies(copies: &Copies) -> Result<Answer, String> {
    let names = names(&copies.source)?;
    fs::create_dir_all(&copies.folder).map_err(|e| format!("{}: {e}", copies.folder.display()))?;
    let copy = |name: &String| -> Result<u64, String> {
        let (path, part) = (copies.folder.join(name), copies.folder.join(format!("{name}.part")));
        let written = || -> std::io::Result<u64> {
            let bytes = fs::read(copies.source.join(name))?;
            let mut file = File::create(&part)?;
            file.write_all(&bytes)?;
            file.sync_data()?;
            fs::rename(&part, &path)?;
            File::open(&copies.folder)?.sync_all()?;
            Ok(bytes.len() as u64)
        };
        written().map_err(|e| format!("{}: {e}", path.display()))
    };
    let begun = Instant::now();
    let bytes = each_on_threads(&names, copies.threads, copy)?;
    Ok(Answer::timed(begun.elapsed(), bytes.into_iter().sum()))
}

/// What `work` makes of every item, in their order; the threads take the next item as they come.
pub fn each_on_threads<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(format!("{threads} threads are not 1 to {MAX_THREADS}"));
    }
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let thread = || -> Result<(), String> {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(number)
        {
            let result = work(item)?;
            made.lock().map_err(|_| "a thread panicked".to_owned())?.push((number, result));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned()).flatten())
    })?;
    let mut made = made.into_inner().map_err(|_| "a thread panicked".to_owned())?;
    made.sort_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}
