//! TCP connections with as little as possible around them: what copies and requests are measured against.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::Answer;
use crate::command::{Drain, Echo, Feed, Tcp};
use crate::scan::Pages;

/// Connections of one copy, at most.
const MAX_STREAMS: usize = 64;

/// How long connecting is tried while nobody listens yet.
const CONNECT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Sends a file over `streams` connections, a stretch of it over each, to threads that write what they receive and
/// flush it, the directory too.
pub fn tcp(tcp: &Tcp) -> Result<Answer, String> {
    if !(1..=MAX_STREAMS).contains(&tcp.streams) {
        return Err(format!("{} streams are not 1 to {MAX_STREAMS}", tcp.streams));
    }
    let copied = || -> io::Result<(Duration, u64)> {
        fs::create_dir_all(&tcp.folder)?;
        let begun = Instant::now();
        let source = File::open(&tcp.source)?;
        let length = source.metadata()?.len();
        let share = length.div_ceil(tcp.streams as u64);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received: io::Result<u64> = thread::scope(|scope| {
            let mut receivers = Vec::new();
            let mut senders = Vec::new();
            for n in 0..tcp.streams {
                let to = TcpStream::connect(address)?;
                let (from, _) = listener.accept()?;
                let part = n as u64 * share..length.min((n as u64 + 1) * share);
                let (source, path) = (&source, tcp.folder.join(format!("part{n}")));
                senders.push(scope.spawn(move || send(source, part, to)));
                receivers.push(scope.spawn(move || receive(from, &File::create(path)?)));
            }
            for sender in senders {
                joined(sender)?;
            }
            receivers.into_iter().try_fold(0, |sum, receiver| Ok(sum + joined(receiver)?))
        });
        let received = received?;
        File::open(&tcp.folder)?.sync_all()?;
        if received != length {
            return Err(io::Error::other(format!("{received} of {length} bytes came through")));
        }
        Ok((begun.elapsed(), received))
    };
    let (elapsed, bytes) = copied().map_err(|e| format!("{}: {e}", tcp.source.display()))?;
    Ok(Answer::timed(elapsed, bytes))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().map_err(|_| io::Error::other("a thread panicked")).flatten()
}

fn send(source: &File, part: std::ops::Range<u64>, mut to: TcpStream) -> io::Result<()> {
    let mut pages = Pages::new();
    let buffer = pages.bytes();
    let mut at = part.start;
    while at < part.end {
        let size = (buffer.len() as u64).min(part.end - at) as usize;
        let block = &mut buffer[..size];
        source.read_exact_at(block, at)?;
        to.write_all(block)?;
        at += size as u64;
    }
    to.shutdown(Shutdown::Write)
}

fn receive(mut from: TcpStream, file: &File) -> io::Result<u64> {
    let mut pages = Pages::new();
    let buffer = pages.bytes();
    let mut at = 0;
    loop {
        let read = from.read(buffer)?;
        if read == 0 {
            file.sync_data()?;
            return Ok(at);
        }
        file.write_all_at(&buffer[..read], at)?;
        at += read as u64;
    }
}

/// Sends a file to the first that connects.
pub fn feed(feed: &Feed) -> Result<Answer, String> {
    let fed = || -> io::Result<(Duration, u64)> {
        let source = File::open(&feed.source)?;
        let length = source.metadata()?.len();
        let (to, _) = TcpListener::bind(&feed.listen)?.accept()?;
        let begun = Instant::now();
        send(&source, 0..length, to)?;
        Ok((begun.elapsed(), length))
    };
    let (elapsed, bytes) = fed().map_err(|e| format!("{} to {}: {e}", feed.source.display(), feed.listen))?;
    Ok(Answer::timed(elapsed, bytes))
}

/// Reads all that is sent.
pub fn drain(drain: &Drain) -> Result<Answer, String> {
    let drained = || -> io::Result<(Duration, u64)> {
        let mut from = connected(&drain.from)?;
        let begun = Instant::now();
        let mut pages = Pages::new();
        let buffer = pages.bytes();
        let mut bytes = 0;
        loop {
            match from.read(buffer)? {
                0 => return Ok((begun.elapsed(), bytes)),
                read => bytes += read as u64,
            }
        }
    };
    let (elapsed, bytes) = drained().map_err(|e| format!("{}: {e}", drain.from))?;
    Ok(Answer::timed(elapsed, bytes))
}

/// Connects to somebody who may just be about to listen.
pub fn connected(address: &str) -> io::Result<TcpStream> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && begun.elapsed() < CONNECT => {
                thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// Another thread sends back what it gets.
pub fn echo(echo: &Echo) -> Result<Answer, String> {
    let echoed = || -> io::Result<Answer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut to = TcpStream::connect(listener.local_addr()?)?;
        let (mut from, _) = listener.accept()?;
        to.set_nodelay(true)?;
        from.set_nodelay(true)?;
        let other = thread::spawn(move || {
            let mut byte = [0];
            while from.read_exact(&mut byte).is_ok() && from.write_all(&byte).is_ok() {}
        });
        let begun = Instant::now();
        let mut each = Vec::with_capacity(echo.count);
        for _ in 0..echo.count {
            let sent = Instant::now();
            to.write_all(&[1])?;
            to.read_exact(&mut [0])?;
            each.push(sent.elapsed().as_secs_f64());
        }
        let elapsed = begun.elapsed();
        drop(to);
        other.join().map_err(|_| io::Error::other("a thread panicked"))?;
        Ok(Answer { each, ..Answer::timed(elapsed, 0) })
    };
    echoed().map_err(|e| format!("a connection of this machine: {e}"))
}
