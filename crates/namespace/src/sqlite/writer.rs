//! The one thread that changes the namespace. Changes share commits.
//!
//! A durable commit costs a sync of the device, even if it is small. During a commit, changes wait in a queue. Then the
//! thread takes all of them, up to [`MAX_GROUP`], into one transaction. Each change has a savepoint, so a refused
//! change is undone alone. No caller gets an answer before the commit.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::schema;
use crate::{NamespaceError, PendingChange, Result};

/// Most changes that wait for the writing thread. Further callers wait to queue their changes.
pub const MAX_QUEUED: usize = 1_024;
/// Most changes in one commit.
pub const MAX_GROUP: usize = 256;

pub(crate) struct Writer {
    queue: Option<SyncSender<Box<dyn Change>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which owns `connection` and ends when the writer is dropped.
    pub(crate) fn start(connection: Connection) -> std::io::Result<Self> {
        let (queue, changes) = sync_channel(MAX_QUEUED);
        let thread = std::thread::Builder::new()
            .name("namespace-writer".into())
            .spawn(move || serve(&connection, &changes))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in a transaction of the writing thread. Returns `Ok` when it is durable. After an error, nothing has
    /// changed.
    pub(crate) fn call<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.enqueue(work)?.recv().map_err(|_| NamespaceError::Stopped)?
    }

    /// Queues `work`, which shares a commit with other queued changes.
    pub(crate) fn queue_call<T, W>(&self, work: W) -> Result<PendingChange<T>>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        Ok(PendingChange::of(self.enqueue(work)?))
    }

    /// Queues `work`. The answer comes through the channel.
    fn enqueue<T, W>(&self, work: W) -> Result<Receiver<Result<T>>>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = sync_channel(1);
        let change = Box::new(Call { work: Some(work), outcome: None, reply });
        let queue = self.queue.as_ref().ok_or(NamespaceError::Stopped)?;
        queue.send(change).map_err(|_| NamespaceError::Stopped)?;
        Ok(answer)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, all waiting callers have got an error.
            let _ = thread.join();
        }
    }
}

trait Change: Send {
    /// Does the work and keeps its result.
    fn run(&mut self, connection: &Connection) -> Result<()>;
    /// Answers with the result, or with the failure of the whole group.
    fn answer(self: Box<Self>, group: &Result<()>);
}

struct Call<T, W> {
    work: Option<W>,
    outcome: Option<Result<T>>,
    reply: SyncSender<Result<T>>,
}

impl<T, W> Change for Call<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<()> {
        let Some(work) = self.work.take() else { return Err(NamespaceError::Stopped) };
        let outcome = work(connection);
        let done = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        done
    }

    fn answer(self: Box<Self>, group: &Result<()>) {
        let outcome = match group {
            Ok(()) => self.outcome.unwrap_or(Err(NamespaceError::Stopped)),
            Err(error) => Err(error.clone()),
        };
        // The caller may not wait any more.
        let _ = self.reply.send(outcome);
    }
}

fn serve(connection: &Connection, changes: &Receiver<Box<dyn Change>>) {
    while let Ok(first) = changes.recv() {
        let mut group = vec![first];
        group.extend(changes.try_iter().take(MAX_GROUP - 1));
        let done = commit(connection, &mut group);
        for change in group {
            change.answer(&done);
        }
    }
    // Every commit is durable without this. It only makes the next open faster.
    let _ = schema::checkpoint(connection);
}

/// Commits the whole group or nothing.
fn commit(connection: &Connection, group: &mut [Box<dyn Change>]) -> Result<()> {
    let done = run(connection, group);
    if done.is_err() && !connection.is_autocommit() {
        // If this fails, the next BEGIN fails too, and its group gets the error.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

fn run(connection: &Connection, group: &mut [Box<dyn Change>]) -> Result<()> {
    let execute = |sql: &str| connection.prepare_cached(sql)?.execute([]);
    execute("BEGIN IMMEDIATE")?;
    for change in group {
        execute("SAVEPOINT change")?;
        if let Err(error) = change.run(connection) {
            if connection.is_autocommit() {
                // SQLite ended the transaction, with the other changes of the group.
                return Err(error);
            }
            execute("ROLLBACK TO change")?;
        }
        execute("RELEASE change")?;
    }
    execute("COMMIT")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;

    use super::*;

    /// A table whose rows must have a parent at the commit, so that a commit can fail.
    fn writer() -> (tempfile::TempDir, Writer) {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open(dir.path().join("db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL;
                 CREATE TABLE t (n INTEGER PRIMARY KEY,
                     parent INTEGER REFERENCES t DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
        let writer = Writer::start(connection).unwrap();
        (dir, writer)
    }

    fn insert(n: i64, parent: i64) -> impl FnOnce(&Connection) -> Result<i64> + Send + 'static {
        move |connection| {
            connection.execute("INSERT INTO t VALUES (?, ?)", [n, parent])?;
            Ok(n)
        }
    }

    fn numbers(writer: &Writer) -> Vec<i64> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare("SELECT n FROM t ORDER BY n")?;
            Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?)
        };
        writer.call(read).unwrap()
    }

    /// Stops the thread inside one group while `queue` fills the next.
    fn as_one_group<T>(writer: &Writer, queue: impl FnOnce() -> T) -> T {
        let (started, when_started) = channel();
        let (open, opened) = channel::<()>();
        let gate = writer.enqueue(move |_| {
            started.send(()).unwrap();
            opened.recv().unwrap();
            Ok(())
        });
        when_started.recv().unwrap();
        let queued = queue();
        open.send(()).unwrap();
        gate.unwrap().recv().unwrap().unwrap();
        queued
    }

    #[test]
    fn a_refused_change_is_undone_alone() {
        let (_dir, writer) = writer();
        let answers = as_one_group(&writer, || {
            let refused = writer.enqueue(|connection| {
                insert(2, 2)(connection)?;
                Err::<i64, _>(NamespaceError::invalid("test", "none"))
            });
            [
                writer.enqueue(insert(1, 1)),
                refused,
                writer.enqueue(insert(1, 1)),
                writer.enqueue(insert(3, 3)),
            ]
        });
        let [one, two, again, three] = answers.map(|answer| answer.unwrap().recv().unwrap());
        assert_eq!((one.unwrap(), three.unwrap()), (1, 3));
        assert!(matches!(two, Err(NamespaceError::Invalid { .. })));
        assert!(matches!(again, Err(NamespaceError::Sqlite { .. })));
        assert_eq!(numbers(&writer), [1, 3]);
    }

    #[test]
    fn a_failed_commit_fails_the_whole_group_and_leaves_nothing() {
        let (_dir, writer) = writer();
        let answers = as_one_group(&writer, || {
            [writer.enqueue(insert(1, 1)), writer.enqueue(insert(2, 99)), writer.enqueue(insert(3, 3))]
        });
        for answer in answers {
            assert!(matches!(answer.unwrap().recv().unwrap(), Err(NamespaceError::Sqlite { .. })));
        }
        assert_eq!(numbers(&writer), [0; 0]);
        assert_eq!(writer.call(insert(4, 4)).unwrap(), 4);
        assert_eq!(numbers(&writer), [4]);
    }

    #[test]
    fn a_transaction_lost_half_way_fails_the_whole_group() {
        let (_dir, writer) = writer();
        let answers = as_one_group(&writer, || {
            let lost = writer.enqueue(|connection| {
                connection.execute_batch("ROLLBACK")?;
                Err::<i64, _>(NamespaceError::NoSpace)
            });
            [writer.enqueue(insert(1, 1)), lost, writer.enqueue(insert(3, 3))]
        });
        for answer in answers {
            assert!(matches!(answer.unwrap().recv().unwrap(), Err(NamespaceError::NoSpace)));
        }
        assert_eq!(numbers(&writer), [0; 0]);
    }

    #[test]
    fn more_changes_than_one_group_takes_are_all_done() {
        let (_dir, writer) = writer();
        let count = MAX_QUEUED as i64;
        let answers = as_one_group(&writer, || {
            (0..count).map(|n| writer.enqueue(insert(n, n)).unwrap()).collect::<Vec<_>>()
        });
        for (n, answer) in (0..).zip(answers) {
            assert_eq!(answer.recv().unwrap().unwrap(), n);
        }
        assert_eq!(numbers(&writer), (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_in_a_change_is_an_error_for_all_that_follow() {
        let (_dir, writer) = writer();
        let gone = writer.call(|_| -> Result<()> { std::panic::panic_any("a defect") });
        assert!(matches!(gone, Err(NamespaceError::Stopped)));
        assert!(matches!(writer.call(insert(1, 1)), Err(NamespaceError::Stopped)));
    }
}
