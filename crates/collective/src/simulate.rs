//! Simulator of members in one thread. Delays, the order of messages and crashes are drawn from a seed.
//!
//! The members are the same code that runs between servers. Only the network and the clock are simulated.
//! ```
//! use gristmill_collective::simulate::{Network, Simulation};
//! use gristmill_collective::{Collective, CollectiveError};
//!
//! let mut add = |a: Vec<u8>, b: Vec<u8>| Ok::<_, CollectiveError>(vec![a[0].wrapping_add(b[0])]);
//! let run = Simulation::new(1000, Network::uniform(1)).run(&[Collective::Allreduce], |_| vec![1], &mut add);
//! assert!(run.ends.iter().all(|end| end.result.as_ref().unwrap()[0].value == [232])); // 1000 mod 256
//! assert_eq!(run.end_time(), 11); // 9 doublings among 512, and 2 for the other 488
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Action, Collective, CollectiveError, Limits, Member, Operator, Outcome, Rank, Reply, Size};

/// Simulated network. A member sends one message after the other, `min_delay` apart, and receives several at once.
/// Members read times as milliseconds, but any unit can be meant.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Shortest time that a message travels.
    pub min_delay: u64,
    /// Longest time that a message travels. Messages overtake each other within these bounds.
    pub max_delay: u64,
    /// Longest time before a member begins its next collective.
    pub max_work: u64,
    /// Seed of the delays and the work.
    pub seed: u64,
}

impl Network {
    /// Creates a network where each message takes `delay` and members do no other work. With a delay of 1, the time is
    /// the number of rounds.
    pub const fn uniform(delay: u64) -> Network {
        Network { min_delay: delay, max_delay: delay, max_work: 0, seed: 0 }
    }
}

/// Fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It stops without a message.
    Crash,
    /// It stops, and starts again without its state.
    Restart,
    /// Its own work fails.
    Fail,
}

/// A group of members, their network and their faults.
#[derive(Clone, Debug)]
pub struct Simulation {
    size: Size,
    network: Network,
    limits: Limits,
    faults: Vec<(u64, Rank, Fault)>,
}

/// End of one member.
#[derive(Clone, Debug)]
pub struct MemberEnd {
    /// Time of its last event.
    pub at: u64,
    /// Result of each collective, or the reason why the member gave up. A member that crashed has
    /// [`CollectiveError::Silent`] with its own rank.
    pub result: Result<Vec<Outcome>, CollectiveError>,
}

/// Result of a simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// End of each member, by rank.
    pub ends: Vec<MemberEnd>,
    /// Number of values that were sent.
    pub messages: u64,
}

impl Run {
    /// Time at which the last member ended.
    pub fn end_time(&self) -> u64 {
        self.ends.iter().map(|end| end.at).max().unwrap_or(0)
    }
}

/// Most events of one run. More events mean an error in the simulation.
const MAX_EVENTS: u64 = 50_000_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(Rank),
    Value { to: Rank, from: Rank, number: u64, value: Vec<u8> },
    Ask { to: Rank, from: Rank },
    Answer { to: Rank, from: Rank, reply: SimulatedReply },
    Tick(Rank),
    Fault(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedReply {
    Working,
    Unknown,
    GaveUp(String),
}

/// A small random generator (SplitMix64). A seed always gives the same numbers.
struct Random(u64);

impl Random {
    fn up_to(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % max.saturating_add(1).max(1)
    }
}

enum Server {
    Running(Box<Member>, Vec<Outcome>),
    Down,
    /// Started again without its state.
    Restarted,
}

impl Simulation {
    /// Creates a simulation of `size` members on a network, with the limits of real servers.
    pub fn new(size: Size, network: Network) -> Simulation {
        Simulation { size, network, limits: Limits::default(), faults: Vec::new() }
    }

    /// Sets other limits.
    pub fn with_limits(self, limits: Limits) -> Simulation {
        Simulation { limits, ..self }
    }

    /// Adds a fault of a server at a time.
    pub fn with_fault(mut self, at: u64, rank: Rank, fault: Fault) -> Simulation {
        self.faults.push((at, rank, fault));
        self
    }

    /// Runs these collectives, one after the other, with all members. `value` returns the value that a rank contributes
    /// to each.
    pub fn run(
        &self,
        collectives: &[Collective],
        value: impl Fn(Rank) -> Vec<u8>,
        operator: &mut dyn Operator,
    ) -> Run {
        let mut engine = Engine {
            simulation: self,
            collectives,
            operator,
            servers: (0..self.size)
                .map(|rank| Server::Running(Box::new(Member::new(rank, self.size, self.limits)), Vec::new()))
                .collect(),
            ends: vec![None; self.size as usize],
            next_send: vec![0; self.size as usize],
            events: BinaryHeap::new(),
            event_count: 0,
            random: Random(self.network.seed),
            messages: 0,
        };
        for rank in 0..self.size {
            engine.schedule_start(0, rank);
        }
        for (n, (at, _, _)) in self.faults.iter().enumerate() {
            engine.push(*at, Event::Fault(n));
        }
        for _ in 0..MAX_EVENTS {
            let Some(Reverse((now, _, event))) = engine.events.pop() else { break };
            engine.handle(now, event, &value);
        }
        let unfinished = CollectiveError::UnexpectedMessage {
            from: 0,
            why: "the simulation ended before this member did",
        };
        let ends = engine
            .ends
            .into_iter()
            .map(|end| end.unwrap_or(MemberEnd { at: u64::MAX, result: Err(unfinished.clone()) }));
        Run { ends: ends.collect(), messages: engine.messages }
    }
}

struct Engine<'a> {
    simulation: &'a Simulation,
    collectives: &'a [Collective],
    operator: &'a mut dyn Operator,
    servers: Vec<Server>,
    ends: Vec<Option<MemberEnd>>,
    /// Time at which each member can send its next value.
    next_send: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of events so far. Events of the same time are handled in the order of their creation.
    event_count: u64,
    random: Random,
    messages: u64,
}

impl Engine<'_> {
    fn push(&mut self, at: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((at, self.event_count, event)));
    }

    fn delay(&mut self) -> u64 {
        let Network { min_delay, max_delay, .. } = self.simulation.network;
        min_delay + self.random.up_to(max_delay.saturating_sub(min_delay))
    }

    fn schedule_start(&mut self, now: u64, rank: Rank) {
        let work = self.random.up_to(self.simulation.network.max_work);
        self.push(now + work, Event::Start(rank));
    }

    fn handle(&mut self, now: u64, event: Event, value: &impl Fn(Rank) -> Vec<u8>) {
        match event {
            Event::Start(rank) => {
                let Server::Running(member, outcomes) = &mut self.servers[rank as usize] else { return };
                let Some(collective) = self.collectives.get(outcomes.len()) else { return };
                let actions = member.start(now, *collective, value(rank), self.operator);
                self.carry_out(now, rank, actions);
                self.push(now + self.simulation.limits.ask_every, Event::Tick(rank));
            }
            Event::Value { to, from, number, value } => {
                let Server::Running(member, _) = &mut self.servers[to as usize] else { return };
                if let Ok(actions) = member.deliver(now, number, from, value, self.operator) {
                    self.carry_out(now, to, actions);
                }
            }
            Event::Ask { to, from } => {
                let reply = match &self.servers[to as usize] {
                    Server::Down => return,
                    Server::Restarted => SimulatedReply::Unknown,
                    Server::Running(member, _) => match member.reply() {
                        Reply::Working => SimulatedReply::Working,
                        Reply::Unknown => SimulatedReply::Unknown,
                        Reply::GaveUp(why) => SimulatedReply::GaveUp(why),
                    },
                };
                let at = now + self.delay();
                self.push(at, Event::Answer { to: from, from: to, reply });
            }
            Event::Answer { to, from, reply } => {
                let Server::Running(member, _) = &mut self.servers[to as usize] else { return };
                let reply = match reply {
                    SimulatedReply::Working => Reply::Working,
                    SimulatedReply::Unknown => Reply::Unknown,
                    SimulatedReply::GaveUp(why) => Reply::GaveUp(why),
                };
                member.take_reply(now, from, reply);
                self.carry_out(now, to, Vec::new());
            }
            Event::Tick(rank) => {
                if self.ends[rank as usize].is_some() {
                    return;
                }
                let Server::Running(member, _) = &mut self.servers[rank as usize] else { return };
                let actions = member.tick(now);
                self.carry_out(now, rank, actions);
                self.push(now + self.simulation.limits.ask_every, Event::Tick(rank));
            }
            Event::Fault(n) => self.inject(now, n),
        }
    }

    fn inject(&mut self, now: u64, n: usize) {
        let (_, rank, fault) = self.simulation.faults[n];
        let silent = CollectiveError::Silent { rank, seconds: 0 };
        match fault {
            Fault::Fail => {
                let Server::Running(member, _) = &mut self.servers[rank as usize] else { return };
                member.give_up(CollectiveError::Operator(format!("member {rank} failed")));
                return self.carry_out(now, rank, Vec::new());
            }
            Fault::Crash => self.servers[rank as usize] = Server::Down,
            Fault::Restart => self.servers[rank as usize] = Server::Restarted,
        }
        self.ends[rank as usize].get_or_insert(MemberEnd { at: now, result: Err(silent) });
    }

    /// Carries out the actions of a member, and takes its result.
    fn carry_out(&mut self, now: u64, rank: Rank, actions: Vec<Action>) {
        for action in actions {
            let at = now + self.delay();
            match action {
                Action::Send { to, number, value } => {
                    self.messages += 1;
                    let start = now.max(self.next_send[rank as usize]);
                    self.next_send[rank as usize] = start + self.simulation.network.min_delay;
                    let at = start + (at - now);
                    self.push(at, Event::Value { to, from: rank, number, value });
                }
                Action::Ask(to) => self.push(at, Event::Ask { to, from: rank }),
            }
        }
        let Server::Running(member, outcomes) = &mut self.servers[rank as usize] else { return };
        if self.ends[rank as usize].is_some() {
            return;
        }
        match member.outcome() {
            None => {}
            Some(Err(error)) => self.ends[rank as usize] = Some(MemberEnd { at: now, result: Err(error) }),
            Some(Ok(outcome)) => {
                outcomes.push(outcome);
                if outcomes.len() == self.collectives.len() {
                    let result = Ok(outcomes.clone());
                    self.ends[rank as usize] = Some(MemberEnd { at: now, result });
                } else {
                    self.schedule_start(now, rank);
                }
            }
        }
    }
}
