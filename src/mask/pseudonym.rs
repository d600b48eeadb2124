//! From a tag to the text that takes the place of a value.

use std::sync::{Mutex, PoisonError};

use wide::u8x16;

use super::hmac::{self, KeyState, Tag};
use super::key::Key;
use super::normal::Normalisation;
use super::repeats::Memory;
use super::scope::Scope;
use super::treatment::Unfit;
use crate::error::{Error, Result};

/// The least length of a pseudonym in hex digits.
pub(super) const MIN_DIGITS: usize = 16;
/// The greatest length of a pseudonym in hex digits: a whole tag.
pub(super) const MAX_DIGITS: usize = 64;
/// The greatest length of a prefix in bytes.
const MAX_PREFIX_BYTES: usize = 32;

/// The form of a pseudonym: what the key does not decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    digits: usize,
    prefix: String,
    hash_empty: bool,
}

/// Makes pseudonyms of values in their canonical form, under one key and scope.
///
/// ```
/// use hmask::{Form, Key, Pseudonymiser, Scope};
///
/// let key = Key::new("0123456789abcdef".repeat(4).into_bytes())?;
/// let mask = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
/// assert_eq!(mask.pseudonym(b"007"), "676956ddd7e64da5");
/// assert_eq!(mask.pseudonym(b""), "");
/// # Ok::<(), hmask::Error>(())
/// ```
pub struct Pseudonymiser {
    state: KeyState,
    form: Form,
    normal: Normalisation,
    domain: String,
    witness: Option<Witness>,
    observer: Option<Observer>,
    /// One for each thread that has been at work.
    memories: Mutex<Vec<Memory>>,
}

/// Is told of the tags that become pseudonyms, a batch at a time; of some more than once.
pub type Observer = std::sync::Arc<dyn Fn(&[Tag]) + Send + Sync>;

/// Is told of the values that become pseudonyms, a batch at a time; of some more than once.
pub type Witness = std::sync::Arc<dyn Fn(&[&[u8]]) + Send + Sync>;

impl Form {
    /// `digits` hex digits behind `prefix`; with `hash_empty` the empty value is hashed like any other.
    ///
    /// # Errors
    /// `digits` odd or outside of 16 to 64; a prefix longer than 32 bytes, or with a control character, quote,
    /// backslash, blank at its start or field delimiter, which a table could not hold as it is.
    pub fn new(digits: usize, prefix: &str, hash_empty: bool) -> Result<Self> {
        if !(MIN_DIGITS..=MAX_DIGITS).contains(&digits) || digits % 2 == 1 {
            return Err(Error::usage(format!(
                "a pseudonym has {MIN_DIGITS} to {MAX_DIGITS} hex digits, an even number; {digits} were asked for"
            )));
        }
        let odd = |c: char| c.is_control() || c.is_whitespace() || "\"'\\,;|`".contains(c);
        if prefix.len() > MAX_PREFIX_BYTES || prefix.contains(odd) {
            return Err(Error::usage(format!(
                "a prefix has at most {MAX_PREFIX_BYTES} bytes and no blank, quote, backslash, delimiter or control character"
            )));
        }
        Ok(Self { digits, prefix: prefix.to_owned(), hash_empty })
    }

    /// Length of a token in bytes of UTF-8.
    pub fn token_len(&self) -> usize {
        self.prefix.len() + self.digits
    }

    /// Hex digits of a token.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Whether the empty value is hashed rather than kept.
    pub fn hashes_empty(&self) -> bool {
        self.hash_empty
    }

    /// What stands before the hex digits.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Appends the token of this tag.
    #[inline]
    pub fn write(&self, tag: &Tag, out: &mut Vec<u8>) {
        if !self.prefix.is_empty() {
            out.extend_from_slice(self.prefix.as_bytes());
        }
        self.write_digits(tag, out);
    }

    /// Appends the hex digits of the token alone, for encodings in which the prefix has other bytes.
    #[expect(clippy::inline_always, reason = "called for each value: a call of its own would cost as much as its work")]
    #[inline(always)]
    pub fn write_digits(&self, tag: &Tag, out: &mut Vec<u8>) {
        if self.digits == MIN_DIGITS {
            // The usual length: a copy of fixed size is a few instructions.
            let (eights, _) = tag.as_chunks::<8>();
            out.extend_from_slice(&sixteen(eights[0]));
        } else {
            out.extend_from_slice(&all_digits(tag)[..self.digits]);
        }
    }

    /// Puts the token of this tag at the start of `out`, and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than that.
    #[expect(clippy::inline_always, reason = "called for each value: a call of its own would cost as much as its work")]
    #[inline(always)]
    pub(crate) fn put(&self, tag: &Tag, out: &mut [u8]) -> usize {
        if let (MIN_DIGITS, true, Some(to)) = (self.digits, self.prefix.is_empty(), out.first_chunk_mut::<MIN_DIGITS>()) {
            *to = sixteen(tag.as_chunks::<8>().0[0]);
            return MIN_DIGITS;
        }
        let (prefix, digits) = out[..self.token_len()].split_at_mut(self.prefix.len());
        prefix.copy_from_slice(self.prefix.as_bytes());
        if let Some(digits) = digits.as_mut_array::<MIN_DIGITS>() {
            *digits = sixteen(tag.as_chunks::<8>().0[0]);
        } else {
            digits.copy_from_slice(&all_digits(tag)[..self.digits]);
        }
        self.token_len()
    }

    /// The chance that any two of `distinct` values share a token.
    pub fn collision_chance(&self, distinct: u64) -> f64 {
        let n = distinct as f64;
        // Birthday bound, 1 - exp(-n(n-1) / 2^(bits+1)); expm1 keeps small chances exact.
        -(-n * (n - 1.0).max(0.0) / 2f64.powi(4 * self.digits as i32 + 1)).exp_m1()
    }
}

impl Default for Form {
    /// 16 digits, no prefix, the empty value stays.
    fn default() -> Self {
        Self { digits: MIN_DIGITS, prefix: String::new(), hash_empty: false }
    }
}

impl Pseudonymiser {
    /// Keys the hash for this scope and domain; the key itself is not kept.
    pub fn new(key: &Key, scope: &Scope, domain: &str, form: Form) -> Self {
        let state = scope.key_state(key, domain);
        let (normal, domain, memories) = (Normalisation::default(), domain.to_owned(), Mutex::default());
        Self { state, form, normal, domain, witness: None, observer: None, memories }
    }

    /// The same, for values that are brought into a normal form before they are hashed.
    #[must_use]
    pub fn normalised(mut self, normal: Normalisation) -> Self {
        self.normal = normal;
        self
    }

    /// The same, with somebody who is told of all values: the leak check has to know what must not be found.
    #[must_use]
    pub fn witnessed(mut self, witness: Witness) -> Self {
        self.witness(witness);
        self
    }

    /// From now on has somebody told of all tags: how many differ is as good as how many values do.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// From now on has somebody told of all values.
    pub fn witness(&mut self, witness: Witness) {
        self.witness = Some(witness);
    }

    /// The form of its pseudonyms.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// What is done to values before they are hashed.
    pub fn normalisation(&self) -> &Normalisation {
        &self.normal
    }

    /// Where a value has the same pseudonym, within its scope.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The tags of many values in canonical form, in order.
    ///
    /// # Errors
    /// A value that the normalisation cannot read.
    ///
    /// # Panics
    /// If `out` has another length than `values`.
    pub fn tags(&self, values: &[&[u8]], out: &mut [Tag]) -> Result<(), Unfit> {
        self.tags_of_column(values, 0, out)
    }

    /// The same for values of one of several columns, by its number: one may hold the same values again and again and another not.
    ///
    /// # Errors
    /// A value that the normalisation cannot read.
    ///
    /// # Panics
    /// If `out` has another length than `values`.
    pub fn tags_of_column(&self, values: &[&[u8]], column: usize, out: &mut [Tag]) -> Result<(), Unfit> {
        if let Some(witness) = &self.witness {
            witness(values);
        }
        if self.normal.is_none() {
            self.hash(values, column, out);
            return Ok(());
        }
        let why = "a value cannot be read as the normalisation wants it";
        let normal = values.iter().enumerate().map(|(index, value)| self.normal.apply(value).ok_or(Unfit { index, why }));
        let normal: Vec<_> = normal.collect::<Result<_, _>>()?;
        let normal: Vec<&[u8]> = normal.iter().map(|v| &v[..]).collect();
        if let Some(witness) = &self.witness {
            witness(&normal);
        }
        self.hash(&normal, column, out);
        Ok(())
    }

    fn hash(&self, values: &[&[u8]], column: usize, out: &mut [Tag]) {
        let memories = || self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        if values.len() < Memory::LEAST {
            hmac::tags(&self.state, values, out);
        } else {
            let mut memory = memories().pop().unwrap_or_default();
            memory.tags(&self.state, values, column, out);
            memories().push(memory);
        }
        self.observer.iter().for_each(|observer| observer(out));
    }

    /// The pseudonym of one value in canonical form. For many, [`Pseudonymiser::tags`] is the faster way.
    ///
    /// # Errors
    /// A value that the normalisation cannot read.
    pub fn try_pseudonym(&self, canonical: &[u8]) -> Result<String, Unfit> {
        if canonical.is_empty() && !self.form.hash_empty {
            return Ok(String::new());
        }
        let (mut tag, mut out) = ([Tag::default()], Vec::new());
        self.tags(&[canonical], &mut tag)?;
        self.form.write(&tag[0], &mut out);
        Ok(String::from_utf8(out).unwrap_or_default()) // hex behind a str: always UTF-8
    }

    /// The pseudonym of the empty value: empty itself, unless it is hashed.
    pub fn pseudonym_of_empty(&self) -> String {
        self.try_pseudonym(b"").unwrap_or_default()
    }

    /// As [`Pseudonymiser::try_pseudonym`], where nothing is normalised.
    ///
    /// # Panics
    /// If the normalisation cannot read the value.
    pub fn pseudonym(&self, canonical: &[u8]) -> String {
        self.try_pseudonym(canonical).unwrap_or_else(|unfit| panic!("{}", unfit.why))
    }
}

/// All hex digits of a tag.
#[cold]
fn all_digits(tag: &Tag) -> [u8; MAX_DIGITS] {
    let mut hex = [0u8; MAX_DIGITS];
    for (digits, eight) in hex.as_chunks_mut().0.iter_mut().zip(tag.as_chunks().0) {
        *digits = sixteen(*eight);
    }
    hex
}

/// Eight bytes as sixteen lower-case hex digits, all at once.
#[inline]
fn sixteen(bytes: [u8; 8]) -> [u8; 16] {
    const NIBBLES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let word = u64::from_le_bytes(bytes);
    let half = |word: u64| u8x16::new((u128::from(word & NIBBLES)).to_le_bytes());
    let digits = u8x16::unpack_low(half(word >> 4), half(word));
    let letters = digits.simd_gt(u8x16::splat(9)) & u8x16::splat(b'a' - b'9' - 1);
    (digits + u8x16::splat(b'0') + letters).to_array()
}

/// Bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|b| HEX[usize::from(*b)]).map(char::from).collect()
}

/// Both hex digits of each byte.
static HEX: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = [DIGITS[i >> 4], DIGITS[i & 15]];
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap()
    }

    #[test]
    fn vectors_of_the_specification() {
        let whole = Form::new(64, "", true).unwrap();
        let mask = Pseudonymiser::new(&key(), &Scope::Stable, "", whole);
        let text = include_str!("../../docs/spec.md");
        let mut seen = 0;
        for line in text.lines().filter(|line| line.starts_with("| `") || line.starts_with("| (empty") || line.contains(" × `x`"))
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`')).collect();
            let [name, bytes, token, digest] = cells[..] else { continue };
            let Ok(bytes) = bytes.parse::<usize>() else { continue };
            let value = match name.split_once(" × ") {
                Some((n, _)) => "x".repeat(n.parse().unwrap()),
                None if name.starts_with('(') => String::new(),
                None => name.to_owned(),
            };
            assert_eq!(value.len(), bytes, "{line}");
            assert_eq!(mask.pseudonym(value.as_bytes()), digest, "{line}");
            assert!(digest.starts_with(token), "{line}");
            seen += 1;
        }
        assert_eq!(seen, 11, "the table of the specification has moved");
    }

    #[test]
    fn prefix_length_and_scope() {
        let form = Form::new(20, "p_", false).unwrap();
        assert_eq!(form.token_len(), 22);
        let mask = Pseudonymiser::new(&key(), &Scope::Recipient("acme".into()), "email", form);
        let token = mask.pseudonym(b"007");
        assert!(token.starts_with("p_a33cc198eaccee23") && token.len() == 22, "{token}");
    }

    #[test]
    fn odd_forms_are_refused() {
        for (digits, prefix) in [(14, ""), (17, ""), (66, ""), (16, "a,b"), (16, "a\n"), (16, "\""), (16, &"x".repeat(33))] {
            assert!(Form::new(digits, prefix, false).unwrap_err().is_usage(), "{digits} {prefix:?}");
        }
    }

    #[test]
    fn collision_chances_of_the_design() {
        let form = Form::default();
        assert!((form.collision_chance(1_000_000) / 2.71e-8 - 1.0).abs() < 0.01);
        assert!((form.collision_chance(1_000_000_000) / 0.0267 - 1.0).abs() < 0.01);
        assert!(form.collision_chance(0) <= 0.0 && form.collision_chance(1) <= 0.0);
    }
}
