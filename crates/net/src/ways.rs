//! Which way leads to another node: straight, or through a third one that reaches both.
//!
//! - **W-1** a way that breaks, or that does not work within [`ATTEMPT`], is followed by the next,
//!   until one works: through others by turns, and straight; that first, if it was ended by the
//!   other side rather than silent.
//! - **W-2** while the way leads through another node, the other end is asked every [`ASK_EVERY`]
//!   whether it still hears: one that stands still in between is left after [`ATTEMPT`].
//! - **W-3** meanwhile the straight way is tried every [`TRY_EVERY`], and taken when it works: what
//!   was cut heals by itself.
//! - **W-4** that nobody is there is said only if the machine itself said so, and no way was found
//!   through others either. Silence is never taken for that.

use std::collections::VecDeque;

const MILLISECOND: u64 = 1_000_000;
/// A way that has not worked after so long is taken for none.
const ATTEMPT: u64 = 3_000 * MILLISECOND;
/// How long to wait before all ways are tried again.
const REST: u64 = 500 * MILLISECOND;
/// How often the other end of a way through another node is asked.
const ASK_EVERY: u64 = 1_000 * MILLISECOND;
/// How often the straight way is tried while another is used.
const TRY_EVERY: u64 = 2_000 * MILLISECOND;
/// Nodes through which a way is looked for before the straight one is tried again.
const MOST_OTHERS: usize = 3;

/// A way to another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A connection with it.
    Straight,
    /// A connection with this node, which has one with it.
    Through(u32),
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To connect by this way, and say everything over it from now on.
    Take(Way),
    /// To connect straight beside the way that is used, and say nothing over it yet.
    Try,
    /// To ask whether the other end still hears.
    Ask,
    /// To end the attempt, or the connection, that is used.
    Leave,
    /// To end the connection that is tried.
    LeaveTrial,
    /// Nobody is there (W-4).
    Nobody,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing was to be said yet.
    Unused,
    /// Since then.
    Trying(Way, u64),
    /// The other end was last heard of then.
    Works(Way, u64),
    /// None works; all are tried again then.
    Resting(u64),
}

/// The straight way, while another is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    Due(u64),
    Since(u64),
}

/// The way to one node.
#[derive(Debug)]
pub struct Ways {
    state: State,
    /// Ways of this round.
    untried: VecDeque<Way>,
    /// The straight way was refused in this round.
    refused: bool,
    /// Since when none works.
    away_since: Option<u64>,
    trial: Trial,
    asked_at: u64,
    /// Counts rounds, so that others have a turn.
    rounds: usize,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            state: State::Unused,
            untried: VecDeque::new(),
            refused: false,
            away_since: None,
            trial: Trial::Due(0),
            asked_at: 0,
            rounds: 0,
        }
    }
}

impl Ways {
    /// There is something to say. `None`: a way is there, or looked for.
    pub fn on_said(&mut self, now: u64) -> Option<Step> {
        (self.state == State::Unused).then(|| {
            self.begin(Way::Straight, now);
            Step::Take(Way::Straight)
        })
    }

    /// The way that is used, if it works.
    pub fn working(&self) -> Option<Way> {
        match self.state {
            State::Works(way, _) => Some(way),
            _ => None,
        }
    }

    /// Since when there is no way that works, though one was looked for.
    pub fn away_since(&self) -> Option<u64> {
        self.away_since
    }

    /// The other end is heard over the way that is used; whether that is news.
    pub fn on_heard(&mut self, now: u64) -> bool {
        match self.state {
            State::Trying(way, _) => {
                self.trial = Trial::Due(now + TRY_EVERY);
                self.asked_at = now;
                self.works(way, now)
            }
            State::Works(way, _) => {
                self.state = State::Works(way, now);
                false
            }
            State::Unused | State::Resting(_) => false,
        }
    }

    /// The other end is heard over the connection that was tried: it is the one from now on.
    pub fn on_trial_heard(&mut self, now: u64) -> bool {
        self.works(Way::Straight, now)
    }

    fn works(&mut self, way: Way, now: u64) -> bool {
        self.state = State::Works(way, now);
        self.untried.clear();
        self.away_since.take().is_some()
    }

    /// The connection that was tried is over.
    pub fn on_trial_failed(&mut self, now: u64) {
        self.trial = Trial::Due(now + TRY_EVERY);
    }

    /// The connection that was used, or was to be, is over; `silently`: it may be the way that is
    /// to blame. `others` are nodes that may lead there, the likeliest first.
    pub fn on_failed(&mut self, silently: bool, others: &[u32], now: u64) -> Option<Step> {
        let (way, before, after) = match self.state {
            State::Unused | State::Resting(_) => return None,
            State::Works(Way::Straight, _) if !silently => (Way::Straight, true, false),
            State::Works(way, _) => (way, false, true),
            State::Trying(way, _) => (way, false, false),
        };
        match self.state {
            State::Works(..) => self.begin_round(before, others, after),
            State::Trying(_, since) if self.away_since.is_none() => {
                self.away_since = Some(since);
                self.begin_round(before, others, after);
            }
            _ => {}
        }
        self.away_since.get_or_insert(now);
        // That a connection which worked was ended says nothing yet.
        let was_tried = matches!(self.state, State::Trying(..));
        self.refused |= was_tried && way == Way::Straight && !silently;
        self.untried.retain(|untried| *untried != way || *untried == Way::Straight);
        self.go_on(now)
    }

    /// Through others, with the straight way before or after them.
    fn begin_round(&mut self, before: bool, others: &[u32], after: bool) {
        self.rounds += 1;
        self.refused = false;
        let mut others: Vec<Way> = others.iter().map(|&node| Way::Through(node)).collect();
        // The likeliest stays first.
        if let Some(rest) = others.get_mut(1..).filter(|rest| !rest.is_empty()) {
            rest.rotate_left(self.rounds % rest.len());
        }
        others.truncate(MOST_OTHERS);
        let straight = |is_tried: bool| is_tried.then_some(Way::Straight);
        self.untried = straight(before).into_iter().chain(others).chain(straight(after)).collect();
    }

    fn go_on(&mut self, now: u64) -> Option<Step> {
        if let Some(way) = self.untried.pop_front() {
            self.begin(way, now);
            return Some(Step::Take(way));
        }
        self.state = State::Resting(now + REST);
        self.refused.then_some(Step::Nobody)
    }

    fn begin(&mut self, way: Way, now: u64) {
        self.state = State::Trying(way, now);
    }

    /// What is due by now. After [`Step::Leave`], [`Self::on_failed`] is to be called, and after
    /// [`Step::LeaveTrial`], [`Self::on_trial_failed`].
    pub fn on_time(&mut self, others: &[u32], now: u64) -> Vec<Step> {
        match self.state {
            State::Unused => Vec::new(),
            State::Trying(_, since) if now >= since + ATTEMPT => vec![Step::Leave],
            State::Trying(..) => Vec::new(),
            State::Resting(at) if now >= at => {
                self.begin_round(false, others, true);
                self.go_on(now).into_iter().collect()
            }
            State::Resting(_) | State::Works(Way::Straight, _) => Vec::new(),
            State::Works(Way::Through(_), heard) if now >= heard + ATTEMPT => vec![Step::Leave],
            State::Works(Way::Through(_), _) => self.mind_detour(now),
        }
    }

    fn mind_detour(&mut self, now: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        if now >= self.asked_at + ASK_EVERY {
            self.asked_at = now;
            steps.push(Step::Ask);
        }
        match self.trial {
            Trial::Due(at) if now >= at => {
                self.trial = Trial::Since(now);
                steps.push(Step::Try);
            }
            Trial::Since(since) if now >= since + ATTEMPT => steps.push(Step::LeaveTrial),
            Trial::Due(_) | Trial::Since(_) => {}
        }
        steps
    }

    /// When [`Self::on_time`] is due.
    pub fn next_wakeup(&self) -> Option<u64> {
        match self.state {
            State::Unused | State::Works(Way::Straight, _) => None,
            State::Trying(_, since) => Some(since + ATTEMPT),
            State::Resting(at) => Some(at),
            State::Works(Way::Through(_), heard) => {
                let trial = match self.trial {
                    Trial::Due(at) => at,
                    Trial::Since(since) => since + ATTEMPT,
                };
                Some(trial.min(self.asked_at + ASK_EVERY).min(heard + ATTEMPT))
            }
        }
    }
}

#[cfg(test)]
mod tests;
