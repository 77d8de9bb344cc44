//! Velocity checks: how often was this card used lately, and is that how people shop?
//!
//! A sliding window per card fingerprint. The window forgets on read, so an idle card costs nothing.

use std::collections::{HashMap, VecDeque};

/// More authorizations than this inside the window look like card testing.
const MAX_AUTHORIZATIONS: usize = 8;
const WINDOW_SECONDS: u64 = 600;

/// What the payments service should do with the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    /// Ask the card holder to confirm (3-D Secure).
    Challenge,
    Refuse,
}

#[derive(Debug, Default)]
pub struct VelocityWindow {
    seen: HashMap<String, VecDeque<u64>>,
}

impl VelocityWindow {
    pub fn new() -> Self {
        Self::default()
    }

    /// Record an authorization at `now` (seconds since the epoch) and judge it.
    ///
    /// Times must not run backwards for one card; a caller with a stale clock is judged by the newest time seen.
    pub fn record(&mut self, card_fingerprint: &str, now: u64) -> Verdict {
        let times = self.seen.entry(card_fingerprint.to_owned()).or_default();
        let now = times.back().map_or(now, |last| now.max(*last));
        while times.front().is_some_and(|first| now - first >= WINDOW_SECONDS) {
            times.pop_front();
        }
        times.push_back(now);
        match times.len() {
            n if n > MAX_AUTHORIZATIONS * 2 => Verdict::Refuse,
            n if n > MAX_AUTHORIZATIONS => Verdict::Challenge,
            _ => Verdict::Accept,
        }
    }

    /// Drop cards that nobody used within the window; called by the housekeeping task.
    pub fn compact(&mut self, now: u64) {
        self.seen
            .retain(|_, times| times.back().is_some_and(|last| now.saturating_sub(*last) < WINDOW_SECONDS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninth_use_within_ten_minutes_is_challenged() {
        let mut window = VelocityWindow::new();
        for second in 0..8 {
            assert_eq!(window.record("fp_1", second), Verdict::Accept);
        }
        assert_eq!(window.record("fp_1", 9), Verdict::Challenge);
    }

    #[test]
    fn the_window_slides() {
        let mut window = VelocityWindow::new();
        for second in 0..9 {
            window.record("fp_1", second);
        }
        assert_eq!(window.record("fp_1", 700), Verdict::Accept);
    }
}
