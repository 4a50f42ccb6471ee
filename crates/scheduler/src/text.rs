//! Amounts as people read them.

use std::fmt::Write;

use oxiray_wire::control::{Amount, UNIT};
use oxiray_words::show_bytes;

/// `{CPU: 2, GPU: 0.5}`.
pub fn show_amounts(amounts: &[Amount]) -> String {
    let mut text = String::from("{");
    for (index, amount) in amounts.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}: {}", amount.name, show(&amount.name, amount.amount));
    }
    text.push('}');
    text
}

/// `2` or `0.5`, without needless zeros; of memory, `1.5 GiB`.
pub fn show(name: &str, amount: u64) -> String {
    if matches!(name, "memory" | "object_store_memory") {
        return show_bytes(amount / UNIT);
    }
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
        assert_eq!(show("CPU", 0), "0");
        assert_eq!(show("CPU", 2 * UNIT), "2");
        assert_eq!(show("CPU", UNIT / 2), "0.5");
        assert_eq!(show("CPU", UNIT + 1), "1.0001");
        assert_eq!(show("memory", (3 * UNIT) << 29), "1.5 GiB");
        let amounts = [
            Amount { name: "CPU".into(), amount: UNIT },
            Amount { name: "GPU".into(), amount: UNIT / 4 },
        ];
        assert_eq!(show_amounts(&amounts), "{CPU: 1, GPU: 0.25}");
    }
}
