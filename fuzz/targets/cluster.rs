//! What machines say to each other: every message that a link or a bulk connection may bring.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_fuzz::there_and_back;
use oxiray_wire::cluster::{BetweenNodes, ControlConfig, FromControl, Hello, ReadRange, ToControl};

fuzz_target!(|bytes: &[u8]| {
    there_and_back::<Hello>(bytes);
    there_and_back::<ToControl>(bytes);
    there_and_back::<FromControl>(bytes);
    there_and_back::<BetweenNodes>(bytes);
    there_and_back::<ReadRange>(bytes);
    there_and_back::<ControlConfig>(bytes);
});
