//! What a process and its node service say to each other, in packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_fuzz::there_and_back;
use oxiray_wire::control::{FromNode, NodeConfig, ToNode, unmade, why_unmade};

fuzz_target!(|bytes: &[u8]| {
    there_and_back::<ToNode>(bytes);
    there_and_back::<FromNode>(bytes);
    there_and_back::<NodeConfig>(bytes);
    if let Some((code, reason)) = why_unmade(bytes) {
        assert_eq!(why_unmade(&unmade(code, reason)), Some((code, reason)));
    }
});
