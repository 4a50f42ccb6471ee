//! Amounts as people read them.

use std::fmt::Write;

use oxiray_wire::control::{Amount, UNIT};

/// `{CPU: 2, GPU: 0.5}`.
pub fn show_amounts(amounts: &[Amount]) -> String {
    let mut text = String::from("{");
    for (index, amount) in amounts.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}: {}", amount.name, show(amount.amount));
    }
    text.push('}');
    text
}

/// `2` or `0.5`, without needless zeros.
pub(crate) fn show(amount: u64) -> String {
    let (whole, part) = (amount / UNIT, amount % UNIT);
    if part == 0 {
        return whole.to_string();
    }
    let part = format!("{part:04}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_lose_their_needless_zeros() {
        assert_eq!(show(0), "0");
        assert_eq!(show(2 * UNIT), "2");
        assert_eq!(show(UNIT / 2), "0.5");
        assert_eq!(show(UNIT + 1), "1.0001");
        let amounts = [
            Amount { name: "CPU".into(), amount: UNIT },
            Amount { name: "GPU".into(), amount: UNIT / 4 },
        ];
        assert_eq!(show_amounts(&amounts), "{CPU: 1, GPU: 0.25}");
    }
}
