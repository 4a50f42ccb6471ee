//! Labels of nodes and conditions on them: any text is one, or refused in words; what is read back
//! from its own text is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_scheduler::{Selector, parse_labels};

fuzz_target!(|input: (&str, &str)| {
    let (key, text) = input;
    if let Ok(selector) = Selector::parse(key, text) {
        assert!(!selector.to_string().is_empty());
    }
    if let Ok(labels) = parse_labels(text) {
        let pairs: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(parse_labels(&pairs.join(",")).as_ref(), Ok(&labels));
    }
});
