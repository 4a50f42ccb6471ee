//! Tokens: any text is a token or told what is wrong with it; one that is read is written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxiray_net::Secret;

fuzz_target!(|text: &str| match Secret::parse(text) {
    Ok(secret) => assert_eq!(secret.to_string(), text.trim().to_lowercase()),
    // What is wrong is told without repeating the secret; a word of it must be there all the same.
    Err(error) => assert!(!error.to_string().is_empty()),
});
