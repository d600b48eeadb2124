//! Text as the leak check compares it: words without case, accents and punctuation.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The words of a text, one behind the other.
#[derive(Default)]
pub(super) struct Words {
    /// The letters and digits of all words, folded.
    pub text: Vec<u8>,
    /// Where each word ends in it.
    pub ends: Vec<usize>,
}

/// Letters in lower case and digits of ASCII; 0 for what ends a word.
static FOLDED: [u8; 256] = {
    let (mut folded, mut b) = ([0; 256], 0u8);
    while b < 128 {
        if b.is_ascii_alphanumeric() {
            folded[b as usize] = b.to_ascii_lowercase();
        }
        b += 1;
    }
    folded
};

impl Words {
    /// Takes the words of `text` in place of those before.
    pub(super) fn read(&mut self, text: &str) {
        self.text.clear();
        self.ends.clear();
        if text.is_ascii() {
            self.text.reserve(text.len());
            for byte in text.bytes() {
                match FOLDED[usize::from(byte)] {
                    0 => self.end(),
                    folded => self.text.push(folded),
                }
            }
        } else {
            // Compatibility forms, so that ligatures and wide digits are what they look like.
            for c in text.nfkd() {
                match c {
                    'ß' | 'ẞ' => self.text.extend_from_slice(b"ss"),
                    'œ' | 'Œ' => self.text.extend_from_slice(b"oe"),
                    'æ' | 'Æ' => self.text.extend_from_slice(b"ae"),
                    'ø' | 'Ø' => self.text.push(b'o'),
                    'ł' | 'Ł' => self.text.push(b'l'),
                    c if is_combining_mark(c) => {}
                    c if c.is_alphanumeric() => {
                        c.to_lowercase().for_each(|c| self.text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()));
                    }
                    _ => self.end(),
                }
            }
        }
        self.end();
    }

    fn end(&mut self) {
        if self.text.len() > self.ends.last().copied().unwrap_or(0) {
            self.ends.push(self.text.len());
        }
    }

    /// Where the word of this number begins.
    pub(super) fn start(&self, word: usize) -> usize {
        word.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The letters and digits from one word to another, the last one included.
    pub(super) fn between(&self, first: usize, last: usize) -> &[u8] {
        &self.text[self.start(first)..self.ends[last]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_is_alike() {
        let words = |text: &str| {
            let mut words = Words::default();
            words.read(text);
            (0..words.ends.len()).map(|i| String::from_utf8(words.between(i, i).to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(words("Zoé  LEFÈVRE-d'Arc"), ["zoe", "lefevre", "d", "arc"]);
        assert_eq!(words("Zoe\u{301} lefe\u{300}vre d’arc"), ["zoe", "lefevre", "d", "arc"]);
        assert_eq!(words("zoe.lefevre@example.fr"), ["zoe", "lefevre", "example", "fr"]);
        assert_eq!(words("Straße, œuvre, ﬁn, Ｗ１"), ["strasse", "oeuvre", "fin", "w1"]);
        assert!(words(" -- ").is_empty());
    }
}
