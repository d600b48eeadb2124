//! Identifiers of persons within a text: mailboxes, telephone numbers, and what check digits tell among other words.
//!
//! Sources: RFC 5321 (mailbox), ITU-T E.164 and the French numbering plan (telephone numbers); those of [`super::identify`].

use super::identify::{self, Kind};

/// Kinds that are looked for in sentences, too: by chance a number is seldom one of them.
const IN_SENTENCES: [Kind; 9] =
    [Kind::FrNir, Kind::Card, Kind::BeNrn, Kind::DeIdnr, Kind::FrSpi, Kind::ItCf, Kind::RoCnp, Kind::NoFnr, Kind::FiHetu];

/// Whether a kind is looked for here.
pub(super) fn finds(kind: Kind) -> bool {
    matches!(kind, Kind::Email | Kind::Phone | Kind::Iban) || IN_SENTENCES.contains(&kind)
}

/// Calls `each` for every identifier, and whether it is the whole text.
pub(super) fn identifiers(text: &str, mut each: impl FnMut(Kind, bool)) {
    let trimmed = text.trim();
    if trimmed.contains('@') {
        emails(trimmed, |mail| each(Kind::Email, mail == trimmed));
    }
    if trimmed.bytes().filter(u8::is_ascii_digit).nth(8).is_some() {
        groups(trimmed, |group, plain, gaps| {
            if let Some(kind) = number(group, plain, gaps) {
                each(kind, group == trimmed);
            }
        });
    }
}

fn emails<'t>(text: &'t str, mut each: impl FnMut(&'t str)) {
    let local = |b: u8| b.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&b);
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('@') {
        let start = bytes[..at].iter().rposition(|b| !local(*b)).map_or(0, |i| i + 1);
        let domain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
        let mut end = at + 1 + bytes[at + 1..].iter().position(|b| !domain(b)).unwrap_or(bytes.len() - at - 1);
        while end > at && !bytes[end - 1].is_ascii_alphanumeric() {
            end -= 1;
        }
        let Some((host, top)) = text.get(at + 1..end).and_then(|d| d.rsplit_once('.')) else { continue };
        if start < at && !host.is_empty() && top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic()) {
            each(&text[start..end]);
        }
    }
}

/// Calls `each` for runs of letters and digits with single separators between them, without these, and how many there were.
/// A run begins at a digit, or with the two letters of a country or a plus sign.
fn groups<'t>(text: &'t str, mut each: impl FnMut(&'t str, &str, usize)) {
    let bytes = text.as_bytes();
    let is_in = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_alphanumeric);
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_alphanumeric() || bytes[at] == b'+' && is_in(at + 1);
        // Digits behind a point or comma belong to a fraction.
        let is_fraction = at > 1 && matches!(bytes[at - 1], b'.' | b',') && bytes[at - 2].is_ascii_digit();
        if !begins || is_fraction || at > 0 && bytes[at - 1].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let (start, mut plain, mut gaps, mut end) = (at, String::new(), 0, at);
        let mut i = at;
        // Words of letters alone end a run: what follows belongs to the sentence.
        while i < bytes.len() {
            let piece_end = (i + usize::from(bytes[i] == b'+')..bytes.len()).find(|j| !is_in(*j)).unwrap_or(bytes.len());
            let piece = &text[i..piece_end];
            if !piece.bytes().any(|b| b.is_ascii_digit()) {
                break;
            }
            gaps += usize::from(end > start);
            plain.push_str(piece);
            end = piece_end;
            let separator = bytes.get(end).is_some_and(|b| b" .-/".contains(b));
            if !separator || !is_in(end + 1) {
                break;
            }
            i = end + 1;
        }
        if end == start {
            at += 1;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            continue;
        }
        // Numbers side by side hide each other: each tail is a candidate, too.
        each(&text[start..end], &plain, gaps);
        at = (start..end).find(|j| !is_in(*j) && bytes[*j] != b'+').unwrap_or(end);
    }
}

fn number(group: &str, plain: &str, gaps: usize) -> Option<Kind> {
    let is_digit = |i: usize| plain.as_bytes().get(i).is_some_and(u8::is_ascii_digit);
    let letters = plain.bytes().filter(u8::is_ascii_alphabetic).count();
    // Most runs are none of these by their length and letters alone.
    let may_be_iban = (15..=34).contains(&plain.len()) && !is_digit(0) && !is_digit(1) && is_digit(2) && is_digit(3);
    if may_be_iban && identify::matches(Kind::Iban, group) {
        Some(Kind::Iban)
    } else if letters == 0 && phone(group, plain, gaps) {
        Some(Kind::Phone)
    } else if (10..=19).contains(&plain.len()) && (letters < 2 || plain.len() == 16) {
        IN_SENTENCES.into_iter().find(|kind| identify::matches(*kind, group))
    } else {
        None
    }
}

/// `+` and 8 to 15 digits; or a French number: 0, a digit from 1 to 9, and eight more, alone or in pairs.
fn phone(group: &str, plain: &str, gaps: usize) -> bool {
    if let Some(digits) = plain.strip_prefix('+') {
        return (8..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    }
    let national =
        plain.len() == 10 && plain.bytes().all(|b| b.is_ascii_digit()) && plain.starts_with('0') && !plain.starts_with("00");
    let in_pairs = || group.split([' ', '.', '-', '/']).all(|pair| pair.len() == 2);
    national && (gaps == 0 || gaps == 4 && in_pairs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, bool)> {
        let mut out = Vec::new();
        identifiers(text, |kind, whole| out.push((kind, whole)));
        out
    }

    #[test]
    fn identifiers_alone_and_in_sentences() {
        for (text, kind, whole) in [
            ("zoe.lefevre@example.fr", Kind::Email, true),
            ("please write to <zoe+x@mail.example.co.uk>.", Kind::Email, false),
            ("FR76 3000 6000 0112 3456 7890 189", Kind::Iban, true),
            ("iban : DE89370400440532013000 (compte)", Kind::Iban, false),
            ("4111 1111 1111 1111", Kind::Card, true),
            ("378282246310005", Kind::Card, true),
            ("2 11 12 2A 512 406 55", Kind::FrNir, true),
            ("NIR 274052B00911146", Kind::FrNir, false),
            ("06 12 34 56 78", Kind::Phone, true),
            ("0612345678", Kind::Phone, true),
            ("rappeler au +33 6 12 34 56 78 svp", Kind::Phone, false),
            ("+4915112345678", Kind::Phone, true),
        ] {
            assert_eq!(kinds(text), [(kind, whole)], "{text}");
        }
    }

    #[test]
    fn what_only_looks_so_is_none() {
        for text in [
            "a@b",
            "@handle and user@",
            "x @ example.fr",
            "FR76 3000 6000 0112 3456 7890 188",
            "4111 1111 1111 1112",
            "178023353345329",
            "2024-01-01 12:00:00",
            "00612345678",
            "06 123 456 78",
            "1234567890123456",
            "3.141592653589793",
            "-1.0123456789",
            "f0e1d2c3b4a59687",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }
}
