//! Resources under processor sharing, and the events at the ends of their jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a time that is not negative. They have the same order as the times.
type TimeBits = u64;

#[derive(Default)]
struct Resource {
    /// Seconds of service that a job would have got if it had been here since the resource was last free.
    served: f64,
    /// Time of the value in `served`.
    at: f64,
    /// Value of `served` at which each job ends, and the request of the job.
    jobs: BinaryHeap<Reverse<(TimeBits, u32)>>,
    /// Time at which it is free if no more jobs come. It is never idle while it has jobs.
    free: f64,
    /// Version of its only valid event.
    version: u32,
}

/// Resources, and requests that use several resources at the same time.
pub(super) struct SharedResources {
    resources: Vec<Resource>,
    /// Ends of the next jobs: time, resource, version.
    events: BinaryHeap<Reverse<(TimeBits, u32, u32)>>,
    /// Number of resources that each request still uses, and the earliest time at which it can end.
    requests: Vec<(u32, f64)>,
    ends: Vec<f64>,
}

impl SharedResources {
    pub fn new(resources: usize) -> SharedResources {
        let resources = (0..resources).map(|_| Resource::default()).collect();
        SharedResources { resources, events: BinaryHeap::new(), requests: Vec::new(), ends: Vec::new() }
    }

    /// Seconds until a resource is free.
    pub fn busy(&self, resource: usize, now: f64) -> f64 {
        (self.resources[resource].free - now).max(0.0)
    }

    /// Begins a request. It uses each of its resources once, for more than 0 s. Alone it takes `min_seconds`.
    pub fn begin(&mut self, now: f64, min_seconds: f64, uses: impl Iterator<Item = (usize, f64)>) {
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
        self.requests.push((count, now + min_seconds));
        self.ends.push(now + min_seconds);
    }

    /// End of each request, in the order of their beginnings. The ends are valid when all requests are done.
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// Handles all events up to a time.
    pub fn run_until(&mut self, until: f64) {
        while let Some(Reverse((at, resource, version))) = self.events.peek().copied() {
            let now = f64::from_bits(at);
            if now > until {
                break;
            }
            self.events.pop();
            let one = &mut self.resources[resource as usize];
            if one.version != version {
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

    /// Creates the event for the end of a resource's next job.
    fn plan(&mut self, resource: usize) {
        let one = &mut self.resources[resource];
        one.version = one.version.wrapping_add(1);
        if let Some(Reverse((ends, _))) = one.jobs.peek() {
            let left = (f64::from_bits(*ends) - one.served).max(0.0);
            let at = one.at + left * one.jobs.len() as f64;
            self.events.push(Reverse((at.to_bits(), resource as u32, one.version)));
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
