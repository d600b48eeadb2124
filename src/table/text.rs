//! The text layer below CSV and NDJSON: which bytes are which characters.

use std::borrow::Cow;
use std::io::Read;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::error::{Error, Result};

/// How a text file writes its characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// ISO-8859-1 as ISO means it: each byte is the character of its number. The WHATWG's label is windows-1252.
    Latin1,
    /// Any other whose ASCII bytes below 0x40 are always themselves.
    Other(&'static Encoding),
}

/// A byte that stands for a character beyond ASCII in [`TextEncoding::narrow`]: never one that structures a table.
const NARROWED: u8 = 0xff;
/// Bytes that the Windows code page 1252 leaves undefined, though the WHATWG maps them to control characters.
const UNDEFINED_IN_1252: [u8; 5] = [0x81, 0x8d, 0x8f, 0x90, 0x9d];

impl TextEncoding {
    /// UTF-8, the default.
    pub const UTF_8: Self = Self(Kind::Utf8);

    /// Finds an encoding by its label (WHATWG Encoding Standard, section 4.2), as in `windows-1252`, `latin1`, `utf-16le`.
    ///
    /// # Errors
    /// An unknown label, or an encoding in which a delimiter's byte can be part of another character at any place.
    pub fn from_label(label: &str) -> Result<Self> {
        let plain = label.trim().to_ascii_lowercase();
        if matches!(plain.as_str(), "iso-8859-1" | "iso8859-1" | "latin1" | "l1" | "iso_8859-1") {
            return Ok(Self(Kind::Latin1));
        }
        let unknown = || Error::usage(format!("unknown encoding {label:?}")).hint("--encoding windows-1252");
        let encoding = Encoding::for_label(plain.as_bytes()).ok_or_else(unknown)?;
        Ok(Self(match encoding {
            e if e == UTF_8 => Kind::Utf8,
            e if e == UTF_16LE => Kind::Utf16Le,
            e if e == UTF_16BE => Kind::Utf16Be,
            e if e.is_ascii_compatible() && e.name() != "replacement" && e.name() != "x-user-defined" => Kind::Other(e),
            e => return Err(Error::usage(format!("the encoding {} is not supported for tables", e.name()))),
        }))
    }

    /// The encoding that a byte order mark at the start of a file sets, and the mark's length in bytes.
    pub fn from_mark(start: &[u8]) -> Option<(Self, usize)> {
        let (encoding, len) = Encoding::for_bom(start)?;
        let kind = match encoding {
            e if e == UTF_8 => Kind::Utf8,
            e if e == UTF_16LE => Kind::Utf16Le,
            _ => Kind::Utf16Be,
        };
        Some((Self(kind), len))
    }

    /// Its name, as `--encoding` takes it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Utf8 => "utf-8",
            Kind::Utf16Le => "utf-16le",
            Kind::Utf16Be => "utf-16be",
            Kind::Latin1 => "iso-8859-1",
            Kind::Other(e) => e.name(),
        }
    }

    /// All of a text in UTF-8; what does not decode becomes U+FFFD. A text that is said to be UTF-8 is given as it is.
    pub fn reader<'r>(self, input: impl Read + 'r) -> Box<dyn Read + 'r> {
        let encoding = match self.0 {
            Kind::Utf8 => return Box::new(input),
            Kind::Utf16Le => UTF_16LE,
            Kind::Utf16Be => UTF_16BE,
            Kind::Latin1 => WINDOWS_1252,
            Kind::Other(e) => e,
        };
        Box::new(encoding_rs_io::DecodeReaderBytesBuilder::new().encoding(Some(encoding)).bom_override(true).build(input))
    }

    /// Bytes of one code unit: 1 or 2.
    pub fn unit(self) -> usize {
        if matches!(self.0, Kind::Utf16Le | Kind::Utf16Be) { 2 } else { 1 }
    }

    /// Whether this ASCII byte always means its own character. In Shift JIS, GBK and Big5 `|` can be the second half of another.
    pub fn keeps_apart(self, byte: u8) -> bool {
        const SECOND_BYTES_FROM: u8 = 0x40;
        match self.0 {
            Kind::Other(e) => e.is_single_byte() || byte < SECOND_BYTES_FROM && !byte.is_ascii_digit(),
            _ => true,
        }
    }

    /// Whether bytes that are all ASCII are the same text in UTF-8.
    pub fn keeps_ascii(self) -> bool {
        match self.0 {
            Kind::Utf8 | Kind::Latin1 => true,
            Kind::Utf16Le | Kind::Utf16Be => false,
            Kind::Other(e) => e.is_ascii_compatible(),
        }
    }

    /// One byte for each code unit, so that structure can be found in any encoding by looking at bytes.
    /// A wide unit beyond ASCII becomes 0xff. Without wide units the bytes are returned as they are.
    pub fn narrow<'b>(self, raw: &'b [u8], buffer: &'b mut Vec<u8>) -> &'b [u8] {
        let unit = match self.0 {
            Kind::Utf16Le => u16::from_le_bytes,
            Kind::Utf16Be => u16::from_be_bytes,
            _ => return raw,
        };
        buffer.clear();
        buffer
            .extend(raw.as_chunks().0.iter().map(|pair| u8::try_from(unit(*pair)).ok().filter(u8::is_ascii).unwrap_or(NARROWED)));
        buffer
    }

    /// Makes the ASCII text from `start` on one in this encoding, in place.
    #[expect(clippy::inline_always, reason = "called for each value, and mostly nothing is to be done")]
    #[inline(always)]
    pub(super) fn widen(self, out: &mut Vec<u8>, start: usize) {
        match self.0 {
            Kind::Utf16Le => widen(0, out, start),
            Kind::Utf16Be => widen(1, out, start),
            _ => {}
        }
    }

    /// The text in UTF-8, or nothing where these bytes are no text in this encoding.
    pub fn decode<'b>(self, raw: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let decoded = |text: Cow<'b, str>| match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        match self.0 {
            Kind::Utf8 => simdutf8::basic::from_utf8(raw).ok().map(|_| Cow::Borrowed(raw)),
            Kind::Utf16Le => UTF_16LE.decode_without_bom_handling_and_without_replacement(raw).map(decoded),
            Kind::Utf16Be => UTF_16BE.decode_without_bom_handling_and_without_replacement(raw).map(decoded),
            Kind::Latin1 => Some(decoded(encoding_rs::mem::decode_latin1(raw))),
            Kind::Other(e) if e == WINDOWS_1252 && raw.iter().any(|b| UNDEFINED_IN_1252.contains(b)) => None,
            Kind::Other(e) => e.decode_without_bom_handling_and_without_replacement(raw).map(decoded),
        }
    }

    /// This text in this encoding.
    ///
    /// # Errors
    /// A character that the encoding does not have.
    pub fn encode(self, text: &str) -> Result<Vec<u8>> {
        let lacks = || Error::usage(format!("the encoding {} has no character for the prefix", self.name()));
        match self.0 {
            Kind::Utf8 => Ok(text.as_bytes().to_vec()),
            Kind::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Kind::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Kind::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| lacks())).collect(),
            Kind::Other(e) => match e.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                _ => Err(lacks()),
            },
        }
    }

    /// The encoding that these bytes, which do not decode, are likely in: for a hint, never for a guess.
    pub fn likely(self, raw: &[u8]) -> &'static str {
        let zeros = |odd: usize| raw.iter().skip(odd).step_by(2).filter(|b| **b == 0).count();
        match (zeros(0), zeros(1)) {
            (0, 1..) => "utf-16le",
            (1.., 0) => "utf-16be",
            _ if self.0 != Kind::Utf8 && std::str::from_utf8(raw).is_ok() => "utf-8",
            _ => "windows-1252",
        }
    }
}

/// Puts a NUL beside each byte from `start` on; the byte comes at place `low` of the two.
fn widen(low: usize, out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    out.resize(start + 2 * length, 0);
    // From the last on, so that no byte is overwritten before it has moved.
    for i in (0..length).rev() {
        let byte = std::mem::take(&mut out[start + i]);
        out[start + 2 * i + 1 - low] = 0;
        out[start + 2 * i + low] = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(label: &str) -> TextEncoding {
        TextEncoding::from_label(label).unwrap()
    }

    #[test]
    fn decode_and_encode_are_inverse() {
        for label in ["utf-8", "utf-16le", "utf-16be", "iso-8859-1", "iso-8859-15", "windows-1252", "macintosh", "gbk", "koi8-r"]
        {
            let text = if label == "koi8-r" {
                "Привет"
            } else if label == "gbk" {
                "中文"
            } else {
                "Zoé Lefèvre"
            };
            let raw = encoding(label).encode(text).unwrap();
            assert_eq!(encoding(label).decode(&raw).as_deref(), Some(text.as_bytes()), "{label}");
        }
    }

    /// What is taken as it stands must be what decoding would give.
    #[test]
    fn ascii_is_kept_where_it_is_said_to_be() {
        let ascii: Vec<u8> = (0..0x80).collect();
        let labels =
            ["utf-8", "iso-8859-1", "iso-8859-15", "windows-1252", "macintosh", "shift_jis", "big5", "euc-kr", "gb18030"];
        for label in labels {
            assert!(encoding(label).keeps_ascii(), "{label}");
            assert_eq!(encoding(label).decode(&ascii).as_deref(), Some(&ascii[..]), "{label}");
        }
        for label in ["utf-16le", "utf-16be"] {
            assert!(!encoding(label).keeps_ascii(), "{label}");
        }
        // Letters of two bytes that are both ASCII.
        assert!(TextEncoding::from_label("iso-2022-jp").map_or(true, |e| !e.keeps_ascii()));
    }

    #[test]
    fn bytes_that_are_no_text_are_found() {
        for (label, raw) in [("utf-8", &b"\xe9t"[..]), ("windows-1252", b"\x81"), ("utf-16le", b"\x00\xd8"), ("gbk", b"\x81")] {
            assert_eq!(encoding(label).decode(raw), None, "{label}");
        }
        assert_eq!(encoding("iso-8859-1").decode(b"\x81").as_deref(), Some("\u{81}".as_bytes()));
    }

    #[test]
    fn narrowing_keeps_structure_and_nothing_else() {
        let wide = encoding("utf-16be");
        let raw = wide.encode("a;é\n€\u{122c}").unwrap();
        assert_eq!(wide.narrow(&raw, &mut Vec::new()), b"a;\xff\n\xff\xff");
        assert_eq!(encoding("latin1").narrow(b"\xe9;", &mut Vec::new()), b"\xe9;");
    }

    #[test]
    fn widening_is_encoding_in_place() {
        for label in ["utf-8", "utf-16le", "utf-16be", "windows-1252"] {
            let mut out = b"x".to_vec();
            out.extend_from_slice(b"0af9");
            encoding(label).widen(&mut out, 1);
            assert_eq!(out[1..], encoding(label).encode("0af9").unwrap(), "{label}");
        }
    }

    #[test]
    fn marks_and_delimiters() {
        assert_eq!(TextEncoding::from_mark(b"\xef\xbb\xbfa"), Some((TextEncoding::UTF_8, 3)));
        assert_eq!(TextEncoding::from_mark(b"\xff\xfea\0").map(|m| m.0.name()), Some("utf-16le"));
        assert_eq!(TextEncoding::from_mark(b"abc"), None);
        assert!(encoding("shift_jis").keeps_apart(b',') && !encoding("shift_jis").keeps_apart(b'|'));
        assert!(encoding("windows-1252").keeps_apart(b'|') && encoding("utf-16le").keeps_apart(b'|'));
        assert!(!encoding("gb18030").keeps_apart(b'0'));
        for bad in ["utf-7", "iso-2022-jp", "replacement", ""] {
            assert!(TextEncoding::from_label(bad).unwrap_err().is_usage(), "{bad}");
        }
        assert_eq!(TextEncoding::UTF_8.likely(b"M\xfcller"), "windows-1252");
        assert_eq!(TextEncoding::UTF_8.likely(b"a\0b\0"), "utf-16le");
    }
}
