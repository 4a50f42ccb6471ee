//! The file of a node's secrets: any text is one, or told in which line it is not.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use oxiray_net::Keyring;

fuzz_target!(|text: &str| {
    let Ok(keyring) = Keyring::parse(text, Path::new("keyring")) else { return };
    let written: String = keyring.secrets().map(|secret| format!("{secret}\n")).collect();
    let again = Keyring::parse(&written, Path::new("keyring"));
    assert_eq!(again.expect("our own text is read"), keyring);
});
