//! Which control service a node turns to: the one that it has had, or one of those that might have
//! taken over from it.
//!
//! - **N-1** after the one that it had was lost, those are asked first that wait to take over: a
//!   machine that is gone does not even refuse.
//! - **N-2** the one that it had is asked again, if less often: it may live, and nobody have taken
//!   over. So are those that once were known: they may have come back when all others were gone.

use std::net::SocketAddr;

/// Those that are not likely are asked once in so many attempts.
const UNLIKELY_EVERY: usize = 4;

/// A control service that reigns, or might.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    address: String,
    /// To ask for its name again could take long.
    resolved: SocketAddr,
}

/// All that are known.
pub(crate) struct Heads {
    /// The one that this node has, or had.
    own: Place,
    /// Those that wait, as that one says.
    waiting: Vec<Place>,
    /// Those that once were known.
    former: Vec<Place>,
    /// Who was dialled last.
    dialled: Option<Place>,
    attempts: usize,
}

impl Heads {
    /// Of a node that has just joined there.
    pub(super) fn joined_at(address: String, resolved: SocketAddr) -> Self {
        let own = Place { address, resolved };
        Self { own, waiting: Vec::new(), former: Vec::new(), dialled: None, attempts: 0 }
    }

    /// Whom to dial now (N-1, N-2).
    pub(super) fn next(&mut self) -> (&str, SocketAddr) {
        let own = std::slice::from_ref(&self.own);
        let (likely, unlikely): (&[Place], Vec<&Place>) = match self.waiting.is_empty() {
            true => (own, self.former.iter().collect()),
            false => (&self.waiting, own.iter().chain(&self.former).collect()),
        };
        let (round, turn) = (self.attempts / UNLIKELY_EVERY, self.attempts % UNLIKELY_EVERY);
        let chosen = match unlikely.is_empty() || turn != UNLIKELY_EVERY - 1 {
            // Counted without the unlikely ones, so that each has its turn.
            true => &likely[(self.attempts - round) % likely.len()],
            false => unlikely[round % unlikely.len()],
        };
        self.attempts += 1;
        let chosen = chosen.clone();
        let chosen = self.dialled.insert(chosen);
        (&chosen.address, chosen.resolved)
    }

    /// Who was dialled last is the one, and these are all of them as it says: what of that can be
    /// used, the one first.
    pub(super) fn settle(&mut self, all: &[String]) -> Vec<String> {
        self.attempts = 0;
        let before = match self.dialled.take() {
            Some(dialled) => Some(std::mem::replace(&mut self.own, dialled)),
            None => None,
        };
        let place = |address: &String| {
            Some(Place { address: address.clone(), resolved: address.parse().ok()? })
        };
        let told: Vec<Place> = all.iter().filter_map(place).collect();
        self.former.extend(before);
        self.former.append(&mut self.waiting);
        self.waiting = told;
        self.waiting.retain(|it| it.resolved != self.own.resolved);
        let mut known = vec![self.own.resolved];
        known.extend(self.waiting.iter().map(|it| it.resolved));
        // Each once.
        self.former.retain(|it| {
            let is_new = !known.contains(&it.resolved);
            known.push(it.resolved);
            is_new
        });
        let places = std::iter::once(&self.own).chain(&self.waiting);
        places.map(|place| place.address.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Heads {
        Heads::joined_at("head:1".into(), "10.0.0.1:1".parse().unwrap())
    }

    fn dials(heads: &mut Heads, count: usize) -> Vec<String> {
        (0..count).map(|_| heads.next().0.to_owned()).collect()
    }

    #[test]
    fn n_1_and_n_2_those_that_wait_are_asked_first_and_all_are_asked() {
        let mut heads = heads();
        assert_eq!(dials(&mut heads, 5), ["head:1"; 5]);
        let all = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"].map(str::to_owned);
        // The first is the one that it joined by a name.
        assert_eq!(heads.settle(&all), ["head:1", "10.0.0.2:1", "10.0.0.3:1"]);
        let (b, c) = ("10.0.0.2:1", "10.0.0.3:1");
        assert_eq!(dials(&mut heads, 8), [b, c, b, "head:1", c, b, c, "head:1"]);
    }

    #[test]
    fn who_answers_is_the_one_from_then_on_and_none_is_forgotten() {
        let mut heads = heads();
        heads.settle(&["10.0.0.1:1".into(), "10.0.0.2:1".into()]);
        assert_eq!(dials(&mut heads, 1), ["10.0.0.2:1"]);
        let all = ["10.0.0.2:1".to_owned(), "10.0.0.3:1".into()];
        assert_eq!(heads.settle(&all), ["10.0.0.2:1", "10.0.0.3:1"]);
        assert_eq!(dials(&mut heads, 1), ["10.0.0.3:1"]);
        // It is alone, but was not always.
        assert_eq!(heads.settle(&[]), ["10.0.0.3:1"]);
        let (own, b) = ("10.0.0.3:1", "10.0.0.2:1");
        assert_eq!(dials(&mut heads, 8), [own, own, own, "head:1", own, own, own, b]);
    }
}
