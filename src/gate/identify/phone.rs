//! Telephone numbers: what is written in the usual ways of a country, as ITU-T E.164 has it.

use super::cell::{LONGEST, Shape, plain, trimmed};
use super::other;

/// A numbering plan.
struct Plan {
    countries: &'static str,
    code: &'static str,
    /// What comes before a national number and is no part of it; of the 1 only, it may be missing.
    trunk: &'static str,
    /// How national numbers begin, and how many digits they have at least and at most.
    numbers: &'static [(Shape, usize, usize)],
}

macro_rules! plans {
    ($($countries:literal $code:literal $trunk:literal $($begin:literal $least:literal $most:literal),+;)*) => {
        &[$(Plan {
            countries: $countries,
            code: $code,
            trunk: $trunk,
            numbers: &[$((Shape::new($begin), $least, $most)),+],
        }),*]
    };
}

static PLANS: &[Plan] = plans! {
    "FR" "33" "0" "[1-9]" 9 9;
    "DE" "49" "0" "[1-9]" 6 11;
    "ES" "34" "" "[6-9]" 9 9;
    // Italian numbers keep their zero.
    "IT SM VA" "39" "" "0[1-9]" 6 11, "3" 9 10, "[18]" 6 10;
    "GB UK GG JE IM" "44" "0" "[1-35789]" 10 10, "1" 9 9, "800" 9 9;
    "US CA PR" "1" "1" "[2-9]dd[2-9]" 10 10;
    "BE" "32" "0" "[1-9]" 8 8, "4[5-9]" 9 9;
    "CH LI" "41" "0" "[2-9]" 9 9;
    "NL" "31" "0" "[1-9]" 9 9;
    "AT" "43" "0" "[1-9]" 6 13;
    "PT" "351" "" "[2-46-9]" 9 9;
    "LU" "352" "" "[2-57-9]" 6 9, "2" 6 11, "6[25-9]1" 9 9;
    "IE" "353" "0" "[1-9]" 7 9;
    "PL" "48" "" "[1-9]" 9 9;
    "SE" "46" "0" "[1-9]" 7 9;
    "DK" "45" "" "[2-9]" 8 8;
    "NO" "47" "" "[2-9]" 8 8;
    "FI AX" "358" "0" "[1-9]" 6 11;
    "GR" "30" "" "[2689]" 10 10;
    "CZ" "420" "" "[2-9]" 9 9;
    "SK" "421" "0" "[2-9]" 9 9;
    "HU" "36" "06" "[1-9]" 8 9;
    "RO" "40" "0" "[237-9]" 9 9;
    "BG" "359" "0" "[2-9]" 7 9;
    "HR" "385" "0" "[1-9]" 8 9;
    "SI" "386" "0" "[1-7]" 8 8;
    "EE" "372" "" "[3-9]" 7 8;
    "LV" "371" "" "[2689]" 8 8;
    "LT" "370" "0" "[3-9]" 8 8;
    "CY" "357" "" "[29]" 8 8;
    "MT" "356" "" "[2-9]" 8 8;
    "IS" "354" "" "[3-9]" 7 7;
    "MC" "377" "" "[3-9]" 8 9;
    "AD" "376" "" "[3-9]" 6 6;
    "RE YT" "262" "0" "[269]" 9 9;
    "GP BL MF" "590" "0" "[5-9]" 9 9;
    "GF" "594" "0" "[5-9]" 9 9;
    "MQ" "596" "0" "[5-9]" 9 9;
    "MA" "212" "0" "[5-8]" 9 9;
    "DZ" "213" "0" "[1-9]" 8 9;
    "TN" "216" "" "[2-9]" 8 8;
    "TR" "90" "0" "[2-5]" 10 10;
    "UA" "380" "0" "[3-9]" 9 9;
    "RU KZ" "7" "8" "[3-9]" 10 10;
    "AU" "61" "0" "[2-478]" 9 9;
    "NZ" "64" "0" "[2-9]" 8 10;
    "JP" "81" "0" "[1-9]" 9 10;
    "IN" "91" "0" "[1-9]" 10 10;
    "BR" "55" "0" "[1-9]" 10 11;
    "MX" "52" "" "[1-9]" 10 10;
    "ZA" "27" "0" "[1-8]" 9 9;
};

/// Ends of French numbers overseas, which are other countries to the world.
const OVERSEAS: [(&str, &str); 14] = [
    ("262", "262"),
    ("263", "262"),
    ("269", "262"),
    ("639", "262"),
    ("692", "262"),
    ("693", "262"),
    ("590", "590"),
    ("690", "590"),
    ("691", "590"),
    ("594", "594"),
    ("694", "594"),
    ("596", "596"),
    ("696", "596"),
    ("697", "596"),
];

/// What is written: its digits, whether a plus stood before them, and how they were set apart.
struct Written {
    digits: [u8; 20],
    len: usize,
    plus: bool,
    separators: usize,
    dots: usize,
    brackets: bool,
}

impl Written {
    /// None if there is anything but digits, separators and brackets, or if it is a fraction or a date.
    fn read(text: &[u8]) -> Option<Self> {
        let text = without_extension(text);
        let mut out = Self { digits: [0; 20], len: 0, plus: false, separators: 0, dots: 0, brackets: false };
        let (mut i, mut open, mut run) = (0, false, 0);
        while let Some(b) = text.get(i) {
            let international = out.plus || out.digits.starts_with(b"00");
            match b {
                b'0'..=b'9' => {
                    *out.digits.get_mut(out.len)? = *b;
                    (out.len, run) = (out.len + 1, 0);
                }
                b'+' if out.len == 0 && !out.plus => out.plus = true,
                b'(' if international && text[i..].starts_with(b"(0)") => i += 2,
                b'(' if !open => (open, out.brackets) = (true, true),
                b')' if open => open = false,
                b' ' | b'.' | b'-' | b'/' if run < 3 && out.len > 0 => {
                    out.separators += usize::from(run == 0);
                    out.dots += usize::from(*b == b'.');
                    run += 1;
                }
                _ => return None,
            }
            i += 1;
        }
        let one_dot = out.separators == 1 && out.dots == 1 && !out.plus;
        let fraction = one_dot && (text[0] != b'0' || text.get(1) == Some(&b'.'));
        let whole = out.len > 5 && !open && text.last().is_some_and(u8::is_ascii_digit);
        (whole && !fraction && (out.plus || other::date(text).is_none())).then_some(out)
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.len]
    }
}

/// The text before `ext 12`, `x12`, `poste 12` or `dw 12`.
fn without_extension(text: &[u8]) -> &[u8] {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=5).contains(&digits) {
        return text;
    }
    let blank = |b: &[u8]| b.iter().rev().take_while(|b| matches!(b, b' ' | b'.')).count();
    let before = &text[..text.len() - digits];
    let before = &before[..before.len() - blank(before)];
    for word in [&b"poste"[..], b"ext", b"dw", b"x"] {
        let at = before.len().saturating_sub(word.len());
        if before[at..].eq_ignore_ascii_case(word) {
            return before[..at].trim_ascii_end();
        }
    }
    text
}

/// A number with its country.
struct Number<'w> {
    code: &'w [u8],
    national: &'w [u8],
}

impl Plan {
    fn has(&self, national: &[u8]) -> bool {
        self.numbers.iter().any(|(begin, least, most)| (*least..=*most).contains(&national.len()) && begin.begins(national))
    }

    /// The national number without its trunk digits.
    fn national<'w>(&self, digits: &'w [u8]) -> Option<&'w [u8]> {
        let rest = digits.strip_prefix(self.trunk.as_bytes());
        let rest = if self.trunk == "1" { rest.or(Some(digits)) } else { rest };
        rest.filter(|national| self.has(national))
    }

    fn is_of(&self, country: &str) -> bool {
        self.countries.split(' ').any(|c| c.eq_ignore_ascii_case(country))
    }
}

/// Country code and number, without the zero that is dialled only inside the country.
fn international(digits: &[u8]) -> Option<Number<'_>> {
    for plan in PLANS {
        let Some(rest) = digits.strip_prefix(plan.code.as_bytes()) else { continue };
        let national = if plan.trunk == "0" { rest.strip_prefix(b"0").unwrap_or(rest) } else { rest };
        return plan.has(national).then_some(Number { code: plan.code.as_bytes(), national });
    }
    // Codes of countries not listed here; some are of none.
    let assigned = !matches!(digits, [b'0', ..] | [b'2' | b'8', b'8', ..] | [b'8', b'3' | b'9', ..]);
    (assigned && (8..=15).contains(&digits.len())).then_some(Number { code: b"", national: digits })
}

fn number<'w>(written: &'w Written, plan: Option<&'w Plan>) -> Option<Number<'w>> {
    let digits = written.digits();
    if written.plus {
        return international(digits);
    }
    let abroad = if plan.is_some_and(|p| p.code == "1") { "011" } else { "00" };
    if let Some(rest) = digits.strip_prefix(abroad.as_bytes()) {
        return international(rest);
    }
    let plan = plan?;
    let national = plan.national(digits)?;
    let overseas = || OVERSEAS.iter().find(|(begin, _)| national.starts_with(begin.as_bytes()));
    let code = if plan.code == "33" { overseas().map_or(plan.code, |(_, code)| code) } else { plan.code };
    Some(Number { code: code.as_bytes(), national })
}

/// The number in E.164, such as `+33612345678`: read as in this country (two letters), or, without one, if it says its country
/// itself.
pub fn e164(text: &str, country: Option<&str>) -> Option<String> {
    let mut buffer = [0; LONGEST];
    let written = Written::read(plain(trimmed(text), &mut buffer)?)?;
    let plan = country.and_then(|country| PLANS.iter().find(|p| p.is_of(country)));
    let number = number(&written, plan)?;
    let mut out = String::with_capacity(16);
    out.push('+');
    out.extend(number.code.iter().chain(number.national).map(|b| char::from(*b)));
    Some(out)
}

/// Whether it looks like a number where the country is not known: international; with a zero before it; or as Americans write
/// theirs.
pub(super) fn looks(text: &[u8]) -> bool {
    // The first character and the length tell most numbers and amounts from these.
    let may_be = match text.first() {
        Some(b'+' | b'(' | b'0') => text.len() > 7,
        Some(b'2'..=b'9') => text.len() == 12 && !text[3].is_ascii_digit(),
        _ => false,
    };
    if !may_be {
        return false;
    }
    let Some(written) = Written::read(text) else { return false };
    let digits = written.digits();
    let american = || digits.len() == 10 && (written.brackets || written.separators == 2) && in_threes(text);
    if written.plus || digits.starts_with(b"00") {
        number(&written, None).is_some()
    } else if digits.starts_with(b"0") {
        (9..=12).contains(&digits.len()) && digits[1] != b'0'
    } else {
        let plan = PLANS.iter().find(|p| p.code == "1");
        american() && plan.is_some_and(|p| p.has(digits))
    }
}

/// Three, three and four digits.
fn in_threes(text: &[u8]) -> bool {
    let groups = text.split(|b| !b.is_ascii_digit()).map(<[u8]>::len).filter(|n| *n > 0);
    groups.eq([3, 3, 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_ways_of_writing() {
        for (country, text, expected) in [
            ("FR", "06 12 34 56 78", "+33612345678"),
            ("fr", "+33 (0)6.12.34.56.78", "+33612345678"),
            ("FR", "0033 6 12 34 56 78", "+33612345678"),
            ("FR", "0692123456", "+262692123456"),
            ("FR", "01\u{a0}23\u{a0}45\u{a0}67\u{a0}89 poste 123", "+33123456789"),
            ("DE", "(030) 123456", "+4930123456"),
            ("DE", "030/12345-67", "+49301234567"),
            ("DE", "030 - 123456", "+4930123456"),
            ("ES", "749 78 95 78", "+34749789578"),
            ("IT", "0534.096863", "+390534096863"),
            ("IT", "3331234567", "+393331234567"),
            ("GB", "020 8663 9481", "+442086639481"),
            ("US", "(618) 763-8150 ext. 12", "+16187638150"),
            ("US", "1-618-763-8150", "+16187638150"),
            ("US", "01119346204002", "+19346204002"),
            ("BE", "0473.01.08.59", "+32473010859"),
            ("CH", "071 742 60 16", "+41717426016"),
            ("NL", "06-12345678", "+31612345678"),
            ("AT", "0664 1234567", "+436641234567"),
            ("PL", "601 234 567", "+48601234567"),
            ("SE", "070-123 45 67", "+46701234567"),
            ("DK", "20 12 34 56", "+4520123456"),
            ("PT", "912 345 678", "+351912345678"),
            ("IE", "085 123 4567", "+353851234567"),
            ("FR", "(+44) 7287 178420", "+447287178420"),
        ] {
            assert_eq!(e164(text, Some(country)).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(e164("+33 6 12 34 56 78", None).as_deref(), Some("+33612345678"));
        assert_eq!(e164("00 49 30 123456", None).as_deref(), Some("+4930123456"));
    }

    #[test]
    fn what_cannot_be_one() {
        for (country, text) in [
            ("FR", "06 12 34 56 7"),
            ("FR", "tel: 06 12 34 56 78"),
            ("FR", "612345678"),
            ("FR", "+33 06 12 34 56"),
            ("FR", "06,12,34,56,78"),
            ("FR", "+06 12 34 56 78"),
            ("FR", "0612345678-"),
            ("FR", "((06)12345678"),
            ("DK", "21.10.2024"),
            ("DE", "01.02.2024"),
            ("ES", "912345678.5"),
            ("DE", "0.123456789"),
            ("US", "123-456-7890"),
            ("ES", "-912345678"),
            ("XX", "0612345678"),
        ] {
            assert_eq!(e164(text, Some(country)), None, "{text}");
        }
        assert_eq!(e164("06 12 34 56 78", None), None);
        assert!(looks(b"06 12 34 56 78") && looks(b"(618) 763-8150") && looks(b"618-763-8150") && looks(b"+4915112345678"));
        assert!(
            !looks(b"384309886")
                && !looks(b"12 345 678")
                && !looks(b"1234567890")
                && !looks(b"2024-01-01")
                && !looks(b"0.123456789")
        );
    }

    #[test]
    fn plans_tell_countries_apart() {
        for (i, plan) in PLANS.iter().enumerate() {
            assert!(
                PLANS[i + 1..].iter().all(|p| !p.code.starts_with(plan.code) && !plan.code.starts_with(p.code)),
                "{}",
                plan.code
            );
        }
    }
}
