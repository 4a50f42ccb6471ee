//! What the targets share.

use prost::Message;

/// Any bytes are a message or refused, and a message is the same after another way there and back.
pub fn there_and_back<M: Message + Default>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        let encoded = message.encode_to_vec();
        let again = M::decode(&encoded[..]).expect("our own bytes decode");
        // Not the messages: a NaN is not itself.
        assert_eq!(again.encode_to_vec(), encoded);
    }
}
