//! The canonical form of a typed value: the bytes that are hashed (docs/spec.md, section "Canonical form").
//!
//! Each function appends to `out` and allocates nothing else, floats of 16 bits and decimals beyond 16 bytes apart.

use std::io::Write;

use half::f16;

/// The unit of a time or timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 10⁻³ s.
    Millis,
    /// 10⁻⁶ s.
    Micros,
    /// 10⁻⁹ s.
    Nanos,
}

impl TimeUnit {
    /// Units of a second.
    pub fn per_second(self) -> i128 {
        10i128.pow(self.digits() as u32)
    }

    fn digits(self) -> usize {
        match self {
            Self::Millis => 3,
            Self::Micros => 6,
            Self::Nanos => 9,
        }
    }
}

const SECONDS_A_DAY: i128 = 86_400;

/// Decimal digits with a sign where negative.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// As [`integer`], without a sign.
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// The shortest decimal that reads back, in 64 bits.
pub fn float64(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        // Not `{:?}`: of two shortest decimals that are equally near, it does not take the even one, as Python does.
        notation(out, ryu::Buffer::new().format_finite(value));
    } else {
        put(out, format_args!("{value:?}"));
    }
}

/// The shortest decimal that reads back, in 32 bits.
pub fn float32(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        notation(out, ryu::Buffer::new().format_finite(value));
    } else {
        put(out, format_args!("{value:?}"));
    }
}

/// A decimal of any notation in that of Python's `repr`, without the plus sign and zeros of its exponents.
fn notation(out: &mut Vec<u8>, text: &str) {
    /// Exponents of ten that are written as positions.
    const POSITIONAL: std::ops::Range<i32> = -4..16;
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once('e').map_or((text, 0), |(m, e)| (m, e.parse().unwrap_or(0)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let first = whole.len() as i32 + exponent - (all.len() - digits.len()) as i32 - 1;
    let digits = digits.trim_end_matches('0');
    let (head, tail) = digits.split_at(digits.len().min(1));
    match digits.len() as i32 {
        0 => put(out, format_args!("{sign}0.0")),
        _ if !POSITIONAL.contains(&first) => {
            let point = if tail.is_empty() { "" } else { "." };
            put(out, format_args!("{sign}{head}{point}{tail}e{first}"));
        }
        _ if first < 0 => put(out, format_args!("{sign}0.{:0>width$}{digits}", "", width = (-first - 1) as usize)),
        n if n <= first + 1 => put(out, format_args!("{sign}{digits:0<width$}.0", width = (first + 1) as usize)),
        _ => {
            let (whole, fraction) = digits.split_at((first + 1) as usize);
            put(out, format_args!("{sign}{whole}.{fraction}"));
        }
    }
}

/// The shortest decimal that reads back, in 16 bits.
pub fn float16(out: &mut Vec<u8>, value: f16) {
    let wide = value.to_f64();
    // 5 significant digits tell all values of 16 bits apart.
    let shortest = (0..5).find_map(|digits| {
        let text = format!("{wide:.digits$e}").parse().ok()?;
        (f16::from_f64(text) == value).then_some(text)
    });
    float64(out, shortest.unwrap_or(wide));
}

/// `YYYY-MM-DD`, from days since 1970-01-01 in the proleptic Gregorian calendar.
pub fn date(out: &mut Vec<u8>, days: i64) {
    // Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    let z = i128::from(days) + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    let sign = match year {
        ..0 => "-",
        10_000.. => "+",
        _ => "",
    };
    put(out, format_args!("{sign}{:04}-{month:02}-{day:02}", year.abs()));
}

/// `HH:MM:SS[.fraction]`, from units since midnight; none outside of 0:00 to 24:00.
#[must_use]
pub fn time(out: &mut Vec<u8>, value: i64, unit: TimeUnit) -> bool {
    let value = i128::from(value);
    let fits = (0..=SECONDS_A_DAY * unit.per_second()).contains(&value);
    if fits {
        clock(out, value, unit);
    }
    fits
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction][Z]`, from units since 1970-01-01T00:00:00.
pub fn timestamp(out: &mut Vec<u8>, value: i64, unit: TimeUnit, utc: bool) {
    day_and_clock(out, i128::from(value), unit, utc);
}

/// As [`timestamp`], from Parquet's INT96: nanoseconds of the day and a Julian day, both little-endian.
pub fn int96(out: &mut Vec<u8>, bytes: &[u8; 12]) {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    let [n0, n1, n2, n3, n4, n5, n6, n7, d0, d1, d2, d3] = *bytes;
    let nanos = i128::from(i64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]));
    let days = i128::from(i32::from_le_bytes([d0, d1, d2, d3])) - JULIAN_DAY_OF_1970;
    day_and_clock(out, days * SECONDS_A_DAY * TimeUnit::Nanos.per_second() + nanos, TimeUnit::Nanos, false);
}

/// Plain digits with `scale` of them behind the point, from a big-endian two's complement number of any length.
pub fn decimal(out: &mut Vec<u8>, unscaled: &[u8], scale: usize) {
    let negative = unscaled.first().is_some_and(|b| b & 0x80 != 0);
    let digits = if unscaled.len() <= 16 {
        let value = unscaled.iter().fold(if negative { -1i128 } else { 0 }, |n, b| n << 8 | i128::from(*b));
        value.unsigned_abs().to_string()
    } else {
        long_magnitude(unscaled, negative)
    };
    if negative {
        out.push(b'-');
    }
    if scale == 0 {
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    put(out, format_args!("{whole}.{fraction}"));
}

/// `8-4-4-4-12`, lower case.
pub fn uuid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        put(out, format_args!("{byte:02x}"));
    }
}

fn day_and_clock(out: &mut Vec<u8>, value: i128, unit: TimeUnit, utc: bool) {
    let a_day = SECONDS_A_DAY * unit.per_second();
    // An i64 in any unit, or an INT96, lies within i64 days.
    date(out, value.div_euclid(a_day) as i64);
    out.push(b'T');
    clock(out, value.rem_euclid(a_day), unit);
    if utc {
        out.push(b'Z');
    }
}

fn clock(out: &mut Vec<u8>, value: i128, unit: TimeUnit) {
    let (seconds, fraction) = (value / unit.per_second(), value % unit.per_second());
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        put(out, format_args!(".{fraction:0width$}", width = unit.digits()));
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Digits of the absolute value of a two's complement number that no machine integer holds.
fn long_magnitude(unscaled: &[u8], negative: bool) -> String {
    const BASE: u64 = 1_000_000_000;
    let mut bytes: Vec<u8> = unscaled.iter().map(|b| if negative { !b } else { *b }).collect();
    if negative {
        for byte in bytes.iter_mut().rev() {
            let carry;
            (*byte, carry) = byte.overflowing_add(1);
            if !carry {
                break;
            }
        }
    }
    let mut limbs = Vec::new();
    while bytes.iter().any(|b| *b != 0) {
        let mut rest = 0;
        for byte in &mut bytes {
            let value = rest << 8 | u64::from(*byte);
            *byte = (value / BASE) as u8;
            rest = value % BASE;
        }
        limbs.push(rest);
    }
    let mut text = limbs.pop().unwrap_or(0).to_string();
    limbs.iter().rev().for_each(|limb| text += &format!("{limb:09}"));
    text
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(text(|o| integer(o, i64::MIN)), "-9223372036854775808");
        assert_eq!(text(|o| unsigned(o, u64::MAX)), "18446744073709551615");
        assert_eq!(text(|o| integer(o, 0)), "0");
        assert_eq!(text(|o| boolean(o, true)), "true");
    }

    #[test]
    fn floats_are_the_shortest_text_that_reads_back() {
        for (value, want) in [
            (42.0, "42.0"),
            (1e300, "1e300"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-5"),
            (123_456_789_012_345_680.0, "1.2345678901234568e17"),
            (1e16, "1e16"),
            (1e15, "1000000000000000.0"),
            (1_234_567_890_123_456.0, "1234567890123456.0"),
            ("829842454823335.25".parse().unwrap_or(0.0), "829842454823335.2"),
            (-123.456, "-123.456"),
            (0.00025, "0.00025"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(text(|o| float64(o, value)), want);
        }
        assert_eq!(text(|o| float32(o, 0.1)), "0.1");
        assert_eq!(text(|o| float32(o, 16_777_216.0)), "16777216.0");
        assert_eq!(text(|o| float32(o, "-202126.625".parse().unwrap_or(0.0))), "-202126.62");
        assert_eq!(text(|o| float32(o, f32::NEG_INFINITY)), "-inf");
        for (value, want) in [(0.1, "0.1"), (65504.0, "65500.0"), (-2.0, "-2.0"), (f64::INFINITY, "inf"), (f64::NAN, "NaN")] {
            assert_eq!(text(|o| float16(o, f16::from_f64(value))), want);
        }
    }

    #[test]
    fn all_halves_read_back() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            let read = text(|o| float16(o, value)).parse::<f64>().unwrap();
            assert!(f16::from_f64(read).to_bits() == bits || value.is_nan(), "{bits:04x} gives {read}");
        }
    }

    #[test]
    fn dates_and_times() {
        for (days, want) in [
            (0, "1970-01-01"),
            (19_782, "2024-02-29"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_897, "+10000-01-01"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(text(|o| date(o, days)), want);
        }
        assert_eq!(text(|o| assert!(time(o, 29_100_250, TimeUnit::Millis))), "08:05:00.25");
        assert!(!time(&mut Vec::new(), -1, TimeUnit::Micros));
        assert!(!time(&mut Vec::new(), i64::MAX, TimeUnit::Nanos));
        assert_eq!(text(|o| timestamp(o, -1, TimeUnit::Nanos, true)), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(text(|o| timestamp(o, 1_709_193_900_000, TimeUnit::Millis, false)), "2024-02-29T08:05:00");
        let mut raw = [0; 12];
        raw[..8].copy_from_slice(&1_500_000_000i64.to_le_bytes());
        raw[8..].copy_from_slice(&2_440_589i32.to_le_bytes());
        assert_eq!(text(|o| int96(o, &raw)), "1970-01-02T00:00:01.5");
        for extreme in [i64::MIN, i64::MAX] {
            assert!(text(|o| timestamp(o, extreme, TimeUnit::Millis, false)).contains('T'));
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(text(|o| decimal(o, &(-50i32).to_be_bytes(), 2)), "-0.50");
        assert_eq!(text(|o| decimal(o, &12_345i64.to_be_bytes(), 0)), "12345");
        assert_eq!(text(|o| decimal(o, &[], 1)), "0.0");
        assert_eq!(text(|o| decimal(o, &i128::MIN.to_be_bytes(), 3)), "-170141183460469231731687303715884105.728");
        let mut long = vec![0xff; 20];
        long[19] = 0xfe;
        assert_eq!(text(|o| decimal(o, &long, 1)), "-0.2");
        let mut long = vec![0; 20];
        long[0] = 1;
        assert_eq!(text(|o| decimal(o, &long, 0)), "5708990770823839524233143877797980545530986496");
        assert_eq!(text(|o| decimal(o, &[0; 17], 0)), "0");
    }

    #[test]
    fn uuids() {
        let bytes = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(text(|o| uuid(o, &bytes)), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
