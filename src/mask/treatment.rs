//! What becomes of a column: a pseudonym, or less than it was.

use jiff::civil::Date;
use jiff::fmt::strtime::BrokenDownTime;
use sha2::{Digest, Sha256};

use super::hmac::{self, KeyState, Tag};
use super::key::Key;
use super::pseudonym::{Observer, Pseudonymiser, Witness};
use super::scope::Scope;
use crate::error::{Error, Result};

/// The treatment of a column.
pub enum Treatment {
    /// It stays as it is.
    Keep,
    /// It leaves the table.
    Drop,
    /// A token under the key.
    Pseudonym(Box<Pseudonymiser>),
    /// This text in place of every value.
    Redact(String, Option<Witness>),
    /// The first so many characters.
    Truncate(usize, Option<Witness>),
    /// `YYYY` of a date or timestamp.
    Year(DateForm),
    /// `YYYY-MM` of a date or timestamp.
    Month(DateForm),
    /// The greatest multiple of this that is not above the number.
    Bucket(u64),
    /// A date moved by a number of days that is the same for all rows of one id.
    Shift(Box<Shift>),
}

/// How dates are written: ISO 8601 unless a form is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DateForm(Option<String>);

/// A keyed offset for each id, from `-days` to `days` without 0.
pub struct Shift {
    days: u32,
    form: DateForm,
    by: String,
    state: KeyState,
}

/// Texts one behind the other.
#[derive(Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Appends what becomes of the value of this place; none where it cannot be.
type Writer<'w> = dyn Fn(usize, &[u8], &mut Vec<u8>) -> Option<()> + 'w;

/// A value that a treatment cannot take: which, and why, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit {
    /// Among the values of the batch.
    pub index: usize,
    /// As a message says it.
    pub why: &'static str,
}

impl Texts {
    /// The texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

impl Treatment {
    /// Its name, as a policy has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
            Self::Pseudonym(_) => "pseudonym",
            Self::Redact(..) => "redact",
            Self::Truncate(..) => "truncate",
            Self::Year(_) => "year",
            Self::Month(_) => "month",
            Self::Bucket(_) => "bucket",
            Self::Shift(_) => "shift",
        }
    }

    /// Its name with what belongs to it, as a manifest has it.
    pub fn describe(&self) -> String {
        match self {
            Self::Truncate(n, _) => format!("truncate:{n}"),
            Self::Bucket(n) => format!("bucket:{n}"),
            Self::Shift(shift) => format!("shift:{}", shift.days),
            other => other.name().into(),
        }
    }

    /// Has the values told that it masks. Numbers and dates, which other columns have by chance, are not.
    pub fn witness(&mut self, witness: &Witness) {
        match self {
            Self::Pseudonym(mask) => mask.witness(witness.clone()),
            Self::Redact(_, told) | Self::Truncate(_, told) => *told = Some(witness.clone()),
            _ => {}
        }
    }

    /// Has the tags told that become pseudonyms.
    pub fn observe(&mut self, observer: Observer) {
        if let Self::Pseudonym(mask) = self {
            mask.observe(observer);
        }
    }

    /// The column whose value decides how far a date is moved.
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Shift(shift) => Some(&shift.by),
            _ => None,
        }
    }

    /// What makes its pseudonyms, if these are what it makes.
    #[inline]
    pub fn pseudonymiser(&self) -> Option<&Pseudonymiser> {
        match self {
            Self::Pseudonym(mask) => Some(mask),
            _ => None,
        }
    }

    /// Whether the empty value is treated rather than kept.
    pub fn takes_empty(&self) -> bool {
        matches!(self, Self::Pseudonym(p) if p.form().hashes_empty())
    }

    /// What its texts may begin with or hold beside digits, letters and `-.:+`: a table's dialect must not split it.
    pub fn constant(&self) -> &str {
        match self {
            Self::Pseudonym(p) => p.form().prefix(),
            Self::Redact(text, _) => text,
            _ => "",
        }
    }

    /// Appends what becomes of each value in canonical form; `ids` are the values of the column [`Treatment::by`], if there is one.
    ///
    /// # Errors
    /// The first value that the treatment cannot take.
    ///
    /// # Panics
    /// For a treatment that is none of values: keep and drop.
    pub fn apply(&self, values: &[&[u8]], ids: &[&[u8]], out: &mut Texts) -> Result<(), Unfit> {
        let mut each = |why: &'static str, write: &Writer<'_>| {
            for (index, value) in values.iter().enumerate() {
                write(index, value, &mut out.bytes).ok_or(Unfit { index, why })?;
                out.ends.push(out.bytes.len());
            }
            Ok(())
        };
        if let Self::Redact(_, Some(witness)) | Self::Truncate(_, Some(witness)) = self {
            witness(values);
        }
        match self {
            Self::Keep | Self::Drop => unreachable!("no treatment of values"),
            Self::Pseudonym(mask) => {
                let mut tags = vec![Tag::default(); values.len()];
                mask.tags(values, &mut tags)?;
                tags.iter().for_each(|tag| out.push(|bytes| mask.form().write(tag, bytes)));
                Ok(())
            }
            Self::Redact(text, _) => each("", &|_, _, out| {
                out.extend_from_slice(text.as_bytes());
                Some(())
            }),
            Self::Truncate(length, _) => each("a value is no text", &|_, value, out| {
                let text = std::str::from_utf8(value).ok()?;
                let end = text.char_indices().nth(*length).map_or(text.len(), |(at, _)| at);
                out.extend_from_slice(&value[..end]);
                Some(())
            }),
            Self::Year(form) => each(NO_DATE, &|_, value, out| {
                let (date, _) = form.read(value)?;
                out.extend_from_slice(format!("{:04}", date.year()).as_bytes());
                Some(())
            }),
            Self::Month(form) => each(NO_DATE, &|_, value, out| {
                let (date, _) = form.read(value)?;
                out.extend_from_slice(format!("{:04}-{:02}", date.year(), date.month()).as_bytes());
                Some(())
            }),
            Self::Bucket(step) => each("a value is no number", &|_, value, out| {
                out.extend_from_slice(bucket(value, *step)?.to_string().as_bytes());
                Some(())
            }),
            Self::Shift(shift) => {
                let offsets = shift.offsets(ids);
                each(NO_DATE, &|index, value, out| shift.form.moved(value, *offsets.get(index)?, out))
            }
        }
    }
}

const NO_DATE: &str = "a value is no date in the form that is expected";

impl Shift {
    /// Offsets of at most so many days, by the values of a column, under a key of their own.
    ///
    /// # Errors
    /// No days, or more than a century of them.
    pub fn new(days: u32, form: DateForm, by: &str, key: &Key, scope: &Scope, domain: &str) -> Result<Self> {
        const MOST: u32 = 36_525;
        if !(1..=MOST).contains(&days) {
            return Err(Error::usage(format!("a shift is of 1 to {MOST} days; {days} were asked for")));
        }
        Ok(Self { days, form, by: by.to_owned(), state: scope.key_state(key, &format!("shift\0{domain}")) })
    }

    /// How dates are written.
    pub fn form(&self) -> &DateForm {
        &self.form
    }

    /// Days for each id, in order.
    pub fn offsets(&self, ids: &[&[u8]]) -> Vec<i32> {
        let mut tags = vec![Tag::default(); ids.len()];
        hmac::tags(&self.state, ids, &mut tags);
        let days = u64::from(self.days);
        let one = |tag: &Tag| {
            let [a, b, c, d, e, f, g, h, ..] = *tag;
            // 2⁶⁴ against a few thousand: the rest of the division shows no bias.
            let n = (u64::from_be_bytes([a, b, c, d, e, f, g, h]) % (2 * days)) as i32;
            let n = n - days as i32;
            if n < 0 { n } else { n + 1 }
        };
        tags.iter().map(one).collect()
    }
}

impl DateForm {
    /// A form as `strftime` has them, with year, month and day: `%d/%m/%Y`.
    ///
    /// # Errors
    /// A form that cannot be read back, or in which one of the three lacks.
    pub fn new(form: &str) -> Result<Self> {
        let form = Self(Some(form.to_owned()));
        let day = Date::constant(2004, 11, 22);
        let mut text = Vec::new();
        let holds =
            form.write(day, &mut text).and_then(|()| form.read(&text)).is_some_and(|(read, rest)| read == day && rest.is_empty());
        if holds { Ok(form) } else { Err(Error::usage("a form of dates has year, month and day").hint("format = \"%d/%m/%Y\"")) }
    }

    /// The date of a text and, in ISO 8601, the time behind it.
    fn read<'t>(&self, value: &'t [u8]) -> Option<(Date, &'t str)> {
        let text = std::str::from_utf8(value).ok()?.trim();
        if let Some(form) = &self.0 {
            let date = BrokenDownTime::parse(form, text).ok()?.to_date().ok()?;
            return Some((date, ""));
        }
        let (date, rest) = text.split_at_checked(10)?;
        let digits = |i: usize| date.as_bytes()[i].is_ascii_digit();
        let is_iso = (0..10).all(|i| if i == 4 || i == 7 { date.as_bytes()[i] == b'-' } else { digits(i) });
        let is_time = rest.is_empty() || rest.starts_with(['T', ' ']) && rest.len() > 1;
        (is_iso && is_time).then(|| date.parse().ok()).flatten().map(|date| (date, rest))
    }

    fn write(&self, date: Date, out: &mut Vec<u8>) -> Option<()> {
        let text = match &self.0 {
            Some(form) => jiff::fmt::strtime::format(form, date).ok()?,
            None => date.to_string(),
        };
        out.extend_from_slice(text.as_bytes());
        Some(())
    }

    /// Appends the date so many days later, in the form that it had.
    pub fn moved(&self, value: &[u8], days: i32, out: &mut Vec<u8>) -> Option<()> {
        let (date, rest) = self.read(value)?;
        let date = date.checked_add(jiff::Span::new().days(days)).ok()?;
        self.write(date, out)?;
        out.extend_from_slice(rest.as_bytes());
        Some(())
    }
}

/// The greatest multiple of `step` that is not above a decimal number, point or comma. A fraction is rounded down with the rest.
fn bucket(value: &[u8], step: u64) -> Option<i128> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = if negative { digits } else { digits.strip_prefix('+').unwrap_or(digits) };
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
    let all_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || whole.len() > 30 {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let below = fraction.bytes().any(|b| b != b'0');
    let floor = if negative { -whole - i128::from(below) } else { whole };
    let step = i128::from(step);
    Some(floor.div_euclid(step) * step)
}

/// SHA-256 of a text, for what is to be known again and not to be read.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    super::pseudonym::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(treatment: &Treatment, value: &str) -> Option<String> {
        let mut out = Texts::default();
        treatment.apply(&[value.as_bytes()], &[b"id"], &mut out).ok()?;
        Some(String::from_utf8(out.get(0).to_vec()).unwrap())
    }

    #[test]
    fn less_than_it_was() {
        let french = DateForm::new("%d/%m/%Y").unwrap();
        let cases: [(Treatment, &str, Option<&str>); 22] = [
            (Treatment::Redact("***".into(), None), "anything", Some("***")),
            (Treatment::Truncate(2, None), "75011", Some("75")),
            (Treatment::Truncate(3, None), "éàüx", Some("éàü")),
            (Treatment::Truncate(9, None), "é", Some("é")),
            (Treatment::Truncate(0, None), "é", Some("")),
            (Treatment::Year(DateForm::default()), "1985-03-12", Some("1985")),
            (Treatment::Year(DateForm::default()), "1985-03-12T10:00:00Z", Some("1985")),
            (Treatment::Year(DateForm::default()), "12/03/1985", None),
            (Treatment::Year(DateForm::default()), "1985-02-30", None),
            (Treatment::Year(french.clone()), "12/03/1985", Some("1985")),
            (Treatment::Month(french.clone()), "12/03/1985", Some("1985-03")),
            (Treatment::Month(french), "1985-03-12", None),
            (Treatment::Month(DateForm::default()), "0985-03-12 08:00", Some("0985-03")),
            (Treatment::Bucket(10), "37", Some("30")),
            (Treatment::Bucket(10), "-1", Some("-10")),
            (Treatment::Bucket(10), "-10", Some("-10")),
            (Treatment::Bucket(10), "-10.01", Some("-20")),
            (Treatment::Bucket(1000), "12345,67", Some("12000")),
            (Treatment::Bucket(5), "007", Some("5")),
            (Treatment::Bucket(5), "1e3", None),
            (Treatment::Bucket(5), "", None),
            (Treatment::Bucket(5), "1.2.3", None),
        ];
        for (treatment, value, want) in cases {
            assert_eq!(run(&treatment, value).as_deref(), want, "{} {value}", treatment.describe());
        }
    }

    #[test]
    fn a_shift_is_the_same_for_one_id_and_never_none() {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        let shift = Shift::new(30, DateForm::default(), "id", &key, &Scope::Stable, "").unwrap();
        let ids: Vec<String> = (0..5000).map(|i| i.to_string()).collect();
        let offsets = shift.offsets(&ids.iter().map(String::as_bytes).collect::<Vec<_>>());
        assert!(offsets.iter().all(|d| *d != 0 && d.abs() <= 30));
        for days in (-30..=30).filter(|d| *d != 0) {
            assert!(offsets.iter().filter(|d| **d == days).count() > 40, "{days} days");
        }
        let days = shift.offsets(&[b"7"])[0];
        let shift = Treatment::Shift(Box::new(shift));
        let mut out = Texts::default();
        shift.apply(&[b"2024-02-28", b"2024-03-10T07:00:00.5Z"], &[b"7", b"7"], &mut out).unwrap();
        let date = |i: usize| std::str::from_utf8(out.get(i)).unwrap()[..10].parse::<Date>().unwrap();
        assert_eq!(date(0), Date::constant(2024, 2, 28).checked_add(jiff::Span::new().days(days)).unwrap());
        assert_eq!((date(1) - date(0)).get_days(), 11);
        assert!(out.get(1).ends_with(b"T07:00:00.5Z"));
        assert_eq!(shift.apply(&[b"2024-02-28", b"x"], &[b"7", b"7"], &mut out).unwrap_err().index, 1);
    }

    #[test]
    fn forms_of_dates_that_lose_something_are_refused() {
        for bad in ["%d/%m", "%Y", "", "%d/%m/%y %Q", "%H:%M"] {
            assert!(DateForm::new(bad).unwrap_err().is_usage(), "{bad}");
        }
        assert!(DateForm::new("%d.%m.%Y").is_ok());
    }
}
