//! Checks of national identifiers that are more than one line: each has the shape of its kind when it comes here.

use super::numbers::{digit, last, luhn, mod_11_10, number, part, past, past_either, weighted};

/// The check digit of a sum modulo 11: 0 for the remainders 0 and 1.
pub(super) fn check_11(sum: u64) -> u64 {
    match sum % 11 {
        0 | 1 => 0,
        r => 11 - r,
    }
}

/// Sex, year, month, department, commune, order and the key: 97 minus the rest of the others modulo 97.
pub(super) fn nir(s: &[u8]) -> bool {
    // Corsica: 2A counts as 19 and 2B as 18.
    let corsica = match (s[5], s[6]) {
        (_, b'0'..=b'9') => 0,
        (b'2', b'A') => 1_000_000,
        (b'2', _) => 2_000_000,
        _ => return false,
    };
    matches!(part(s, 3, 5), 1..=12 | 20..=42 | 50..) && 97 - (part(s, 0, 13) - corsica) % 97 == part(s, 13, 15)
}

/// The company passes Luhn's check, and so does the whole; branches of the post office have a sum that 5 divides, instead.
pub(super) fn siret(s: &[u8]) -> bool {
    let post = || s.starts_with(b"356000000") && s.iter().map(|b| digit(*b)).sum::<u64>().is_multiple_of(5);
    luhn(&s[..9]) && (luhn(s) || post())
}

/// The key is made of the company; keys with letters have no public rule.
pub(super) fn tva(s: &[u8]) -> bool {
    let key = &s[2..4];
    luhn(&s[4..]) && (!key.iter().all(u8::is_ascii_digit) || (12 + 3 * (part(s, 4, 13) % 97)) % 97 == number(key))
}

/// Of the first ten digits, exactly one comes twice or thrice, but not thrice in a row.
pub(super) fn idnr(s: &[u8]) -> bool {
    let count = |d: u8| s[..10].iter().filter(|b| **b == d).count();
    let (mut repeated, mut most) = (0, 0);
    for n in (b'0'..=b'9').map(count).filter(|n| *n > 1) {
        repeated += 1;
        most = most.max(n);
    }
    repeated == 1 && most < 4 && !s[..10].windows(3).any(|w| w[0] == w[1] && w[1] == w[2]) && mod_11_10(s)
}

/// The letter as two digits, weights, and cross sums; days of birth may be higher than in the calendar.
pub(super) fn rvnr(s: &[u8]) -> bool {
    let letter = u64::from(s[8] - b'A') + 1;
    let digits = s[..8].iter().map(|b| digit(*b)).chain([letter / 10, letter % 10]).chain(s[9..11].iter().map(|b| digit(*b)));
    let sum: u64 = digits.zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]).map(|(d, w)| d * w / 10 + d * w % 10).sum();
    (2..90).contains(&part(s, 0, 2)) && part(s, 2, 4) < 96 && part(s, 4, 6) < 13 && sum % 10 == last(s)
}

/// The letter of a Spanish number.
pub(super) fn spanish(number: u64, s: &[u8]) -> bool {
    usize::try_from(number % 23).ok().and_then(|i| b"TRWAGMYFPDXBNJZSQVHLCKE".get(i)) == s.last()
}

pub(super) fn cif(s: &[u8]) -> bool {
    let digits = s[1..8].iter().map(|b| digit(*b)).enumerate();
    let sum: u64 = digits.map(|(i, d)| if i % 2 == 0 { d * 2 / 10 + d * 2 % 10 } else { d }).sum();
    let check = (10 - sum % 10) % 10;
    if s[8].is_ascii_digit() {
        last(s) == check
    } else {
        usize::try_from(check).ok().and_then(|i| b"JABCDEFGHI".get(i)) == s.last()
    }
}

/// Odd and even characters count differently; letters may stand for the digits of the date, which must be one.
pub(super) fn codice(s: &[u8]) -> bool {
    const ODD: [u8; 26] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let value = |b: u8| if b.is_ascii_digit() { b - b'0' } else { b - b'A' };
    let count = |(i, b): (usize, &u8)| u32::from(if i % 2 == 0 { ODD[usize::from(value(*b))] } else { value(*b) });
    let place = |list: &[u8], b: u8| list.iter().position(|l| *l == b).and_then(|i| u64::try_from(i).ok()).unwrap_or(0);
    let decoded = |b: u8| if b.is_ascii_digit() { digit(b) } else { place(b"LMNPQRSTUV", b) };
    let two = |i: usize| decoded(s[i]) * 10 + decoded(s[i + 1]);
    // Women have 40 added to their day.
    let day = if two(9) > 40 { two(9) - 40 } else { two(9) };
    s[..15].iter().enumerate().map(count).sum::<u32>() % 26 == u32::from(s[15] - b'A')
        && past_either(two(6), place(b"ABCDEHLMPRST", s[8]) + 1, day)
}

/// Prefixes that are never issued; there is no check digit.
pub(super) fn nino(s: &[u8]) -> bool {
    !matches!(&s[..2], b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ")
}

/// Two check digits of nine, or of these behind a 2 for those born since 2000. Months of 20 and 40 more are of foreigners.
pub(super) fn nrn(s: &[u8]) -> bool {
    let (n, year, month, day, check) = (part(s, 0, 9), part(s, 0, 2), part(s, 2, 4), part(s, 4, 6), part(s, 9, 11));
    let unknown = month % 20 == 0 || day == 0;
    let born = |century: u64| if unknown { past(century + year, 1, 1) } else { past(century + year, month % 20, day) };
    let checked = |century: u64, n: u64| 97 - n % 97 == check && born(century);
    (1..999).contains(&part(s, 6, 9))
        && month < 53
        && month % 20 < 13
        && day < 32
        && (checked(1900, n) || checked(2000, 2_000_000_000 + n))
}

pub(super) fn bsn(s: &[u8], weights: &[u64]) -> bool {
    weighted(s, weights) % 11 == last(s)
}

pub(super) fn hetu(date: &[u8], century: u64, rest: &[u8]) -> bool {
    let check = usize::try_from((number(date) * 1000 + part(rest, 0, 3)) % 31).ok();
    check.and_then(|i| b"0123456789ABCDEFHJKLMNPRSTUVWXY".get(i)) == rest.last()
        && part(rest, 0, 3) > 1
        && past(century * 100 + part(date, 4, 6), part(date, 2, 4), part(date, 0, 2))
}

/// A date, whose century is in the seventh digit; there are numbers without a check digit since 2007.
pub(super) fn cpr(s: &[u8]) -> bool {
    let year = part(s, 4, 6);
    let century = match digit(s[6]) {
        0..=3 => 1900,
        4 | 9 => 1900 + 100 * u64::from(year < 37),
        _ => 1800 + 200 * u64::from(year < 58),
    };
    past(century + year, part(s, 2, 4), part(s, 0, 2))
}

/// Two check digits, and a date with 40 added to the day or the month of some.
pub(super) fn fnr(s: &[u8]) -> bool {
    let (year, order) = (part(s, 4, 6), part(s, 6, 9));
    let less = |n: u64| if n > 40 { n - 40 } else { n };
    let century = match order {
        0..500 => 1900,
        500..750 if year > 53 => 1800,
        _ if year < 40 => 2000,
        900.. => 1900,
        _ => return false,
    };
    weighted(s, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]).is_multiple_of(11)
        && weighted(s, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)
        && past(century + year, less(part(s, 2, 4)), less(part(s, 0, 2)))
}

/// Women have 50 added to the month, and since 2004 both may have 20 more.
pub(super) fn czech(year: u64, s: &[u8]) -> bool {
    let month = part(s, 2, 4);
    let month = if month > 50 { month - 50 } else { month };
    past(year, if month > 20 && year > 2003 { month - 20 } else { month }, part(s, 4, 6))
}

/// A date whose century is in the first digit, a county, and a check digit.
pub(super) fn cnp(s: &[u8]) -> bool {
    let centuries: &[u64] = match s[0] {
        b'1' | b'2' => &[1900],
        b'3' | b'4' => &[1800],
        b'5' | b'6' => &[2000],
        _ => &[1900, 2000],
    };
    let born = centuries.iter().any(|century| past(century + part(s, 1, 3), part(s, 3, 5), part(s, 5, 7)));
    let check = weighted(s, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    born && matches!(part(s, 7, 9), 1..=48 | 51 | 52 | 70 | 80..=83) && last(s) == if check == 10 { 1 } else { check }
}

pub(super) fn ppsn(s: &[u8]) -> bool {
    let second = s.get(8).filter(|b| **b < b'J').map_or(0, |b| u64::from(b - b'A') + 1);
    let check = (weighted(s, &[8, 7, 6, 5, 4, 3, 2]) + 9 * second) % 23;
    usize::try_from(check).ok().and_then(|i| b"WABCDEFGHIJKLMNOPQRSTUV".get(i)) == s.get(7)
}
