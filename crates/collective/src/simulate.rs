//! A network of members in one thread: delays, disorder and crashes drawn from a seed.
//!
//! The members are the very ones that run between servers. What differs is who carries their messages and whose clock
//! they are told.
//! ```
//! use gristmill_collective::simulate::{Network, Simulation};
//! use gristmill_collective::{Collective, CollectiveError};
//!
//! let mut add = |a: Vec<u8>, b: Vec<u8>| Ok::<_, CollectiveError>(vec![a[0].wrapping_add(b[0])]);
//! let run = Simulation::new(1000, Network::even(1)).run(&[Collective::Allreduce], |_| vec![1], &mut add);
//! assert!(run.ends.iter().all(|end| end.result.as_ref().unwrap()[0].value == [232])); // 1000 mod 256
//! assert_eq!(run.finished(), 11); // 9 doublings among 512, and 2 for those beyond
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Action, Collective, CollectiveError, Limits, Member, Operator, Outcome, Rank, Reply, Size};

/// How messages travel: a member sends one after the other, `least` apart, and takes several at once. Times are milliseconds to the members, whatever they stand for.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Shortest time on the way.
    pub least: u64,
    /// Longest time on the way; messages overtake each other within these bounds.
    pub most: u64,
    /// Longest time before a member begins its next collective.
    pub work: u64,
    /// Where delays and work are drawn from.
    pub seed: u64,
}

impl Network {
    /// Every message takes as long, and members do nothing else: the time is the number of rounds.
    pub const fn even(delay: u64) -> Network {
        Network { least: delay, most: delay, work: 0, seed: 0 }
    }
}

/// What becomes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stops without a word.
    Crash,
    /// It stops, and another takes its place that knows of nothing.
    Restart,
    /// Its own work fails.
    Fail,
}

/// A number of members and what is to happen.
#[derive(Clone, Debug)]
pub struct Simulation {
    size: Size,
    network: Network,
    limits: Limits,
    fates: Vec<(u64, Rank, Fate)>,
}

/// How one member ended.
#[derive(Clone, Debug)]
pub struct End {
    /// When: the last thing that it did.
    pub at: u64,
    /// What came out of each collective, or why it gave up. Of one that crashed: [`CollectiveError::Silent`] with its own
    /// rank.
    pub result: Result<Vec<Outcome>, CollectiveError>,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Run {
    /// How each member ended, by rank.
    pub ends: Vec<End>,
    /// Values that were sent.
    pub messages: u64,
}

impl Run {
    /// When the last member ended.
    pub fn finished(&self) -> u64 {
        self.ends.iter().map(|end| end.at).max().unwrap_or(0)
    }
}

/// Events of one run, at most: beyond it the simulation is at fault.
const MAX_EVENTS: u64 = 50_000_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(Rank),
    Value { to: Rank, from: Rank, number: u64, value: Vec<u8> },
    Ask { to: Rank, from: Rank },
    Answer { to: Rank, from: Rank, reply: Said },
    Tick(Rank),
    Fate(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Here,
    Unknown,
    Gone(String),
}

/// A small generator (SplitMix64), so that a seed means the same for ever.
struct Random(u64);

impl Random {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most.saturating_add(1).max(1)
    }
}

enum Server {
    At(Box<Member>, Vec<Outcome>),
    Down,
    /// Started again; it knows of nothing.
    Blank,
}

impl Simulation {
    /// So many members on such a network, with the limits of real servers.
    pub fn new(size: Size, network: Network) -> Simulation {
        Simulation { size, network, limits: Limits::default(), fates: Vec::new() }
    }

    /// The same with other limits.
    pub fn with_limits(self, limits: Limits) -> Simulation {
        Simulation { limits, ..self }
    }

    /// The same where something happens to a server at a time.
    pub fn with_fate(mut self, at: u64, rank: Rank, fate: Fate) -> Simulation {
        self.fates.push((at, rank, fate));
        self
    }

    /// Has all members do these collectives, one after the other. `value` says what a rank brings to each.
    pub fn run(
        &self,
        collectives: &[Collective],
        value: impl Fn(Rank) -> Vec<u8>,
        operator: &mut dyn Operator,
    ) -> Run {
        let mut world = World {
            simulation: self,
            collectives,
            operator,
            servers: (0..self.size)
                .map(|rank| Server::At(Box::new(Member::new(rank, self.size, self.limits)), Vec::new()))
                .collect(),
            ends: vec![None; self.size as usize],
            free: vec![0; self.size as usize],
            events: BinaryHeap::new(),
            order: 0,
            random: Random(self.network.seed),
            messages: 0,
        };
        for rank in 0..self.size {
            world.after_work(0, rank);
        }
        for (n, (at, _, _)) in self.fates.iter().enumerate() {
            world.push(*at, Event::Fate(n));
        }
        for _ in 0..MAX_EVENTS {
            let Some(Reverse((now, _, event))) = world.events.pop() else { break };
            world.happen(now, event, &value);
        }
        let open = CollectiveError::Disorder { from: 0, why: "the simulation ended before this member did" };
        let ends =
            world.ends.into_iter().map(|end| end.unwrap_or(End { at: u64::MAX, result: Err(open.clone()) }));
        Run { ends: ends.collect(), messages: world.messages }
    }
}

struct World<'a> {
    simulation: &'a Simulation,
    collectives: &'a [Collective],
    operator: &'a mut dyn Operator,
    servers: Vec<Server>,
    ends: Vec<Option<End>>,
    /// When each member can send its next value.
    free: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Events of one time happen in the order in which they were made.
    order: u64,
    random: Random,
    messages: u64,
}

impl World<'_> {
    fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn delay(&mut self) -> u64 {
        let Network { least, most, .. } = self.simulation.network;
        least + self.random.up_to(most.saturating_sub(least))
    }

    fn after_work(&mut self, now: u64, rank: Rank) {
        let work = self.random.up_to(self.simulation.network.work);
        self.push(now + work, Event::Start(rank));
    }

    fn happen(&mut self, now: u64, event: Event, value: &impl Fn(Rank) -> Vec<u8>) {
        match event {
            Event::Start(rank) => {
                let Server::At(member, outcomes) = &mut self.servers[rank as usize] else { return };
                let Some(collective) = self.collectives.get(outcomes.len()) else { return };
                let actions = member.start(now, *collective, value(rank), self.operator);
                self.act(now, rank, actions);
                self.push(now + self.simulation.limits.ask_every, Event::Tick(rank));
            }
            Event::Value { to, from, number, value } => {
                let Server::At(member, _) = &mut self.servers[to as usize] else { return };
                if let Ok(actions) = member.deliver(now, number, from, value, self.operator) {
                    self.act(now, to, actions);
                }
            }
            Event::Ask { to, from } => {
                let reply = match &self.servers[to as usize] {
                    Server::Down => return,
                    Server::Blank => Said::Unknown,
                    Server::At(member, _) => match member.reply() {
                        Reply::Here => Said::Here,
                        Reply::Unknown => Said::Unknown,
                        Reply::Gone(why) => Said::Gone(why),
                    },
                };
                let at = now + self.delay();
                self.push(at, Event::Answer { to: from, from: to, reply });
            }
            Event::Answer { to, from, reply } => {
                let Server::At(member, _) = &mut self.servers[to as usize] else { return };
                let reply = match reply {
                    Said::Here => Reply::Here,
                    Said::Unknown => Reply::Unknown,
                    Said::Gone(why) => Reply::Gone(why),
                };
                member.heard(now, from, reply);
                self.act(now, to, Vec::new());
            }
            Event::Tick(rank) => {
                if self.ends[rank as usize].is_some() {
                    return;
                }
                let Server::At(member, _) = &mut self.servers[rank as usize] else { return };
                let actions = member.tick(now);
                self.act(now, rank, actions);
                self.push(now + self.simulation.limits.ask_every, Event::Tick(rank));
            }
            Event::Fate(n) => self.befall(now, n),
        }
    }

    fn befall(&mut self, now: u64, n: usize) {
        let (_, rank, fate) = self.simulation.fates[n];
        let gone = CollectiveError::Silent { rank, seconds: 0 };
        match fate {
            Fate::Fail => {
                let Server::At(member, _) = &mut self.servers[rank as usize] else { return };
                member.lost(CollectiveError::Operator(format!("member {rank} failed")));
                return self.act(now, rank, Vec::new());
            }
            Fate::Crash => self.servers[rank as usize] = Server::Down,
            Fate::Restart => self.servers[rank as usize] = Server::Blank,
        }
        self.ends[rank as usize].get_or_insert(End { at: now, result: Err(gone) });
    }

    /// Carries out what a member wants and takes what came out.
    fn act(&mut self, now: u64, rank: Rank, actions: Vec<Action>) {
        for action in actions {
            let at = now + self.delay();
            match action {
                Action::Send { to, number, value } => {
                    self.messages += 1;
                    let start = now.max(self.free[rank as usize]);
                    self.free[rank as usize] = start + self.simulation.network.least;
                    let at = start + (at - now);
                    self.push(at, Event::Value { to, from: rank, number, value });
                }
                Action::Ask(to) => self.push(at, Event::Ask { to, from: rank }),
            }
        }
        let Server::At(member, outcomes) = &mut self.servers[rank as usize] else { return };
        if self.ends[rank as usize].is_some() {
            return;
        }
        match member.outcome() {
            None => {}
            Some(Err(error)) => self.ends[rank as usize] = Some(End { at: now, result: Err(error) }),
            Some(Ok(outcome)) => {
                outcomes.push(outcome);
                if outcomes.len() == self.collectives.len() {
                    let result = Ok(outcomes.clone());
                    self.ends[rank as usize] = Some(End { at: now, result });
                } else {
                    self.after_work(now, rank);
                }
            }
        }
    }
}
