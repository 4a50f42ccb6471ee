//! The cluster's secret, and the text by which people pass it around.
//!
//! A token is `oxiray-`, the secret's 32 bytes in hexadecimal, and 4 bytes of their SHA-256, by
//! which a typing error is noticed before anybody wonders why the cluster refuses this node.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::TokenError;

const PREFIX: &str = "oxiray-";
const SECRET_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;

/// What all nodes of a cluster know and nobody else does.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// A new one. Panics if the operating system has no randomness to give, which on Linux means
    /// that it lacks a system call of 2014.
    pub fn generate() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
        Self(bytes)
    }

    /// Reads a token. White space around it does not matter.
    pub fn parse(token: &str) -> Result<Self, TokenError> {
        const DIGITS: usize = 2 * (SECRET_BYTES + CHECKSUM_BYTES);
        let token = token.trim();
        let digits = token.strip_prefix(PREFIX).ok_or(TokenError::Prefix)?;
        let mut bytes = [0; SECRET_BYTES + CHECKSUM_BYTES];
        for (index, character) in digits.chars().enumerate() {
            let position = PREFIX.len() + index + 1;
            let digit = character.to_digit(16).ok_or(TokenError::Character { position })?;
            if let Some(byte) = bytes.get_mut(index / 2) {
                *byte = *byte << 4 | digit as u8;
            }
        }
        if digits.len() != DIGITS {
            let expected = PREFIX.len() + DIGITS;
            return Err(TokenError::Length { found: token.len(), expected });
        }
        let (secret, checksum) = bytes.split_at(SECRET_BYTES);
        if checksum != checksum_of(secret) {
            return Err(TokenError::Checksum);
        }
        Ok(Self(secret.try_into().expect("split at its length")))
    }

    /// The bytes, to derive keys from.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn checksum_of(secret: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = digest(&SHA256, secret);
    hash.as_ref()[..CHECKSUM_BYTES].try_into().expect("a hash is longer")
}

impl FromStr for Secret {
    type Err = TokenError;

    fn from_str(token: &str) -> Result<Self, TokenError> {
        Self::parse(token)
    }
}

/// The token.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().chain(&checksum_of(&self.0)).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Not the token: this is what ends up in logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_goes_both_ways() {
        let secret = Secret::generate();
        let token = secret.to_string();
        assert_eq!(token.len(), 79);
        assert_eq!(Secret::parse(&token).as_ref(), Ok(&secret));
        assert_eq!(format!(" {token}\n").parse(), Ok(secret.clone()));
        assert_ne!(secret, Secret::generate());
    }

    #[test]
    fn debug_does_not_tell() {
        assert_eq!(format!("{:?}", Secret::generate()), "Secret(..)");
    }

    #[test]
    fn what_is_wrong_is_told_but_not_repeated() {
        let token = Secret::generate().to_string();
        let found = token.len() - 1;
        assert_eq!(Secret::parse(""), Err(TokenError::Prefix));
        assert_eq!(Secret::parse(&token[1..]), Err(TokenError::Prefix));
        let expected = token.len();
        assert_eq!(Secret::parse(&token[..found]), Err(TokenError::Length { found, expected }));
        let longer = format!("{token}00");
        let found = longer.len();
        assert_eq!(Secret::parse(&longer), Err(TokenError::Length { found, expected }));
        let strange = format!("oxiray-ab€{}", &token[10..]);
        assert_eq!(Secret::parse(&strange), Err(TokenError::Character { position: 10 }));
        for error in
            [TokenError::Prefix, TokenError::Checksum, TokenError::Character { position: 1 }]
        {
            assert!(error.to_string().contains("run `oxiray token` on the head machine"));
        }
    }

    proptest! {
        #[test]
        fn one_wrong_digit_is_noticed(bytes: [u8; 32], at in 0usize..72, by in 1u32..16) {
            let mut token = Secret(bytes).to_string().into_bytes();
            let at = PREFIX.len() + at;
            let digit = (token[at] as char).to_digit(16).unwrap();
            token[at] = char::from_digit((digit + by) % 16, 16).unwrap() as u8;
            let token = String::from_utf8(token).unwrap();
            prop_assert_eq!(Secret::parse(&token), Err(TokenError::Checksum));
        }

        #[test]
        fn any_text_is_judged(text in "(oxiray-)?\\PC{0,90}") {
            prop_assert!(Secret::parse(&text).is_err());
        }
    }
}
