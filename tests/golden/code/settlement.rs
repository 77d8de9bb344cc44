//! Settles card payments with the banks.
#![warn(missing_docs)]

use std::collections::{BTreeMap, HashMap as Map};
use std::fmt::{self, Display};
use serde::Serialize;

mod fees;

/// Days until a payment is final.
pub const SETTLE_AFTER: u32 = 2;
static CURRENCY: &str = "EUR";

/// What can go wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum SettlementError {
    /// The bank does not know the batch.
    UnknownBatch(String),
    Refused { code: u16 },
}

impl Display for SettlementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownBatch(id) => write!(f, "unknown batch {id}"),
            Self::Refused { code } => write!(f, "refused with {code}"),
        }
    }
}

#[derive(Serialize)]
pub struct Batch<'a, T: Clone> {
    id: &'a str,
    amounts: BTreeMap<String, T>,
}

/// A bank that pays out.
pub trait Bank {
    type Receipt;
    const NAME: &'static str;

    fn pay_out(&mut self, account: &str, cents: i64) -> Result<Self::Receipt, SettlementError>;

    /// Whether payments of that size pass at all.
    fn accepts(&self, cents: i64) -> bool {
        cents > 0 && !Self::NAME.is_empty()
    }
}

impl<'a, T: Clone + Into<i64>> Batch<'a, T> {
    pub const LIMIT: usize = 500;

    /// Starts an empty batch.
    #[must_use]
    pub fn new(id: &'a str) -> Self {
        Self { id, amounts: BTreeMap::new() }
    }

    pub async fn settle<B>(&self, bank: &mut B, seen: Map<String, bool>) -> Result<usize, SettlementError>
    where
        B: Bank,
    {
        let mut paid = 0;
        for (account, amount) in &self.amounts {
            if !seen.contains_key(account) {
                bank.pay_out(account, amount.clone().into())?;
                paid += 1;
            }
        }
        Ok(paid)
    }
}

macro_rules! cents {
    ($euros:expr) => { $euros * 100 };
}

fn log(message: impl Display) { println!("{message}"); }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_batch_pays_nothing() {
        assert_eq!(Batch::<i64>::new("b1").amounts.len(), cents!(0));
    }
}
