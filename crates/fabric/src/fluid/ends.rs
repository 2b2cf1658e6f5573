//! End times of flows, earliest first: a heap in which each time can be changed.

use base::Time;

/// Times of numbered entries, earliest first; equal times are ordered by number.
#[derive(Debug, Default)]
pub struct Ends {
    /// A binary heap of (time, number).
    heap: Vec<(Time, u32)>,
    /// The place of each number in the heap; `ABSENT` for numbers without a time.
    place: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Ends {
    /// Returns the earliest time and its number.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// Sets the time of a number; `Time::MAX` removes it.
    pub fn set(&mut self, number: u32, at: Time) {
        if self.place.len() <= number as usize {
            self.place.resize(number as usize + 1, ABSENT);
        }
        let place = self.place[number as usize];
        match (place, at) {
            (ABSENT, Time::MAX) => {}
            (ABSENT, _) => {
                self.heap.push((at, number));
                self.rise(self.heap.len() - 1);
            }
            (_, Time::MAX) => {
                let last = self.heap.len() - 1;
                self.heap.swap(place as usize, last);
                self.heap.pop();
                self.place[number as usize] = ABSENT;
                if place as usize != last {
                    self.settle(place as usize);
                }
            }
            _ => {
                self.heap[place as usize].0 = at;
                self.settle(place as usize);
            }
        }
    }

    /// Moves an entry to its place in the heap.
    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 && entry < self.heap[(place - 1) / 2] {
            self.put(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        self.put(place, entry);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(next) = children.min_by_key(|&child| self.heap[child]).filter(|&child| self.heap[child] < entry) else {
                break;
            };
            self.put(place, self.heap[next]);
            place = next;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Time, u32)) {
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn the_first_is_the_least_of_all() {
        let mut rng = Rng::stream(1, "ends/random", &[]);
        let (mut ends, mut plain) = (Ends::default(), vec![Time::MAX; 20]);
        for _ in 0..20_000 {
            let number = rng.below(20) as u32;
            let at = if rng.below(3) == 0 { Time::MAX } else { Time(rng.below(15)) };
            ends.set(number, at);
            plain[number as usize] = at;
            let least = (0..20u32).map(|number| (plain[number as usize], number)).min().filter(|(at, _)| *at != Time::MAX);
            assert_eq!(ends.first(), least);
        }
    }
}
