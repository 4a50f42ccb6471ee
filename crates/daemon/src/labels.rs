//! The labels that a node has by itself: Ray's, by what its surroundings say of the machine.

use std::collections::BTreeMap;

use oxiray_settings::{NODE_MARKET_TYPE, NODE_REGION, NODE_TYPE_NAME, NODE_ZONE};
use oxiray_wire::control::Amount;

/// A resource whose name says which accelerators a node has.
const ACCELERATOR: &str = "accelerator_type:";

/// `given` are those that were asked for, which count more; `resources` is what the node has.
pub(crate) fn with_own(
    given: &BTreeMap<String, String>,
    resources: &[Amount],
) -> BTreeMap<String, String> {
    let said = [
        ("ray.io/market-type", &NODE_MARKET_TYPE),
        ("ray.io/node-group", &NODE_TYPE_NAME),
        ("ray.io/availability-region", &NODE_REGION),
        ("ray.io/availability-zone", &NODE_ZONE),
    ];
    let said = said.into_iter().filter_map(|(key, setting)| Some((key, setting.text()?)));
    let accelerator = resources.iter().find_map(|amount| amount.name.strip_prefix(ACCELERATOR));
    let accelerator = accelerator.map(|name| ("ray.io/accelerator-type", name.to_owned()));
    let own = said.chain(accelerator).filter(|(_, value)| !value.is_empty());
    let mut labels: BTreeMap<_, _> = own.map(|(key, value)| (key.to_owned(), value)).collect();
    labels.extend(given.clone());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_are_a_label_unless_another_was_given() {
        let resources = [("CPU", 1), ("accelerator_type:T4", 1)];
        let resources = resources.map(|(name, amount)| Amount { name: name.into(), amount });
        let labels = with_own(&BTreeMap::new(), &resources);
        assert_eq!(labels.get("ray.io/accelerator-type").map(String::as_str), Some("T4"));
        let given = BTreeMap::from([("ray.io/accelerator-type".to_owned(), "mine".to_owned())]);
        assert_eq!(with_own(&given, &resources), given);
        assert!(with_own(&BTreeMap::new(), &resources[..1]).is_empty());
    }
}
