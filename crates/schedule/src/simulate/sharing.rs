//! Resources under processor sharing, and the events of their ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time that is not negative, as a number that sorts alike.
type Key = u64;

#[derive(Default)]
struct Resource {
    /// Seconds of service that each of its jobs would have had, had it been there since the resource was last
    /// free.
    served: f64,
    /// When `served` was right.
    at: f64,
    /// Service at which each job ends, and whose it is.
    jobs: BinaryHeap<Reverse<(Key, u32)>>,
    /// When it is free if nothing more comes: it is never idle while it has jobs.
    free: f64,
    /// Which of the events made for it is still right.
    turn: u32,
}

/// Resources, and requests that use several of them at once.
pub(super) struct Shared {
    resources: Vec<Resource>,
    /// When a resource is done with its next job: time, resource, turn.
    events: BinaryHeap<Reverse<(Key, u32, u32)>>,
    /// Resources that each request still uses, and when it began or last lost one, or what it takes alone is
    /// over.
    requests: Vec<(u32, f64)>,
    ends: Vec<f64>,
}

impl Shared {
    pub fn new(resources: usize) -> Shared {
        let resources = (0..resources).map(|_| Resource::default()).collect();
        Shared { resources, events: BinaryHeap::new(), requests: Vec::new(), ends: Vec::new() }
    }

    /// Seconds for which a resource has something to do.
    pub fn busy(&self, resource: usize, now: f64) -> f64 {
        (self.resources[resource].free - now).max(0.0)
    }

    /// A request begins to use resources, each once and for more than no time. Alone it takes `least`
    /// seconds.
    pub fn begin(&mut self, now: f64, least: f64, uses: impl Iterator<Item = (usize, f64)>) {
        let request = self.requests.len() as u32;
        let mut count = 0;
        for (resource, seconds) in uses {
            count += 1;
            let one = &mut self.resources[resource];
            one.advance(now);
            one.jobs.push(Reverse(((one.served + seconds).to_bits(), request)));
            one.free = one.free.max(now) + seconds;
            self.plan(resource);
        }
        self.requests.push((count, now + least));
        self.ends.push(now + least);
    }

    /// When each request was done, by the order in which they began; right when all have been run.
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// Plays all that happens up to a time.
    pub fn run_until(&mut self, until: f64) {
        while let Some(Reverse((at, resource, turn))) = self.events.peek().copied() {
            let now = f64::from_bits(at);
            if now > until {
                break;
            }
            self.events.pop();
            let one = &mut self.resources[resource as usize];
            if one.turn != turn {
                continue;
            }
            one.advance(now);
            let Some(Reverse((_, request))) = one.jobs.pop() else { continue };
            self.plan(resource as usize);
            let (left, alone) = &mut self.requests[request as usize];
            *left -= 1;
            if *left == 0 {
                self.ends[request as usize] = alone.max(now);
            }
        }
    }

    /// Makes the event of a resource's next end.
    fn plan(&mut self, resource: usize) {
        let one = &mut self.resources[resource];
        one.turn = one.turn.wrapping_add(1);
        if let Some(Reverse((ends, _))) = one.jobs.peek() {
            let left = (f64::from_bits(*ends) - one.served).max(0.0);
            let at = one.at + left * one.jobs.len() as f64;
            self.events.push(Reverse((at.to_bits(), resource as u32, one.turn)));
        } else {
            one.served = 0.0;
        }
    }
}

impl Resource {
    fn advance(&mut self, now: f64) {
        if !self.jobs.is_empty() {
            self.served += (now - self.at) / self.jobs.len() as f64;
        }
        self.at = now;
    }
}
