//! Which characters keys and values of labels may have.

use super::LabelError;

const MOST_OF_NAME: usize = 63;
const MOST_OF_PREFIX: usize = 253;

pub(super) fn check_key(key: &str) -> Result<(), LabelError> {
    let name = match key.rsplit_once('/') {
        Some((prefix, name)) => {
            if prefix.len() > MOST_OF_PREFIX || !prefix.split('.').all(is_name) {
                return Err(LabelError::Prefix { prefix: prefix.into(), key: key.into() });
            }
            name
        }
        None => key,
    };
    if is_name(name) { Ok(()) } else { Err(LabelError::Name { key: key.into() }) }
}

pub(super) fn check_value<'a>(key: &str, value: &'a str) -> Result<&'a str, LabelError> {
    if value.is_empty() || is_name(value) {
        Ok(value)
    } else {
        Err(LabelError::Value { key: key.into(), value: value.into() })
    }
}

fn is_name(text: &str) -> bool {
    let at_an_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MOST_OF_NAME
        && at_an_end(bytes.first())
        && at_an_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
