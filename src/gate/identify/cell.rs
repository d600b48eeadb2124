//! A cell as identifiers are compared: its letters and digits, where separators stood between them, and the shapes these may
//! have.

/// The longest cell that can be an identifier; mailboxes and addresses of pages may be longer.
pub(super) const LONGEST: usize = 64;

/// Separators, as bits.
pub(super) const SPACE: u8 = 1;
pub(super) const DASH: u8 = 2;
pub(super) const DOT: u8 = 4;
pub(super) const SLASH: u8 = 8;
pub(super) const PLUS: u8 = 16;
/// Of a rule: one cell may have separators of different kinds.
pub(super) const MIXED: u8 = 128;

/// The text without white space around it and without the quote that keeps spreadsheets from reading a number.
pub(super) fn trimmed(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('\'').map_or(text, str::trim_start)
}

/// The text in ASCII, with plain spaces and dashes; none if it has other characters or is too long.
pub(super) fn plain<'b>(text: &'b str, buffer: &'b mut [u8; LONGEST]) -> Option<&'b [u8]> {
    if text.is_ascii() {
        return Some(text.as_bytes()).filter(|b| b.len() <= LONGEST);
    }
    let mut len = 0;
    for c in text.chars() {
        *buffer.get_mut(len)? = match c {
            '\u{a0}' | '\u{202f}' | '\u{2009}' => b' ',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => b'-',
            c => u8::try_from(c).ok().filter(u8::is_ascii)?,
        };
        len += 1;
    }
    buffer.get(..len)
}

/// The letters and digits of a cell, in upper case.
#[derive(Clone, Copy)]
pub(super) struct Code<'b> {
    pub s: &'b [u8],
    /// Bit i: a separator stood before the character i.
    pub gaps: u64,
    /// Which separators.
    pub seps: u8,
}

impl<'b> Code<'b> {
    /// None if there is anything but letters, digits and single separators between them.
    pub(super) fn read(plain: &[u8], buffer: &'b mut [u8; LONGEST]) -> Option<Self> {
        let (mut len, mut gaps, mut seps, mut open) = (0, 0, 0, true);
        for b in plain {
            let sep = match b {
                b' ' => SPACE,
                b'-' => DASH,
                b'.' => DOT,
                b'/' => SLASH,
                b'+' => PLUS,
                b if b.is_ascii_alphanumeric() => {
                    *buffer.get_mut(len)? = b.to_ascii_uppercase();
                    len += 1;
                    open = false;
                    continue;
                }
                _ => return None,
            };
            if open {
                return None;
            }
            (seps, gaps, open) = (seps | sep, gaps | 1_u64.checked_shl(u32::try_from(len).ok()?)?, true);
        }
        (!open).then_some(())?;
        Some(Self { s: buffer.get(..len)?, gaps, seps })
    }

    /// Whether separators stand at these places only, and are of one kind if not said otherwise.
    pub(super) fn spaced(&self, places: u64, seps: u8) -> bool {
        self.gaps & !places == 0 && self.seps & !seps == 0 && (seps & MIXED != 0 || self.seps.count_ones() < 2)
    }

    /// What follows the first two letters, if they are these.
    pub(super) fn behind(&self, prefix: &[u8]) -> Option<Self> {
        let gaps = self.gaps >> 2 & !1;
        let seps = if gaps == 0 { 0 } else { self.seps };
        self.s.strip_prefix(prefix).map(|s| Self { s, gaps, seps })
    }
}

/// What may stand at each place: bits 0 to 9 for the digits, 10 to 35 for the letters.
pub(super) struct Shape {
    pub len: usize,
    places: [u64; 16],
}

const DIGIT: u64 = 0x3ff;
/// Any digit, and `LMNPQRSTUV`, which stand for digits in Italian codes where two persons would have the same.
const OMOCODE: u64 = DIGIT | 0xfee0_0000;

const fn bit(b: u8) -> u32 {
    match b {
        b'0'..=b'9' => (b - b'0') as u32,
        b'A'..=b'Z' => (b - b'A') as u32 + 10,
        _ => 63,
    }
}

impl Shape {
    /// Reads a pattern: `d` is a digit, `l` a letter, `o` a digit or one of `LMNPQRSTUV`, `[1-4AB]` one of these; others are
    /// themselves.
    pub(super) const fn new(pattern: &str) -> Self {
        let p = pattern.as_bytes();
        let (mut places, mut len, mut i, mut inside) = ([0; 16], 0, 0, false);
        while i < p.len() {
            match p[i] {
                b'[' => inside = true,
                b']' => inside = false,
                b'-' => {
                    let mut b = p[i - 1];
                    while b < p[i + 1] {
                        b += 1;
                        places[len] |= 1 << bit(b);
                    }
                }
                b'd' => places[len] = DIGIT,
                b'l' => places[len] = 0x3ff_ffff << 10,
                b'o' => places[len] = OMOCODE,
                b => places[len] |= 1 << bit(b),
            }
            if !inside {
                len += 1;
            }
            i += 1;
        }
        Self { len, places }
    }

    pub(super) fn fits(&self, s: &[u8]) -> bool {
        s.len() == self.len && self.begins(s)
    }

    /// Whether the text begins so.
    pub(super) fn begins(&self, s: &[u8]) -> bool {
        s.len() >= self.len && s.iter().zip(&self.places[..self.len]).all(|(b, place)| place >> bit(*b) & 1 == 1)
    }
}

/// The small letters without accents that a letter is read as; empty for combining accents.
pub(super) fn base(c: char) -> Option<&'static str> {
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
    let at = |b: u8| LETTERS.get(usize::from(b)..=usize::from(b));
    Some(match c {
        'a'..='z' | 'A'..='Z' => return at(u8::try_from(c).ok()?.to_ascii_lowercase() - b'a'),
        'à'..='å' | 'À'..='Å' | 'ă' | 'Ă' | 'ą' | 'Ą' => "a",
        'æ' | 'Æ' => "ae",
        'ç' | 'Ç' | 'ć' | 'Ć' | 'č' | 'Č' => "c",
        'ď' | 'Ď' | 'đ' | 'Đ' => "d",
        'è'..='ë' | 'È'..='Ë' | 'ę' | 'Ę' | 'ě' | 'Ě' => "e",
        'ì'..='ï' | 'Ì'..='Ï' => "i",
        'ł' | 'Ł' => "l",
        'ñ' | 'Ñ' | 'ń' | 'Ń' | 'ň' | 'Ň' => "n",
        'ò'..='ö' | 'Ò'..='Ö' | 'ø' | 'Ø' | 'ő' | 'Ő' => "o",
        'œ' | 'Œ' => "oe",
        'ř' | 'Ř' => "r",
        'ß' | 'ẞ' => "ss",
        'ś' | 'Ś' | 'š' | 'Š' | 'ș' | 'Ș' => "s",
        'ț' | 'Ț' | 'ť' | 'Ť' => "t",
        'ù'..='ü' | 'Ù'..='Ü' | 'ů' | 'Ů' | 'ű' | 'Ű' => "u",
        'ý' | 'Ý' | 'ÿ' | 'Ÿ' => "y",
        'ž' | 'Ž' | 'ź' | 'Ź' | 'ż' | 'Ż' => "z",
        '\u{300}'..='\u{36f}' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_separators() {
        let shape = Shape::new("[1-3X]do");
        assert!(shape.fits(b"35L") && shape.fits(b"X0V") && shape.fits(b"109"));
        assert!(
            !shape.fits(b"45L") && !shape.fits(b"35O") && !shape.fits(b"35W") && !shape.fits(b"35") && shape.begins(b"35LZZ")
        );
        let (mut text, mut code) = ([0; LONGEST], [0; LONGEST]);
        let plain = plain("12\u{a0}3a\u{2013}4", &mut text).unwrap();
        let code = Code::read(plain, &mut code).unwrap();
        assert_eq!((code.s, code.gaps, code.seps), (&b"123A4"[..], 1 << 2 | 1 << 4, SPACE | DASH));
        assert!(code.spaced(1 << 2 | 1 << 4, SPACE | DASH | MIXED) && !code.spaced(1 << 2 | 1 << 4, SPACE | DASH));
        for text in ["1  2", " 1", "1-", "1,2", ""] {
            assert!(Code::read(text.as_bytes(), &mut [0; LONGEST]).is_none(), "{text}");
        }
    }

    #[test]
    fn letters_without_accents() {
        let fold = |text: &str| text.chars().filter_map(base).collect::<String>();
        assert_eq!(fold("ÉléphantŒuvreStraßeŁódźÑe\u{301}"), "elephantoeuvrestrasselodzne");
    }
}
