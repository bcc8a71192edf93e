//! Every state that can be reached, breadth first, so that what breaks a law is found by the shortest
//! way; then whether every way ends, and how.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use super::law::Law;
use super::machine::{Machine, Step};
use super::state::State;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// Steps of the longest shortest way.
    pub(crate) depth: u32,
    /// States in which nothing can happen any more.
    pub(crate) ends: usize,
}

/// A law that does not hold, and how one gets there.
#[derive(Debug)]
pub(crate) struct Counterexample {
    pub(crate) law: Law,
    pub(crate) steps: Vec<Step>,
    pub(crate) state: State,
    /// States that were seen until then.
    pub(crate) seen: usize,
}

/// Goes everywhere. Of the laws that are broken, only those of `laws` count.
pub(crate) fn explore(machine: &Machine, laws: &[Law]) -> Result<Seen, Box<Counterexample>> {
    let mut map = Map::new(machine.start());
    let watched = laws.iter().fold(0, |bits, law| bits | law.bit());
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let (mut seen, mut next) = (Seen::default(), 0);
    while next < map.places.len() {
        let state = Rc::clone(&map.places[next].state);
        let mut goes_on = false;
        for step in machine.steps(&state) {
            let after = machine.follow(&state, step);
            if after == *state {
                continue;
            }
            goes_on = true;
            let broken = machine.broken(&after) & watched;
            let (to, is_new) = map.enter(after, next, step);
            edges.push((next as u32, to as u32));
            if is_new && broken != 0 {
                let law = laws.iter().find(|law| broken & law.bit() != 0);
                return Err(map.counterexample(*law.unwrap(), to));
            }
        }
        if !goes_on {
            seen.ends += 1;
            if laws.contains(&Law::NoHoldForEver) && !machine.is_settled(&state) {
                return Err(map.counterexample(Law::NoHoldForEver, next));
            }
        }
        next += 1;
    }
    if laws.contains(&Law::NoHoldForEver)
        && let Some(place) = on_a_cycle(map.places.len(), &edges)
    {
        return Err(map.counterexample(Law::NoHoldForEver, place));
    }
    seen.states = map.places.len();
    seen.transitions = edges.len();
    seen.depth = map.places.last().unwrap().depth;
    Ok(seen)
}

/// A state from which one can come back to it, if there is one: takes away what nothing leads to.
fn on_a_cycle(states: usize, edges: &[(u32, u32)]) -> Option<usize> {
    let mut leading = vec![0_u32; states];
    let mut first = vec![0_usize; states + 1];
    for (from, to) in edges {
        leading[*to as usize] += 1;
        first[*from as usize + 1] += 1;
    }
    for state in 0..states {
        first[state + 1] += first[state];
    }
    // Edges are in the order of the states that they leave.
    let mut free: Vec<usize> = (0..states).filter(|state| leading[*state] == 0).collect();
    while let Some(state) = free.pop() {
        for (_, to) in &edges[first[state]..first[state + 1]] {
            leading[*to as usize] -= 1;
            if leading[*to as usize] == 0 {
                free.push(*to as usize);
            }
        }
    }
    leading.iter().position(|leading| *leading > 0)
}

struct Place {
    state: Rc<State>,
    depth: u32,
    came: Option<(u32, Step)>,
}

struct Map {
    places: Vec<Place>,
    known: HashMap<Rc<State>, u32, BuildHasherDefault<Mixing>>,
}

impl Map {
    fn new(start: State) -> Self {
        let start = Rc::new(start);
        let mut known = HashMap::default();
        known.insert(Rc::clone(&start), 0);
        let place = Place {
            state: start,
            depth: 0,
            came: None,
        };
        Self {
            places: vec![place],
            known,
        }
    }

    fn enter(&mut self, state: State, from: usize, step: Step) -> (usize, bool) {
        let number = self.places.len();
        match self.known.entry(Rc::new(state)) {
            Entry::Occupied(known) => (*known.get() as usize, false),
            Entry::Vacant(new) => {
                self.places.push(Place {
                    state: Rc::clone(new.key()),
                    depth: self.places[from].depth + 1,
                    came: Some((from as u32, step)),
                });
                new.insert(number as u32);
                (number, true)
            }
        }
    }

    fn counterexample(&self, law: Law, mut place: usize) -> Box<Counterexample> {
        let state = State::clone(&self.places[place].state);
        let mut steps = Vec::new();
        while let Some((from, step)) = self.places[place].came {
            steps.push(step);
            place = from as usize;
        }
        steps.reverse();
        let seen = self.places.len();
        Box::new(Counterexample {
            law,
            steps,
            state,
            seen,
        })
    }
}

/// The usual hash is made to withstand attackers; there are none here, and very many states.
#[derive(Default)]
struct Mixing(u64);

impl Hasher for Mixing {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
