//! The original values of masked columns, as hashes under a random key: enough to find one again, not to tell what it was.
//!
//! A value is known by the letters and digits of its words (`fold`), so that case, accents, punctuation and spacing do not hide it. In
//! a text any run of words is looked up; the hash of a run is a difference of two hashes of prefixes, so a look-up does not depend on
//! its length (Karp and Rabin, 1987, over the prime 2⁶¹ - 1).

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use twox_hash::XxHash64;

use super::fold::Words;

/// Letters and digits below which a value is not looked for: it would be found everywhere.
pub const MIN_LETTERS: usize = 4;
/// Digits below which a number is not looked for.
pub const MIN_DIGITS: usize = 6;
/// Words of a value that are looked for; of a longer one the first so many.
const MAX_WORDS: usize = 16;
/// Last digits by which a telephone number is known, whatever stands before them.
const PHONE_DIGITS: usize = 9;
/// Values of a batch that are remembered, so that equal ones are taken once.
const RECENT: usize = 4096;
/// Digits of a telephone number, that of its country included (E.164).
const MAX_PHONE_DIGITS: usize = 15;
/// Values that stand for none (folded).
const PLACEHOLDERS: [&str; 22] = [
    "none",
    "null",
    "unknown",
    "inconnu",
    "inconnue",
    "unbekannt",
    "desconocido",
    "sconosciuto",
    "test",
    "anonyme",
    "anonymous",
    "nonrenseigne",
    "nonrenseignee",
    "nonprecise",
    "sansobjet",
    "notavailable",
    "aucun",
    "aucune",
    "autre",
    "other",
    "true",
    "false",
];

/// Original values, and how many of them cannot be looked for.
#[derive(Default)]
pub struct Originals {
    inner: RwLock<Inner>,
    /// For whole values.
    random: RandomState,
    polynomial: Polynomial,
}

#[derive(Default)]
struct Inner {
    /// Values that are not looked for, to be counted once.
    passed_over: Set,
    /// Of values and of their other spellings.
    anywhere: Set,
    /// Of dates, which other columns can have by chance: looked for among words alone.
    among_words: Set,
    /// Of the last digits of telephone numbers.
    phones: Set,
    lengths: Lengths,
    words: usize,
    facts: Facts,
}

/// Of hashes, which need no other hash.
type Set = HashSet<u64, BuildHasherDefault<Same>>;

/// What is known of the values as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Distinct values that are looked for.
    pub looked_for: u64,
    /// Distinct values that are too short for it: fewer than 4 letters, or 6 digits.
    pub too_short: u64,
    /// Distinct values that stand for none, such as `unknown`.
    pub placeholders: u64,
}

/// A `u64` that is a hash already.
#[derive(Clone, Copy, Default)]
pub(super) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are stored")
    }

    fn write_u64(&mut self, hash: u64) {
        // The table takes its place from the lowest bits and a tag from the highest.
        self.0 = hash ^ hash << 32;
    }
}

/// Which lengths occur, so that most runs of words need no look-up.
#[derive(Default)]
struct Lengths([u64; 8]);

impl Lengths {
    fn note(&mut self, length: usize) {
        let bit = length.min(511);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn has(&self, length: usize) -> bool {
        let bit = length.min(511);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }
}

/// A polynomial over a prime field at a random place.
struct Polynomial {
    at: u64,
}

const PRIME: u64 = (1 << 61) - 1;

impl Default for Polynomial {
    fn default() -> Self {
        Self { at: RandomState::new().hash_one(0) % (PRIME - 512) + 256 }
    }
}

impl Polynomial {
    fn times(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let sum = (product as u64 & PRIME) + (product >> 61) as u64;
        if sum >= PRIME { sum - PRIME } else { sum }
    }

    fn of(&self, bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |h, b| (Self::times(h, self.at) + u64::from(*b) + 1) % PRIME)
    }

    /// Hashes of all prefixes, and the powers that take one out of another.
    fn prefixes(&self, bytes: &[u8], prefixes: &mut Vec<u64>, powers: &mut Vec<u64>) {
        prefixes.clear();
        prefixes.push(0);
        let mut hash = 0;
        for byte in bytes {
            hash = (Self::times(hash, self.at) + u64::from(*byte) + 1) % PRIME;
            prefixes.push(hash);
        }
        while powers.len() <= bytes.len() {
            powers.push(powers.last().map_or(1, |p| Self::times(*p, self.at)));
        }
    }
}

/// Looks through texts, while no values are added.
pub(super) struct Looking<'o> {
    inner: RwLockReadGuard<'o, Inner>,
    polynomial: &'o Polynomial,
    search: Search,
}

/// Memory for looking through texts.
#[derive(Default)]
struct Search {
    words: Words,
    prefixes: Vec<u64>,
    powers: Vec<u64>,
}

impl Originals {
    /// Takes values in canonical form.
    pub fn see(&self, values: &[&[u8]]) {
        let mut words = Words::default();
        let mut found = Vec::new();
        // Equal values stand near each other, or come again and again.
        let mut recent = vec![0; RECENT];
        for value in values {
            let hash = XxHash64::oneshot(self.polynomial.at, value);
            let place = &mut recent[(hash >> 32) as usize % RECENT];
            if std::mem::replace(place, hash) == hash && hash != 0 {
                continue;
            }
            match std::str::from_utf8(value) {
                Ok(text) => words.read(text),
                Err(_) => words.read(&String::from_utf8_lossy(value)),
            }
            found.push((self.spellings(value, &words), value));
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        for (spellings, value) in found {
            inner.take(spellings, || self.random.hash_one(value));
        }
    }

    /// What is known of the values as a whole.
    pub fn facts(&self) -> Facts {
        self.read().facts
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to look through texts.
    pub(super) fn looking(&self) -> Looking<'_> {
        Looking { inner: self.read(), polynomial: &self.polynomial, search: Search::default() }
    }

    fn spellings(&self, value: &[u8], words: &Words) -> Spellings {
        let count = words.ends.len().min(MAX_WORDS);
        if count == 0 {
            return Spellings::TooShort;
        }
        let all = words.between(0, count - 1);
        let digits = all.iter().filter(|b| b.is_ascii_digit()).count();
        let least = if digits == all.len() { MIN_DIGITS } else { MIN_LETTERS };
        if all.len() < least {
            return Spellings::TooShort;
        }
        if PLACEHOLDERS.iter().any(|p| p.as_bytes() == all) || all.windows(2).all(|w| w[0] == w[1]) {
            return Spellings::Placeholder;
        }
        let mut hashes = [Some(self.polynomial.of(all)), None, None];
        // Surname first, or last.
        if (2..=3).contains(&count) && digits == 0 {
            for (at, hash) in (1..count).zip(&mut hashes[1..]) {
                let turned = [words.between(at, count - 1), words.between(0, at - 1)].concat();
                *hash = Some(self.polynomial.of(&turned));
            }
        }
        let is_number = digits == all.len() && digits > PHONE_DIGITS && digits <= MAX_PHONE_DIGITS;
        let dialled = matches!(value.first(), Some(b'+' | b'0' | b'('));
        let phone = (is_number && dialled).then(|| self.polynomial.of(&all[all.len() - PHONE_DIGITS..]));
        let is_date = digits == all.len() && digits == 8 && count == 3;
        // Long numbers are written in groups of two digits or more.
        let words = if digits >= MIN_DIGITS { count.max(all.len().div_ceil(2).min(MAX_WORDS)) } else { count };
        Spellings::Of { words, length: all.len(), hashes, phone, is_date }
    }
}

impl Looking<'_> {
    /// How many runs of words of `text` are original values.
    pub(super) fn count(&mut self, text: &str) -> u64 {
        let mut count = self.inner.count(text, self.polynomial, &mut self.search);
        if count == 0 && text.contains('%') {
            // As in a URL.
            let plain = percent_decoded(text);
            count = self.inner.count(&plain, self.polynomial, &mut self.search);
        }
        if count == 0 && text.contains('\\') {
            count = self.inner.count(&unescaped(text), self.polynomial, &mut self.search);
        }
        count
    }
}

impl Inner {
    /// `whole` hashes the value as it is, where its letters and digits do not tell it from others.
    fn take(&mut self, spellings: Spellings, whole: impl FnOnce() -> u64) {
        match spellings {
            Spellings::TooShort => self.facts.too_short += u64::from(self.passed_over.insert(whole())),
            Spellings::Placeholder => self.facts.placeholders += u64::from(self.passed_over.insert(whole())),
            Spellings::Of { words, length, hashes, phone, is_date } => {
                let set = if is_date { &mut self.among_words } else { &mut self.anywhere };
                if !hashes[0].is_some_and(|hash| set.insert(hash)) {
                    return;
                }
                set.extend(hashes[1..].iter().flatten());
                self.facts.looked_for += 1;
                self.words = self.words.max(words);
                self.lengths.note(length);
                if let Some(phone) = phone {
                    self.phones.insert(phone);
                    (PHONE_DIGITS..=MAX_PHONE_DIGITS).for_each(|length| self.lengths.note(length));
                }
            }
        }
    }

    fn count(&self, text: &str, polynomial: &Polynomial, search: &mut Search) -> u64 {
        let Search { words, prefixes, powers } = search;
        words.read(text);
        let furthest = |first: usize| words.ends.len().min(first + self.words);
        let may_be = |first: usize| (first..furthest(first)).any(|last| self.lengths.has(words.ends[last] - words.start(first)));
        if !(0..words.ends.len()).any(may_be) {
            return 0;
        }
        polynomial.prefixes(&words.text, prefixes, powers);
        let hash = |from: usize, to: usize| {
            let before = Polynomial::times(prefixes[from], powers[to - from]);
            let hash = prefixes[to] + PRIME - before;
            if hash >= PRIME { hash - PRIME } else { hash }
        };
        let has_letters = words.text.iter().any(|b| !b.is_ascii_digit());
        let (mut count, mut first) = (0, 0);
        while first < words.ends.len() {
            let from = words.start(first);
            let found = (first..furthest(first)).find(|last| {
                let to = words.ends[*last];
                let run = || hash(from, to);
                let is_phone = || {
                    let digits = &words.text[from..to];
                    (PHONE_DIGITS..=MAX_PHONE_DIGITS).contains(&digits.len())
                        && digits.iter().all(u8::is_ascii_digit)
                        && self.phones.contains(&hash(to - PHONE_DIGITS, to))
                };
                let is_value = |run| self.anywhere.contains(&run) || has_letters && self.among_words.contains(&run);
                self.lengths.has(to - from) && (is_value(run()) || is_phone())
            });
            count += u64::from(found.is_some());
            first = found.unwrap_or(first) + 1;
        }
        count
    }
}

/// How a value can be spelt.
#[derive(Clone, Copy)]
enum Spellings {
    TooShort,
    Placeholder,
    /// Words, letters and digits, hashes of itself and of its words in other orders, of its last digits, whether it is a date.
    Of {
        words: usize,
        length: usize,
        hashes: [Option<u64>; 3],
        phone: Option<u64>,
        is_date: bool,
    },
}

/// A text without the escapes of JSON: `\u00e9` is the letter, any other is a blank.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let unit = escape.get(2..6).filter(|_| escape[1..].starts_with('u')).and_then(|hex| u16::from_str_radix(hex, 16).ok());
        if !before.is_empty() {
            out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or('\u{fffd}')));
            out.push_str(before);
        }
        if let Some(unit) = unit {
            units.push(unit);
            rest = &escape[6..];
        } else {
            out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or('\u{fffd}')));
            out.push(' ');
            rest = escape.char_indices().nth(2).map_or("", |(next, _)| &escape[next..]);
        }
    }
    out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or('\u{fffd}')));
    out + rest
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> bool {
        let originals = Originals::default();
        originals.see(&[value.as_bytes()]);
        originals.looking().count(text) > 0
    }

    #[test]
    fn an_original_is_found_in_any_dress() {
        for (value, text) in [
            ("zoe.lefevre@example.fr", "zoe.lefevre@example.fr"),
            ("zoe.lefevre@example.fr", "write to ZOE.LEFEVRE@EXAMPLE.FR, please"),
            ("zoe.lefevre@example.fr", "https://example.com/?mail=zoe.lefevre%40example.fr&x=1"),
            ("zoe.lefevre@example.fr", "<mailto:zoe.lefevre@example.fr>"),
            ("Zoé Lefèvre", "Mme ZOE LEFEVRE a appelé"),
            ("Zoé Lefèvre", "lefevre, zoe"),
            ("Zoé Lefèvre", "zoe_lefevre.pdf"),
            ("Zoé Marie Lefèvre", "Lefèvre Zoé Marie"),
            ("06 12 34 56 78", "tél. 0612345678"),
            ("06 12 34 56 78", "+33 6 12 34 56 78"),
            ("06 12 34 56 78", "(+33)612345678"),
            ("+33612345678", "06.12.34.56.78"),
            ("FR7630006000011234567890189", "FR76 3000 6000 0112 3456 7890 189"),
            ("FR76 3000 6000 0112 3456 7890 189", "iban:FR7630006000011234567890189"),
            ("1980-02-03", "né le 1980-02-03 à Nîmes"),
            ("4711001", "/customers/4711001/orders"),
            ("Müller", "MÜLLER"),
            ("Müller", "mu\u{308}ller"),
            ("Straße 5b", "strasse 5B"),
            ("12 rue des Œillets", "12, rue des oeillets"),
            ("Zoé Lefèvre", r#"{"nom":"Zo\u00e9 Lef\u00e8vre"}"#),
            ("Zoé Lefèvre", "x \\\"Zo\\u00e9 Lef\\u00e8vre\\\" y\n"),
        ] {
            assert!(found(value, text), "{value} in {text}");
        }
    }

    #[test]
    fn what_is_none_is_not_found() {
        for (value, text) in [
            ("Zoé Lefèvre", "Zoé et Lefèvre"),
            ("Anne", "Suzanne"),
            ("Anne", "Annecy"),
            ("4711001", "47110012"),
            ("1980-02-03", "1980-02-03"),
            ("Ana", "Ana"),
            ("12345", "12345"),
            ("inconnu", "inconnu"),
            ("000000", "000000"),
            ("06 12 34 56 78", "06 12 34 56 79"),
            ("100%", "100 %zz"),
        ] {
            assert!(!found(value, text), "{value} in {text}");
        }
    }

    #[test]
    fn facts_count_distinct_values() {
        let originals = Originals::default();
        originals.see(&[b"Ana", b"Ana", b"Lefevre", b"unknown", b"", b"12345"]);
        originals.see(&[b"Lefevre"]);
        assert_eq!(originals.facts(), Facts { looked_for: 1, too_short: 3, placeholders: 1 });
    }
}
