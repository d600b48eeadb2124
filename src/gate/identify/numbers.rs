//! Check digits and dates of identifiers; account and card numbers.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::cell::{Code, DASH, SPACE};

/// The value of a digit; 0 for letters.
pub(super) fn digit(b: u8) -> u64 {
    if b.is_ascii_digit() { u64::from(b - b'0') } else { 0 }
}

/// The number that these digits are; letters count as 0. At most 19 digits.
pub(super) fn number(s: &[u8]) -> u64 {
    s.iter().fold(0, |n, b| n * 10 + digit(*b))
}

/// The number of the digits from one place to before another; 0 where there are none.
pub(super) fn part(s: &[u8], from: usize, to: usize) -> u64 {
    s.get(from..to).map_or(0, number)
}

/// The sum of the first digits, each times its weight.
pub(super) fn weighted(s: &[u8], weights: &[u64]) -> u64 {
    s.iter().zip(weights).map(|(b, w)| digit(*b) * w).sum()
}

/// The last digit.
pub(super) fn last(s: &[u8]) -> u64 {
    s.last().map_or(0, |b| digit(*b))
}

/// Luhn's check: from the right, each second digit doubled.
pub(super) fn luhn(s: &[u8]) -> bool {
    let doubled = |d: u64| d * 2 - if d > 4 { 9 } else { 0 };
    s.iter()
        .rev()
        .enumerate()
        .map(|(i, b)| if i % 2 == 0 { digit(*b) } else { doubled(digit(*b)) })
        .sum::<u64>()
        .is_multiple_of(10)
}

/// ISO 7064, mod 11,10.
pub(super) fn mod_11_10(s: &[u8]) -> bool {
    let Some((_, first)) = s.split_last() else { return false };
    let product = first.iter().fold(10, |product, b| match (digit(*b) + product) % 10 {
        0 => 20 % 11,
        x => 2 * x % 11,
    });
    (11 - product) % 10 == last(s)
}

/// Verhoeff's check, over digits in reading order.
pub(super) fn verhoeff<'s>(digits: impl DoubleEndedIterator<Item = &'s u8>) -> bool {
    const PRODUCTS: [&[u8; 10]; 10] = [
        b"0123456789",
        b"1234067895",
        b"2340178956",
        b"3401289567",
        b"4012395678",
        b"5987604321",
        b"6598710432",
        b"7659821043",
        b"8765932104",
        b"9876543210",
    ];
    const PERMUTED: [&[u8; 10]; 8] =
        [b"0123456789", b"1576283094", b"5803796142", b"8916043527", b"9453126870", b"4286573901", b"2793806415", b"7046913258"];
    let value = |b: u8| usize::from(b.wrapping_sub(b'0') % 10);
    digits.rev().enumerate().fold(0, |c, (i, b)| value(PRODUCTS[c][value(PERMUTED[i % 8][value(*b)])])) == 0
}

/// Days since 1970 of today; read once, as no table is older than the run that reads it.
static TODAY: LazyLock<u64> =
    LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::from(u16::MAX), |t| t.as_secs() / 86_400));

/// Days from 1867-01-01, where Hungary begins to count, until today.
pub(super) fn days_since_1867() -> u64 {
    *TODAY + 37_620
}

/// The number of days of a month; 0 if there is no such month.
pub(super) fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Whether there was such a day, until today.
pub(super) fn past(year: u64, month: u64, day: u64) -> bool {
    if day == 0 || day > days_of(year, month) {
        return false;
    }
    // No need for the calendar where even the year tells: a year has less than 366 days, 1970 or later.
    let Some(years) = year.checked_sub(1970) else { return true };
    let leaps = (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 - 477;
    let days = years * 365 + leaps + (1..month).map(|m| days_of(year, m)).sum::<u64>() + day - 1;
    days <= *TODAY
}

/// Whether there was such a day in the 20th or in this century.
pub(super) fn past_either(year: u64, month: u64, day: u64) -> bool {
    past(1900 + year, month, day) || past(2000 + year, month, day)
}

const LENGTHS: [(usize, &[u8]); 18] = [
    (15, b"NO"),
    (16, b"BE"),
    (18, b"DKFIFKFOGLNLSD"),
    (19, b"MKSI"),
    (20, b"ATBAEEKZLTLUMNXK"),
    (21, b"CHHRLILV"),
    (22, b"BGBHCRDEGBGEIEMERSVA"),
    (23, b"AEGIILIQOMSOTL"),
    (24, b"ADCZESMDPKROSASESKTNVG"),
    (25, b"LYPTST"),
    (26, b"ISTR"),
    (27, b"BIDJFRGRITMCMRSM"),
    (28, b"ALAZBYCYDOGTHNHULBNIPLSV"),
    (29, b"BREGPSQAUA"),
    (30, b"JOKWMUYE"),
    (31, b"MTSC"),
    (32, b"LC"),
    (33, b"RU"),
];

/// Countries whose account numbers have no letters.
const DIGITS_ONLY: &[u8] = b"ATBECZDEDKEEESFIHRHULTNOPLPTSESISK";

/// As long as the country has it, the check digits in their range, and 1 modulo 97 with the first four at the end.
pub(super) fn iban(code: Code) -> bool {
    let Some((country, rest)) = code.s.split_at_checked(2) else { return false };
    let among = |list: &[u8]| list.chunks_exact(2).any(|c| c == country);
    let long = LENGTHS.iter().any(|(n, countries)| *n == code.s.len() && among(countries));
    if !long || !code.spaced(0x1111_1111_1111_1110, SPACE | DASH) || !(2..99).contains(&part(rest, 0, 2)) {
        return false;
    }
    if !rest[..2].iter().all(u8::is_ascii_digit) || among(DIGITS_ONLY) && !rest.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let turned = rest[2..].iter().chain(country).chain(&rest[..2]);
    turned.fold(0, |n, b| if b.is_ascii_digit() { n * 10 + digit(*b) } else { n * 100 + u64::from(b - b'A') + 10 } % 97) == 1
}

/// Lowest and highest first four digits of a scheme, and its lengths.
const SCHEMES: [(u64, u64, &[usize]); 11] = [
    (4000, 4999, &[13, 16, 19]),
    (5100, 5599, &[16]),
    (2221, 2720, &[16]),
    (3400, 3499, &[15]),
    (3700, 3799, &[15]),
    (6200, 6299, &[16, 17, 18, 19]),
    (3000, 3059, &[14, 15, 16, 17, 18, 19]),
    (3600, 3699, &[14, 15, 16, 17, 18, 19]),
    (3800, 3999, &[14, 15, 16, 17, 18, 19]),
    (3528, 3589, &[16, 17, 18, 19]),
    // Maestro, and Discover within it.
    (5000, 6999, &[13, 14, 15, 16, 17, 18, 19]),
];

/// 13 to 19 digits with the first digits of a scheme, and Luhn's check.
pub(super) fn card(code: Code) -> bool {
    let s = code.s;
    let fours = 1 << 4 | 1 << 8 | 1 << 12 | 1 << 16;
    let spaced = code.spaced(fours, SPACE | DASH) || matches!(s.len(), 14 | 15) && code.spaced(1 << 4 | 1 << 10, SPACE | DASH);
    if !(13..=19).contains(&s.len()) || !spaced || !s.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let first = part(s, 0, 4);
    let issued = SCHEMES.iter().any(|(low, high, lengths)| (*low..=*high).contains(&first) && lengths.contains(&s.len()));
    // 51 to 55 is one scheme's alone, and has 16 digits.
    issued && (!(5100..=5599).contains(&first) || s.len() == 16) && luhn(s)
}

#[cfg(test)]
mod tests {
    use super::super::cell::LONGEST;
    use super::*;

    #[test]
    fn accounts_and_cards() {
        let is = |text: &str, check: fn(Code) -> bool| Code::read(text.as_bytes(), &mut [0; LONGEST]).is_some_and(check);
        for text in ["NL11BUXJ5098063533", "PT79 6109 0982 4508 1464 7023 6", "fr76-3000-6000-0112-3456-7890-189"] {
            assert!(is(text, iban), "{text}");
        }
        for text in [
            "BE63951405018136",
            "CH77 2980 2029 1726 5134 2",
            "PT7 96109 0982 4508 1464 7023 6",
            "NL11BUXJ509806353",
            "XX11BUXJ5098063533",
        ] {
            assert!(!is(text, iban), "{text}");
        }
        for text in ["4080103022123951", "5185 4142 2632 6212", "3782 822463 10005", "4111-1111-1111-1111"] {
            assert!(is(text, card), "{text}");
        }
        for text in ["3530141052696364", "5567 6879 6746 7263", "41111 111 1111 1111", "0000000000000000", "1234567890123452"] {
            assert!(!is(text, card), "{text}");
        }
    }

    #[test]
    fn days() {
        assert!(past(2024, 2, 29) && past(1900, 2, 28) && past(1970, 1, 1) && past(1867, 12, 31));
        assert!(
            !past(2023, 2, 29)
                && !past(1900, 2, 29)
                && !past(2999, 1, 1)
                && !past(2000, 13, 1)
                && !past(2000, 0, 1)
                && !past(2000, 1, 0)
        );
        assert!(past_either(99, 12, 31) && past_either(5, 1, 1));
        // Of the days until 2000-03-01, one is the 29th of February that 1900 had not.
        assert!(days_since_1867() > 48_000);
    }

    #[test]
    fn check_digits() {
        assert!(luhn(b"79927398713") && !luhn(b"79927398710"));
        assert!(mod_11_10(b"61500111396") && !mod_11_10(b"07991540270"));
        assert!(verhoeff(b"2363".iter()) && !verhoeff(b"2364".iter()));
    }
}
