//! Percent-encoding, as paths, queries and header names have it.

/// A text without its encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Not necessarily a text any more.
    pub bytes: Vec<u8>,
    /// Whether every percent sign was followed by two digits. One that was not stands as it is.
    pub is_proper: bool,
}

pub(crate) fn decode(text: &str) -> Decoded {
    let mut decoded = Decoded { bytes: Vec::with_capacity(text.len()), is_proper: true };
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                decoded.bytes.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            _ => {
                decoded.is_proper &= byte != b'%';
                decoded.bytes.push(byte);
            }
        }
    }
    decoded
}

const fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_once_and_the_rest_stays() {
        for (text, bytes, is_proper) in [
            ("a%2Fb%c3%A9", "a/bé".as_bytes(), true),
            ("%252e", b"%2e", true),
            ("%zz%4", b"%zz%4", false),
            ("%+f%", b"%+f%", false),
            ("%ff", b"\xff", true),
            ("", b"", true),
        ] {
            assert_eq!(decode(text), Decoded { bytes: bytes.to_vec(), is_proper }, "{text}");
        }
    }
}
